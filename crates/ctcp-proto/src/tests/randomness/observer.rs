//! An observer who sees many values of a generator and predicts the next ones if it is xoshiro256++.
//!
//! ```text
//!  out = rotl(a + d, 23) + a        a, d: the first and the last of the four words of the state
//!
//!  out - a = rotl(a + d, 23);   bit 23 of it:   out[23] ^ a[23] ^ borrow = a[0] ^ d[0]
//! ```
//!
//! The borrow comes from the lowest 23 bits. If these bits of `out` are almost all ones there is nearly always no borrow, and if they are
//! almost all zeros there nearly always is one. So such a value is a linear equation for the state, and hence for the 256 bits of the
//! initial state, since everything but the output is linear. A few of the equations are wrong. So 256 independent ones are picked at random
//! until the state that they give explains all values seen. random until the state that they give explains everything that was seen.

use ctcp_base::Prng;

type State = [u64; 4];

const LOW: u64 = (1 << 23) - 1;
const BITS: usize = 256;
/// The best equations, from which 256 are picked. Of 16,384 values two or three are wrong, and one choice in ten leaves all of these out.
const CANDIDATES: usize = 400;
const CHOICES: usize = 1_000;

/// Predicts the `count` values after those in `seen`, in order. `None` in `seen` is a value that was drawn but not seen in full.
pub(super) fn next_draws(seen: &[Option<u64>], count: usize) -> Option<Vec<u64>> {
    let equations = equations(seen);
    let mut order: Vec<usize> = (0..equations.len()).collect();
    let mut chance = Prng::new(1);
    (0..CHOICES).find_map(|_| {
        for last in (1..order.len()).rev() {
            order.swap(last, chance.below(last as u64 + 1) as usize);
        }
        let mut state = solve(order.iter().map(|&index| equations[index]))?;
        let explains = seen.iter().all(|drawn| {
            let output = output(&state);
            step(&mut state);
            drawn.is_none_or(|drawn| drawn == output)
        });
        explains.then(|| {
            let draw = |_| {
                let output = output(&state);
                step(&mut state);
                output
            };
            (0..count).map(draw).collect()
        })
    })
}

fn output([a, _, _, d]: &State) -> u64 {
    a.wrapping_add(*d).rotate_left(23).wrapping_add(*a)
}

fn step(state: &mut State) {
    let shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = state[3].rotate_left(45);
}

/// A sum of bits of the initial state, and its value.
type Equation = (State, bool);

/// The most reliable equations that the values give.
fn equations(seen: &[Option<u64>]) -> Vec<Equation> {
    let mut sums = vec![State::default(); seen.len()];
    for bit in 0..BITS {
        let mut state = State::default();
        state[bit / 64] = 1 << (bit % 64);
        for sum in &mut sums {
            let [a, _, _, d] = state;
            sum[bit / 64] |= ((a ^ d ^ (a >> 23)) & 1) << (bit % 64);
            step(&mut state);
        }
    }
    let mut ranked: Vec<(u64, Equation)> = Vec::new();
    for (sum, drawn) in sums.into_iter().zip(seen) {
        let Some(out) = drawn else { continue };
        let is_borrowed = out & LOW < LOW / 2;
        let doubt = if is_borrowed { out & LOW } else { LOW - (out & LOW) };
        ranked.push((doubt, (sum, ((out >> 23) & 1 == 1) != is_borrowed)));
    }
    ranked.sort_unstable_by_key(|(doubt, _)| *doubt);
    ranked.into_iter().take(CANDIDATES).map(|(_, equation)| equation).collect()
}

/// Gaussian elimination with the first 256 independent equations.
fn solve(equations: impl Iterator<Item = Equation>) -> Option<State> {
    let mut rows: Vec<Option<Equation>> = vec![None; BITS];
    let has = |sum: &State, bit: usize| (sum[bit / 64] >> (bit % 64)) & 1 == 1;
    for (mut sum, mut value) in equations {
        for (bit, row) in rows.iter_mut().enumerate() {
            if !has(&sum, bit) {
                continue;
            }
            let Some((other, other_value)) = row else {
                *row = Some((sum, value));
                break;
            };
            sum.iter_mut().zip(other).for_each(|(word, other)| *word ^= *other);
            value ^= *other_value;
        }
    }
    let mut state = State::default();
    for bit in (0..BITS).rev() {
        let (sum, value) = rows[bit]?;
        let others = sum.iter().zip(&state).map(|(word, known)| (word & known).count_ones()).sum::<u32>();
        state[bit / 64] |= u64::from(value != (others % 2 == 1)) << (bit % 64);
    }
    Some(state)
}
