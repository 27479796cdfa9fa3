//! What an arrival can cost, whoever made it: bytes read, as the decoder counts them, for the sequences that cost most.

use ctcp_coding::{Arrival, Decoder, DecoderConfig, SymbolRange, coefficients};

const SYMBOL: usize = 1_440;
/// Its buffer in whole cache lines.
const STRIDE: u64 = 1_472;
const WINDOW: u64 = 8_192;
const BLOCK: u64 = 256;

/// As a connection's: the window of the default profile, and blocks that are apart.
const CONFIG: DecoderConfig = DecoderConfig {
    symbol_size_max: SYMBOL,
    window: WINDOW as usize,
    equations_max: 1_024,
    component_max: BLOCK as usize,
};

/// Reduction, addition to the basis, and a search for the ends of all rows.
const ELIMINATION_MAX: u64 = 3 * BLOCK * BLOCK;

/// The same, and all symbols of a block computed at once: their contents, the coefficients of what is known, and the equations that go.
const SOLUTION_MAX: u64 = ELIMINATION_MAX + BLOCK * BLOCK * STRIDE + 2 * BLOCK * BLOCK * BLOCK;

/// A decoder, and the most that an arrival has cost it.
struct Measured {
    decoder: Decoder,
    most: u64,
    arrivals: u64,
}

impl Measured {
    fn new(config: DecoderConfig) -> Self {
        Self { decoder: Decoder::new(config), most: 0, arrivals: 0 }
    }

    fn note(&mut self, before: u64) {
        while self.decoder.poll_decoded().is_some() {}
        self.most = self.most.max(self.decoder.work() - before);
        self.arrivals += 1;
    }

    fn combine(&mut self, first: u64, key: u64, payload: &[u8]) -> Arrival {
        let mut row = [0; BLOCK as usize];
        coefficients::generate(key as u16, 15, &mut row);
        let range = SymbolRange::new(first, BLOCK as u16).expect("a range");
        let before = self.decoder.work();
        let arrival = self.decoder.handle_combination(range, &row, payload).expect("within the window");
        self.note(before);
        arrival
    }

    fn source(&mut self, index: u64) {
        let before = self.decoder.work();
        self.decoder.handle_source(index, &[]).expect("within the window");
        self.note(before);
    }

    /// A row for each symbol of a chain of ranges, and one far behind.
    fn chain(&mut self) {
        (0..768).for_each(|first| {
            self.combine(first, first, &[]);
        });
        self.combine(WINDOW - BLOCK, 768, &[]);
    }
}

#[test]
fn rows_of_overlapping_ranges_make_no_arrival_dearer_than_rows_of_a_block() {
    let mut measured = Measured::new(CONFIG);
    measured.chain();
    for key in 0..1_000 {
        measured.combine(key * 7 % 1_000, key, &[]);
    }
    for index in (1..1_024).rev() {
        measured.source(index);
    }
    assert!(measured.most <= ELIMINATION_MAX, "{} bytes for an arrival", measured.most);
}

#[test]
fn without_the_bound_on_what_hangs_together_an_arrival_costs_a_hundred_times_as_much() {
    let mut measured = Measured::new(DecoderConfig { component_max: WINDOW as usize, ..CONFIG });
    measured.chain();
    println!("{} bytes", measured.most);
    assert!(measured.most > 768 * 1_000, "{} bytes for an arrival", measured.most);
}

#[test]
fn the_arrival_that_solves_a_block_costs_no_more_than_the_block_squared() {
    let mut measured = Measured::new(CONFIG);
    for block in 0..8 {
        for key in 0..BLOCK {
            measured.combine(block * BLOCK, key, &[0; SYMBOL]);
        }
    }
    assert_eq!(measured.decoder.oldest_undecoded(), 8 * BLOCK);
    assert!(measured.most <= SOLUTION_MAX, "{} bytes for an arrival", measured.most);
    let mean = measured.decoder.work() / measured.arrivals;
    assert!(mean <= SOLUTION_MAX / BLOCK + ELIMINATION_MAX, "{mean} bytes for an arrival on average");
}

#[test]
fn rows_take_no_more_memory_than_their_blocks_however_far_apart_those_are() {
    let mut measured = Measured::new(CONFIG);
    for block in [0, 8, 16, 31] {
        (0..BLOCK - 1).for_each(|key| {
            measured.combine(block * BLOCK, key, &[]);
        });
    }
    // All of the first block, and three quarters of the others: the last quarter is for the oldest symbol.
    let equations = measured.decoder.equations() as u64;
    assert!(equations >= 768, "{equations}");
    let (payloads, coefficients) = (equations * (STRIDE + 64), equations * BLOCK);
    // A row for each, and half as many in reserve; the places of all equations.
    let bound = payloads + coefficients + equations * BLOCK * 3 / 2 + WINDOW * 48;
    let memory = measured.decoder.memory() as u64;
    assert!(memory <= bound + (16 << 10), "{memory} bytes, the bound is {bound}");
}

#[test]
fn what_links_too_many_symbols_is_not_taken_and_blocks_that_are_apart_are() {
    let mut measured = Measured::new(CONFIG);
    assert_eq!(measured.combine(BLOCK, 0, &[]), Arrival::Innovative);
    assert_eq!(measured.combine(BLOCK + 1, 1, &[]), Arrival::NoRoom);
    assert_eq!(measured.combine(1, 2, &[]), Arrival::NoRoom);
    assert_eq!(measured.combine(0, 3, &[]), Arrival::Innovative);
    assert_eq!(measured.combine(2 * BLOCK, 4, &[]), Arrival::Innovative);
    assert_eq!(measured.decoder.equations(), 3);
    // What is known already links nothing.
    (0..BLOCK).for_each(|index| measured.source(index));
    assert_eq!(measured.combine(1, 5, &[]), Arrival::Innovative);
    assert_eq!(measured.combine(BLOCK + 1, 6, &[]), Arrival::NoRoom);
}
