//! Measures how often random combinations are independent, and compares it with theory.
#![allow(clippy::print_stdout, reason = "shows its figures with --nocapture")]

use ctcp_coding::coefficients::{DENSITY_MAX, generate, generate_uniform};
use ctcp_coding::gf256::{self, element};

/// Returns the rank of the matrix with these rows, all of the same length.
fn rank(rows: &mut [Vec<u8>]) -> usize {
    let width = rows.first().map_or(0, Vec::len);
    let mut rank = 0;
    for column in 0..width {
        let Some(found) = (rank..rows.len()).find(|&row| rows[row][column] != 0) else { continue };
        rows.swap(rank, found);
        let (done, rest) = rows.split_at_mut(rank + 1);
        let lead = &done[rank][column..];
        let inverse = element::inverse(lead[0]).expect("not zero");
        for row in rest {
            let factor = element::mul(row[column], inverse);
            if factor != 0 {
                gf256::mul_add(&mut row[column..], factor, lead);
            }
        }
        rank += 1;
    }
    rank
}

fn rows(n: usize, keys: std::ops::Range<u16>) -> Vec<Vec<u8>> {
    let row = |key| {
        let mut row = vec![0; n];
        generate(key, DENSITY_MAX, &mut row);
        row
    };
    keys.map(row).collect()
}

// Requirement: C2
#[test]
fn consecutive_keys_give_full_rank_up_to_1024_symbols() {
    // The low bit of TinyMT32 alone is linear over GF(2) with 127 bits of state; whole bytes are not.
    for n in [1_u16, 2, 16, 32, 64, 127, 128, 129, 200, 256, 512, 1024] {
        for first in [0, 1, 5_000] {
            let mut rows = rows(usize::from(n), first..first + n + 1);
            let all = rank(&mut rows);
            assert_eq!(all, usize::from(n), "{n} symbols, keys from {first}, one more than symbols");
        }
        let found = rank(&mut rows(usize::from(n), 0..n));
        assert!(found + 1 >= usize::from(n), "{n} symbols, as many keys: {found}");
    }
}

#[test]
fn the_low_bit_alone_is_linear_and_stops_at_127() {
    let n = 200;
    let mut bits = rows(n, 0..400);
    for (key, row) in bits.iter_mut().enumerate() {
        generate_uniform(key as u32, row);
        row.iter_mut().for_each(|byte| *byte &= 1);
    }
    let found = rank(&mut bits);
    println!("rank {found} of the low bits");
    assert!(found < n, "the low bits have full rank {found}: they are not linear");
}

/// Returns the probability that `n + extra` rows of `n` uniform elements of GF(256) have a rank below `n`: 1 - product
/// over i = extra + 1 ... n + extra of (1 - 256^-i).
fn theory(n: u32, extra: u32) -> f64 {
    let (mut full, mut power) = (1.0, 256_f64.powi(-(extra as i32)));
    for _ in 0..n {
        power /= 256.0;
        full *= 1.0 - power;
    }
    1.0 - full
}

/// Returns how many of `draws` matrices lack full rank, with uniform coefficients or with those of consecutive keys.
fn lacking(n: u16, extra: u16, draws: u32, is_uniform: bool) -> u32 {
    let count = n + extra;
    let mut lacking = 0;
    for draw in 0..draws {
        let first = (draw.wrapping_mul(u32::from(count)) % (65_536 - u32::from(count))) as u16;
        let mut matrix = vec![vec![0; usize::from(n)]; usize::from(count)];
        for (number, row) in matrix.iter_mut().enumerate() {
            if is_uniform {
                generate_uniform(draw * u32::from(count) + number as u32, row);
            } else {
                // All matrices differ: with each round through the keys they begin one symbol later.
                let skip = (draw / (65_536 / u32::from(count))) as usize;
                let mut longer = vec![0; usize::from(n) + skip];
                generate(first + number as u16, DENSITY_MAX, &mut longer);
                row.copy_from_slice(&longer[skip..]);
            }
        }
        lacking += u32::from(rank(&mut matrix) < usize::from(n));
    }
    lacking
}

fn check(n: u16, extra: u16, draws: u32) {
    for is_uniform in [true, false] {
        let found = lacking(n, extra, draws, is_uniform);
        let expected = theory(u32::from(n), u32::from(extra)) * f64::from(draws);
        let deviation = (f64::from(found) - expected) / expected.sqrt().max(1.0);
        let kind = if is_uniform { "uniform" } else { "keys, density 15" };
        println!("{n} symbols, {extra} extra, {kind}: {found} of {draws} lack rank, theory {expected:.1}");
        assert!(deviation.abs() < 4.5, "{deviation} standard deviations");
    }
}

// Requirement: C2
#[test]
fn random_rows_lack_full_rank_as_rarely_as_theory_says() {
    check(32, 0, 20_000);
    check(64, 0, 5_000);
    check(128, 0, 1_500);
    [32, 64, 128].into_iter().for_each(|n| check(n, 1, 500));
}

/// Run with `cargo test --release -p ctcp-coding --test coefficient_rank -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn random_rows_lack_full_rank_as_rarely_as_theory_says_in_many_draws() {
    for (n, draws) in [(32, 1_000_000), (64, 200_000), (128, 40_000)] {
        (0..2).for_each(|extra| check(n, extra, draws));
    }
}
