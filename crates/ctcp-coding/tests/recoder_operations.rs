//! Compares the recoder with a naive model, driven by arbitrary bytes.
//!
//! [`run`] interprets any byte string as a sequence of recoder operations and checks every result against full Gaussian
//! elimination on a dense matrix. A fuzz target can include this file and call it.

use ctcp_coding::{
    Arrival, DecodeError, RecodeError, Recoder, RecoderConfig, SymbolRange, coefficients, gf256::element,
};

/// The maximum symbol size of a run. It is small because payload kernels have their own tests.
const SYMBOL_SIZE_MAX: usize = 70;

/// The expected state of a relay: the dense rows of everything innovative that it still keeps, in reduced echelon form.
struct Model {
    window: u64,
    /// The symbol of the first column, which is the oldest one kept.
    base: u64,
    rows: Vec<Vec<u8>>,
    end: u64,
    announced: u64,
}

/// One recoder with its model.
struct Run<'a> {
    bytes: &'a [u8],
    recoder: Recoder,
    model: Model,
    weights: Vec<u8>,
}

/// Interprets `bytes` as operations on a recoder and compares it with the model after each.
pub fn run(bytes: &[u8]) {
    let mut run = Run {
        bytes,
        recoder: Recoder::new(RecoderConfig { symbol_size_max: SYMBOL_SIZE_MAX, window: 0 }),
        model: Model { window: 0, base: 0, rows: Vec::new(), end: 0, announced: 0 },
        weights: Vec::new(),
    };
    let window = 1 + run.below(24);
    run.model.window = window;
    run.recoder = Recoder::new(RecoderConfig { symbol_size_max: SYMBOL_SIZE_MAX, window: window as u16 });
    while !run.bytes.is_empty() {
        run.step();
        run.compare();
    }
}

/// Returns the contents of symbol `index`: 0 to `SYMBOL_SIZE_MAX` bytes derived from the index.
fn contents(index: u64) -> Vec<u8> {
    let mix = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    let length = usize::from(mix(index + 1)) % (SYMBOL_SIZE_MAX + 1);
    (0..length as u64).map(|position| mix(index * 1000 + position + 17)).collect()
}

/// Returns the value of a combination without trailing zeros.
fn value(range: SymbolRange, row: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; SYMBOL_SIZE_MAX];
    for (index, &coefficient) in range.indexes().zip(row) {
        for (sum, byte) in payload.iter_mut().zip(contents(index)) {
            *sum ^= element::mul(coefficient, byte);
        }
    }
    let length = payload.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    payload.truncate(length);
    payload
}

impl Run<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    fn below(&mut self, bound: u64) -> u64 {
        u64::from(self.byte()) % bound
    }

    fn step(&mut self) {
        match self.byte() % 16 {
            0..=3 => {
                let index = self.index();
                let arrival = self.recoder.handle_source(index, &contents(index));
                assert_eq!(arrival, self.model.receive(index, &[1]), "source {index}");
            }
            4..=9 => self.combination(),
            10..=12 => self.combine(),
            13 => {
                let index = self.index();
                self.recoder.release_before(index);
                self.model.announced = self.model.announced.max(index);
                self.model.forget();
            }
            14 => self.recoder.shrink(),
            _ => self.nonsense(),
        }
    }

    /// Returns an index between a little below the kept range and a little beyond the newest symbol.
    fn index(&mut self) -> u64 {
        let spread = 2 * self.model.window + 6;
        (self.model.kept() + self.below(spread)).saturating_sub(self.model.window / 2 + 2)
    }

    fn combination(&mut self) {
        let first = self.index();
        let length = 1 + self.below(self.model.window + 3) as u16;
        let range = SymbolRange::new(first, length).expect("short and far from the last index");
        let mut row = vec![0; usize::from(length)];
        match self.byte() {
            // Small values make linear dependence and cancellation frequent.
            key @ 0..=120 => {
                coefficients::generate_uniform(u32::from(key), &mut row);
                row.iter_mut().for_each(|coefficient| *coefficient %= 3);
            }
            key => coefficients::generate(u16::from(key), key % 16, &mut row),
        }
        let arrival = self.recoder.handle_combination(range, &row, &value(range, &row));
        assert_eq!(arrival, self.model.receive(first, &row), "{range:?} {row:?}");
    }

    /// Checks that a combination has the correct payload, lies in the requested range, and depends on the model's rows.
    fn combine(&mut self) {
        let first = self.index();
        let length = 1 + self.below(2 * self.model.window) as u16;
        let range = SymbolRange::new(first, length).expect("short and far from the last index");
        self.weights.resize(self.recoder.rank_in(range), 0);
        coefficients::generate(u16::from(self.byte()), 9, &mut self.weights);
        let (mut row, mut payload) = (vec![1; 3], vec![2; 5]);
        match self.recoder.combine(range, &self.weights, &mut row, &mut payload) {
            Ok(made) => {
                assert!(made.first() >= range.first() && made.end() <= range.end());
                assert!(made.first() >= self.recoder.floor());
                assert_eq!(row.len(), usize::from(made.length()));
                assert!(row[0] != 0 && row.last() != Some(&0));
                assert_eq!(payload, value(made, &row));
                let rank = self.model.rows.len();
                self.model.add(made.first(), &row);
                assert_eq!(self.model.rows.len(), rank, "a combination outside the span of the rows");
            }
            Err(error) => {
                assert_eq!(error, RecodeError::Nothing);
                assert!(self.weights.iter().all(|&weight| weight == 0));
            }
        }
        self.weights.push(1);
        let error = self.recoder.combine(range, &self.weights, &mut row, &mut payload);
        assert_eq!(error, Err(RecodeError::WeightCount));
    }

    /// Makes an invalid call, which must change nothing; the comparison afterwards checks this.
    fn nonsense(&mut self) {
        let first = self.index();
        let range = SymbolRange::new(first, 3).expect("short and far from the last index");
        match self.byte() % 4 {
            0 => assert!(self.recoder.handle_combination(range, &[1, 2], &[]).is_err()),
            1 => assert!(self.recoder.handle_combination(range, &[1; 3], &[1; SYMBOL_SIZE_MAX + 1]).is_err()),
            2 => assert!(self.recoder.handle_source(first, &[0; SYMBOL_SIZE_MAX + 1]).is_err()),
            _ => assert!(self.recoder.handle_source(u64::MAX, &[]).is_err()),
        }
    }

    fn compare(&self) {
        let (recoder, model) = (&self.recoder, &self.model);
        assert_eq!((recoder.rank(), recoder.floor()), (model.rows.len(), model.announced));
        assert_eq!(recoder.oldest_kept(), model.kept());
        assert_eq!(recoder.span().map(SymbolRange::first), model.rows.first().map(|row| model.pivot(row)));
        assert!(recoder.span().is_none_or(|span| span.end() == model.end));
        for index in model.base.saturating_sub(3)..model.end + 2 {
            let is_seen = model.rows.iter().any(|row| model.pivot(row) == index);
            assert_eq!(recoder.is_seen(index), is_seen, "{index}");
        }
        let all = recoder.span().map_or(0, |span| recoder.rank_in(span));
        assert_eq!(all, model.rows.len());
    }
}

