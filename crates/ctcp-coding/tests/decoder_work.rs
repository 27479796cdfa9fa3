//! Bounds the cost of an arrival from any sender, in bytes read as the decoder counts them, for the most expensive
//! sequences.

use ctcp_coding::{Arrival, Decoder, DecoderConfig, SymbolRange, coefficients};

const SYMBOL: usize = 1_440;
/// The size of a symbol's buffer in whole cache lines.
const STRIDE: u64 = 1_472;
const WINDOW: u64 = 8_192;
const BLOCK: u64 = 256;

/// As in a connection: the window of the default profile, and blocks that do not overlap.
const CONFIG: DecoderConfig = DecoderConfig {
    symbol_size_max: SYMBOL,
    window: WINDOW as usize,
    equations_max: 1_024,
    component_max: BLOCK as usize,
};

/// Reduction, addition to the basis, and a search for the ends of all rows.
const ELIMINATION_MAX: u64 = 3 * BLOCK * BLOCK;

/// Elimination, plus the computation of all symbols of a block at once: contents, coefficients of known symbols, and
/// the removal of equations.
const SOLUTION_MAX: u64 = ELIMINATION_MAX + BLOCK * BLOCK * STRIDE + 2 * BLOCK * BLOCK * BLOCK;

/// A decoder and the maximum cost of an arrival so far.
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

    /// Adds a row for each symbol of a chain of ranges, and one at the far end of the window.
    fn chain(&mut self) {
        (0..768).for_each(|first| {
            self.combine(first, first, &[]);
        });
        self.combine(WINDOW - BLOCK, 768, &[]);
    }
}

#[test]
fn overlapping_ranges_cost_no_more_per_arrival_than_one_block() {
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
fn without_the_component_limit_an_arrival_exceeds_the_bound() {
    let mut measured = Measured::new(DecoderConfig { component_max: WINDOW as usize, ..CONFIG });
    measured.chain();
    println!("{} bytes", measured.most);
    assert!(measured.most > 768 * 1_000, "{} bytes for an arrival", measured.most);
}

#[test]
fn the_arrival_that_solves_a_block_costs_at_most_the_square_of_the_block() {
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
fn memory_of_rows_does_not_depend_on_the_distance_of_their_blocks() {
    let mut measured = Measured::new(CONFIG);
    for block in [0, 8, 16, 31] {
        (0..BLOCK - 1).for_each(|key| {
            measured.combine(block * BLOCK, key, &[]);
        });
    }
    // Equations not over the oldest symbol stop at three quarters of the limit, 768. The last quarter is reserved.
    let equations = measured.decoder.equations() as u64;
    assert!(equations >= 768, "{equations}");
    let (payloads, coefficients) = (equations * (STRIDE + 64), equations * BLOCK);
    // A row for each equation and half as many in reserve, and the positions of all equations in the ring.
    let bound = payloads + coefficients + equations * BLOCK * 3 / 2 + WINDOW * 48;
    let memory = measured.decoder.memory() as u64;
    assert!(memory <= bound + (16 << 10), "{memory} bytes, the bound is {bound}");
}

#[test]
fn a_combination_that_links_too_many_symbols_is_dropped_and_separate_blocks_are_accepted() {
    let mut measured = Measured::new(CONFIG);
    assert_eq!(measured.combine(BLOCK, 0, &[]), Arrival::Innovative);
    assert_eq!(measured.combine(BLOCK + 1, 1, &[]), Arrival::NoRoom);
    assert_eq!(measured.combine(1, 2, &[]), Arrival::NoRoom);
    assert_eq!(measured.combine(0, 3, &[]), Arrival::Innovative);
    assert_eq!(measured.combine(2 * BLOCK, 4, &[]), Arrival::Innovative);
    assert_eq!(measured.decoder.equations(), 3);
    // Known symbols link nothing.
    (0..BLOCK).for_each(|index| measured.source(index));
    assert_eq!(measured.combine(1, 5, &[]), Arrival::Innovative);
    assert_eq!(measured.combine(BLOCK + 1, 6, &[]), Arrival::NoRoom);
}

/// Rows that outlive a symbol of their component are made anew, each from all equations of the component. Large components are dropped
/// instead.
#[test]
fn giving_up_symbols_one_by_one_costs_no_more_than_solving_a_block() {
    for chain in [10, 33, 200, 768_u64] {
        let mut decoder = Decoder::new(DecoderConfig::new(SYMBOL, 1_024));
        let arrive = |decoder: &mut Decoder, first: u64, payload: &[u8]| {
            let row: Vec<u8> = (0..BLOCK).map(|i| (i * i * 7 + first * 13 + i * first) as u8 | 1).collect();
            let range = SymbolRange::new(first, BLOCK as u16).expect("a range");
            decoder.handle_combination(range, &row, payload).expect("within the window");
            while decoder.poll_decoded().is_some() {}
        };
        (0..chain).for_each(|first| arrive(&mut decoder, first, &[1; SYMBOL]));
        for floor in 1..=50 {
            let before = decoder.work();
            decoder.skip_before(floor);
            let work = decoder.work() - before;
            assert!(work <= ELIMINATION_MAX + 32 * 32 * (STRIDE + 1_024), "{chain} rows: {work} bytes");
            arrive(&mut decoder, chain - 1 + floor, &[]);
        }
    }
}
