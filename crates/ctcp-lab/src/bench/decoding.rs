//! Decoding of whole blocks with some symbols lost, or from combinations alone.

use std::time::Duration;

use ctcp_coding::{Decoder, DecoderConfig, SymbolRange, coefficients, gf256};
use serde::Serialize;

use super::packets::{Packets, Random, SYMBOL};
use super::stopwatch::{Shortest, repeat};

/// Symbols in a block and the share that is lost; 1 means combinations alone.
const CELLS: [(usize, f64); 12] = [
    (32, 0.05),
    (32, 0.1),
    (32, 0.2),
    (32, 0.5),
    (128, 0.05),
    (128, 0.1),
    (128, 0.2),
    (128, 0.5),
    (32, 1.0),
    (64, 1.0),
    (128, 1.0),
    (256, 1.0),
];
/// Runs per timing, so that reading the clock does not distort the result.
const RUNS: usize = 8;

/// One line of the table.
#[derive(Serialize)]
pub(super) struct Speed {
    /// `ctcp`: the decoder of connections, which accepts packets in any order and copies each into its window.
    pub(super) library: &'static str,
    pub(super) n: usize,
    pub(super) loss: f64,
    pub(super) dense: bool,
    /// Decoded bytes, in 10^6 per second.
    pub(super) mbps: f64,
}

/// The packets that arrived of one block.
struct Case {
    n: usize,
    loss: f64,
    symbols: Packets,
    is_lost: Vec<bool>,
    rows: Vec<Vec<u8>>,
    payloads: Packets,
}

pub(super) fn measure(time: Duration) -> Vec<Speed> {
    let cases: Vec<Case> = CELLS.iter().map(|&(n, loss)| Case::new(n, loss)).collect();
    cases.iter().map(|case| measure_case(case, time / CELLS.len() as u32)).collect()
}

fn measure_case(case: &Case, time: Duration) -> Speed {
    let mut window = Window::new(case);
    let mut shortest = Shortest::new();
    repeat(time, || {
        window.run();
        shortest.time(|| (0..RUNS).for_each(|_| window.run()));
    });
    window.check();
    Speed {
        library: "ctcp",
        n: case.n,
        loss: case.loss,
        dense: case.rows.len() == case.n,
        mbps: ((RUNS * case.n * SYMBOL) as f64 / shortest.seconds() / 1e6).round(),
    }
}

impl Case {
    fn new(n: usize, loss: f64) -> Self {
        let mut random = Random::new(7);
        let symbols = Packets::random(n, &mut random);
        let lost = ((n as f64 * loss).round() as usize).clamp(1, n);
        let mut is_lost = vec![false; n];
        while is_lost.iter().filter(|&&is_lost| is_lost).count() < lost {
            is_lost[random.below(n)] = true;
        }
        let rows = independent_rows(&is_lost);
        let mut payloads = Packets::zeroed(lost);
        let sources = symbols.all(n);
        for (payload, row) in payloads.all_mut(lost).into_iter().zip(&rows) {
            gf256::combine(payload, row, &sources);
        }
        Self { n, loss, symbols, is_lost, rows, payloads }
    }

    fn arrived(&self) -> impl Iterator<Item = usize> {
        (0..self.n).filter(|&index| !self.is_lost[index])
    }
}

/// Rows for as many consecutive keys as symbols are lost, skipping keys whose rows are not independent.
fn independent_rows(is_lost: &[bool]) -> Vec<Vec<u8>> {
    let n = is_lost.len();
    let mut decoder = Decoder::new(DecoderConfig::new(1, n));
    for index in (0..n).filter(|&index| !is_lost[index]) {
        decoder.handle_source(index as u64, &[]).expect("inside the window");
    }
    let range = SymbolRange::new(0, n as u16).expect("blocks are short");
    let mut rows = Vec::new();
    for key in 0.. {
        if decoder.rank_in(range) == n {
            break;
        }
        let mut row = vec![0; n];
        coefficients::generate(key, coefficients::DENSITY_MAX, &mut row);
        let before = decoder.rank_in(range);
        decoder.handle_combination(range, &row, &[]).expect("inside the window");
        if decoder.rank_in(range) > before {
            rows.push(row);
        }
    }
    rows
}

/// The decoder of connections, decoding block after block.
struct Window<'c> {
    case: &'c Case,
    decoder: Decoder,
    first: u64,
}

impl<'c> Window<'c> {
    fn new(case: &'c Case) -> Self {
        Self { case, decoder: Decoder::new(DecoderConfig::new(SYMBOL, 2 * case.n)), first: 0 }
    }

    fn run(&mut self) {
        let case = self.case;
        // The previous block is kept until now, so that it can be checked.
        self.first = self.decoder.known_end();
        self.decoder.release_before(self.first);
        for index in case.arrived() {
            let index_now = self.first + index as u64;
            self.decoder.handle_source(index_now, case.symbols.packet(index)).expect("inside the window");
        }
        let range = SymbolRange::new(self.first, case.n as u16).expect("blocks are short");
        for (r, row) in case.rows.iter().enumerate() {
            self.decoder.handle_combination(range, row, case.payloads.packet(r)).expect("inside the window");
        }
        while self.decoder.poll_decoded().is_some() {}
    }

    fn check(&self) {
        for index in 0..self.case.n {
            let symbol = self.decoder.symbol(self.first + index as u64);
            assert!(symbol == Some(self.case.symbols.packet(index)), "a decoded symbol is wrong");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_recovered() {
        for (n, loss) in CELLS {
            let case = Case::new(n, loss);
            let mut window = Window::new(&case);
            for _ in 0..2 {
                window.run();
                window.check();
            }
        }
    }
}