impl Model {
    fn kept(&self) -> u64 {
        self.announced.max(self.end.saturating_sub(self.window))
    }

    fn receive(&mut self, first: u64, row: &[u8]) -> Result<Arrival, DecodeError> {
        let Some(lead) = row.iter().position(|&coefficient| coefficient != 0) else {
            return Ok(Arrival::Redundant);
        };
        let last = row.iter().rposition(|&coefficient| coefficient != 0).expect("there is a lead");
        if (last - lead) as u64 >= self.window {
            return Err(DecodeError::OutsideWindow);
        }
        if first + (lead as u64) < self.kept() {
            return Ok(Arrival::TooOld);
        }
        self.end = self.end.max(first + last as u64 + 1);
        self.forget();
        let rank = self.rows.len();
        self.add(first, row);
        Ok(if self.rows.len() > rank { Arrival::Innovative } else { Arrival::Redundant })
    }

    fn forget(&mut self) {
        let kept = self.kept();
        let columns = (kept - self.base) as usize;
        self.rows.retain(|row| lead(row) >= columns);
        self.rows.iter_mut().for_each(|row| drop(row.drain(..columns)));
        self.base = kept;
    }

    fn pivot(&self, row: &[u8]) -> u64 {
        self.base + lead(row) as u64
    }

    fn add(&mut self, first: u64, row: &[u8]) {
        let below = self.base.saturating_sub(first) as usize;
        let mut dense = vec![0; first.saturating_sub(self.base) as usize];
        dense.extend_from_slice(&row[below.min(row.len())..]);
        self.rows.push(dense);
        reduce(&mut self.rows);
    }
}

fn lead(row: &[u8]) -> usize {
    row.iter().position(|&coefficient| coefficient != 0).expect("no row is zero")
}

/// Brings a matrix into reduced row echelon form and removes zero rows.
fn reduce(rows: &mut Vec<Vec<u8>>) {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    rows.iter_mut().for_each(|row| row.resize(width, 0));
    let mut rank = 0;
    for column in 0..width {
        let Some(found) = (rank..rows.len()).find(|&row| rows[row][column] != 0) else { continue };
        rows.swap(rank, found);
        let lead = rows[rank].clone();
        let inverse = element::inverse(lead[column]).expect("not zero");
        for (_, row) in rows.iter_mut().enumerate().filter(|&(position, _)| position != rank) {
            let factor = element::mul(row[column], inverse);
            if factor != 0 {
                row.iter_mut().zip(&lead).for_each(|(c, &l)| *c ^= element::mul(factor, l));
            }
        }
        rank += 1;
    }
    rows.truncate(rank);
}

#[cfg(test)]
mod tests {
    use super::run;
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn the_recoder_equals_naive_elimination_under_any_operations(bytes in vec(any::<u8>(), 0..600)) {
            run(&bytes);
        }
    }
}
