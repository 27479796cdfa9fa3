//! The savings and the overhead of the sparse code.

use super::*;
use ctcp_coding::coefficients::{DENSITY_MAX, generate};
use ctcp_coding::echelon::Work;
use ctcp_coding::{Arrival, Decoder, DecoderConfig, Encoder};

/// xorshift64*.
struct TestRandom(u64);

impl TestRandom {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 13) as u8).collect()
    }
}

fn range(first: u64, length: u16) -> SymbolRange {
    SymbolRange::new(first, length).unwrap()
}

fn row(sent: KeyedRange) -> Vec<u8> {
    let mut row = vec![0; usize::from(sent.range.length())];
    generate(sent.key, DENSITY_MAX, &mut row);
    row
}

// Requirement: U2
#[test]
fn the_symbols_go_first_and_the_window_doubles_near_the_end() {
    let mut code = SparseCode::new(range(100, 64), 8);
    assert!((100..164).all(|index| code.next(64) == Some(SparseChoice::Source(index))));
    assert_eq!(code.next(0), None);
    let mut lengths = Vec::new();
    for missing in [5, 4, 3, 3, 3, 3, 1] {
        let Some(SparseChoice::Combination(sent)) = code.next(missing) else { panic!("no combination") };
        assert!(sent.range.first() >= 100 && sent.range.end() <= 164);
        assert_eq!(usize::from(sent.key), lengths.len());
        lengths.push(sent.range.length());
    }
    assert_eq!(lengths, [8, 8, 16, 32, 64, 64, 64]);
}

#[test]
fn repairs_stay_inside_a_block_that_loses_its_beginning_or_grows() {
    let mut repairs = SparseRepairs::new(8);
    let blocks = [(range(0, 64), 8), (range(60, 4), 4), (range(60, 1), 1), (range(60, 64), 8)];
    for (key, (block, length)) in blocks.into_iter().enumerate() {
        let sent = repairs.next(block, 60);
        assert!(block.first() <= sent.range.first() && sent.range.end() <= block.end(), "{sent:?}");
        assert_eq!((sent.range.length(), usize::from(sent.key)), (length, key));
    }
    let lengths: Vec<u16> = (0..4).map(|_| repairs.next(range(60, 64), 1).range.length()).collect();
    assert_eq!(lengths, [16, 32, 64, 64]);
}

#[test]
fn combinations_are_spread_evenly_over_the_block() {
    for count in [8_usize, 16, 64] {
        let mut code = SparseCode::new(range(0, 128), 4);
        assert!((0..128).all(|_| code.next(128).is_some()));
        let mut share = [0_usize; 8];
        for _ in 0..count {
            let Some(SparseChoice::Combination(sent)) = code.next(128) else { panic!("no combination") };
            share[(sent.range.first() as usize + 2) / 16] += 1;
        }
        let expected = count / 8;
        assert!(share.iter().all(|part| part.abs_diff(expected) <= 1), "{share:?}");
    }
}

#[test]
fn the_coding_window_shrinks_with_the_loss() {
    let windows = [0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0].map(|loss| coding_window(128, loss));
    assert_eq!(windows, [128, 128, 128, 101, 71, 50, 32, 22]);
    assert_eq!([coding_window(0, 0.1), coding_window(1, 0.1), coding_window(4095, 1e-300)], [1, 1, 4095]);
    assert_eq!(coding_window(128, f64::NAN), 128);
}

/// Returns the redundant arrivals per block of `n` symbols, and the mean length of a combination.
fn overhead(n: u16, window: u16, loss: f64, blocks: u64) -> (f64, f64) {
    let mut random = TestRandom::new(u64::from(window) * 1000 + (loss * 100.0) as u64);
    let mut decoder = SparseDecoder::new(range(0, n), 1);
    let (mut wasted, mut combinations, mut length) = (0_u64, 0_u64, 0_u64);
    for _ in 0..blocks {
        decoder.restart(range(0, n));
        let mut code = SparseCode::new(range(0, n), window);
        while let Some(choice) = code.next(n - decoder.rank() as u16) {
            if let SparseChoice::Combination(sent) = choice {
                combinations += 1;
                length += u64::from(sent.range.length());
            }
            if random.below(1_000_000) < (loss * 1e6) as u64 {
                continue;
            }
            let arrival = match choice {
                SparseChoice::Source(index) => decoder.handle_source(index, &[]),
                SparseChoice::Combination(sent) => decoder.handle_combination(sent.range, &row(sent), &[]),
            };
            wasted += u64::from(arrival == Ok(Arrival::Redundant));
        }
    }
    (wasted as f64 / blocks as f64, length as f64 / combinations.max(1) as f64)
}

// Requirement: U2
#[test]
fn a_longer_window_wastes_less_at_every_loss() {
    // Rows: loss 0, 5, 10, 20 %. Columns: coding_wnd 4, 16, 64, 128. Packets wasted in a block of 128 symbols.
    for loss in [0.0, 0.05, 0.1, 0.2] {
        let wasted = [4, 16, 64, 128].map(|window| overhead(128, window, loss, 60).0);
        assert!(wasted.windows(2).all(|pair| pair[1] <= pair[0] + 0.1), "{loss}: {wasted:?}");
        assert!(wasted[3] < 0.2 && (loss > 0.0 || wasted == [0.0; 4]), "{loss}: {wasted:?}");
    }
}

// Requirement: U2
#[test]
fn the_coding_window_by_loss_wastes_less_than_a_packet_per_block() {
    for n in [32, 64, 128, 256] {
        for loss in [0.01, 0.02, 0.05, 0.1, 0.2] {
            let (wasted, _) = overhead(n, coding_window(n, loss), loss, 60);
            assert!(wasted < 0.8, "{n} symbols, loss {loss}: {wasted}");
        }
    }
}

/// Run with `cargo test -p ctcp-baselines --lib table_of_overhead -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn table_of_overhead() {
    for n in [64, 128, 256] {
        std::println!("{n} symbols; by row: loss, by column: coding_wnd 1 2 4 ... n, then the one by loss");
        for loss in [0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2] {
            let mut line = std::format!("{loss:5}");
            let windows = (0..).map(|power| 1 << power).take_while(|&window| window <= n);
            for window in windows.chain([coding_window(n, loss)]) {
                let (wasted, length) = overhead(n, window, loss, 400);
                line += &std::format!("  {window}: {wasted:.2} ({length:.0})");
            }
            std::println!("{line}");
        }
    }
}

/// Returns the work to decode a block of `n` symbols with a coding window of `window` at the given loss.
fn work(n: u16, window: u16, loss: u64, seed: u64) -> Work {
    let mut random = TestRandom::new(seed);
    let mut decoder = SparseDecoder::new(range(0, n), 1);
    // First combinations whose first symbols form a permutation (section 3.1.5), then combinations chosen by the code.
    let mut firsts: Vec<u64> = (0..u64::from(n)).collect();
    for last in (1..firsts.len()).rev() {
        firsts.swap(last, random.below(last as u64 + 1) as usize);
    }
    let mut code = SparseCode::new(range(0, n), window);
    assert!((0..n).all(|_| code.next(n).is_some()));
    for key in 0.. {
        let sent = match firsts.pop() {
            Some(first) => {
                let length = window.min(n - first as u16);
                KeyedRange { range: range(first, length), key }
            }
            None => match code.next(n - decoder.rank() as u16) {
                Some(SparseChoice::Combination(sent)) => sent,
                _ => break,
            },
        };
        if random.below(100) >= loss {
            let row = random.bytes(usize::from(sent.range.length()));
            decoder.handle_combination(sent.range, &row, &[]).unwrap();
        }
    }
    assert!(decoder.is_decoded());
    decoder.work()
}

/// Returns the mean of log2(next / previous) over values for sizes that double.
fn slope(values: &[u64]) -> f64 {
    (*values.last().unwrap() as f64 / values[0] as f64).log2() / (values.len() - 1) as f64
}

/// Returns coefficient products and payload additions for n = 64, 128, ... 1024, summed over some blocks.
fn work_by_size(window: u16, loss: u64, blocks: u64) -> [[u64; 5]; 2] {
    let work = [64, 128, 256, 512, 1024]
        .map(|n| (0..blocks).map(|seed| work(n, window.min(n), loss, seed)).collect::<Vec<_>>());
    let sum = |part: fn(&Work) -> u64| work.each_ref().map(|work| work.iter().map(part).sum());
    [sum(|work| work.coefficient_products), sum(|work| work.payload_terms)]
}

// Requirement: U1
#[test]
fn elimination_stays_inside_the_band() {
    for loss in [0, 10] {
        let [coefficients, payloads] = work_by_size(8, loss, 4);
        // The thesis promises an exponent of 2. For coefficients, the dense code has 3.
        assert!(loss == 0 || slope(&coefficients) < 2.0, "{coefficients:?}");
        assert!(slope(&payloads) < 1.6, "{loss}: {payloads:?}");
        // Without loss no row needs elimination, and back-substitution adds at most a window per row.
        assert!(loss > 0 || payloads[4] < 4 * 1024 * 10, "{payloads:?}");
    }
}

// Requirement: U1
#[test]
fn a_dense_block_costs_a_third_of_n_cubed_products_and_n_squared_payloads() {
    let sizes = [64, 128, 256];
    let dense = sizes.map(|n| {
        let mut random = TestRandom::new(u64::from(n));
        let mut decoder = SparseDecoder::new(range(0, n), 1);
        while !decoder.is_decoded() {
            decoder.handle_combination(range(0, n), &random.bytes(usize::from(n)), &[]).unwrap();
        }
        decoder.work()
    });
    for (n, work) in sizes.into_iter().zip(dense) {
        let n = f64::from(n);
        let (coefficients, payloads) =
            (work.coefficient_products as f64 / (n * n * n / 3.0), work.payload_terms as f64 / (n * n));
        assert!((0.95..1.05).contains(&coefficients) && (0.95..1.05).contains(&payloads), "{work:?}");
    }
}

/// Run with `cargo test -p ctcp-baselines --lib table_of_work -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn table_of_work() {
    for (window, loss) in [(8, 0), (8, 10), (8, 20), (32, 10), (u16::MAX, 10)] {
        let blocks = if window == u16::MAX { 1 } else { 10 };
        std::println!("window {window}, loss {loss} %, a block");
        for (name, work) in
            ["coefficients", "payloads    "].into_iter().zip(work_by_size(window, loss, blocks))
        {
            std::println!("  {name} {:?} slope {:.2}", work.map(|work| work / blocks), slope(&work));
        }
    }
}

// Requirement: U1
#[test]
fn both_decoders_recover_what_the_sparse_code_sent() {
    const SIZE: usize = 300;
    let mut random = TestRandom::new(8);
    let mut sparse = SparseDecoder::new(range(0, 1), SIZE);
    let blocks = [(1, 1), (7, 3), (64, 8), (100, 20)];
    for (n, window) in blocks.into_iter().take(if cfg!(miri) { 2 } else { blocks.len() }) {
        let mut encoder = Encoder::new(SIZE, usize::from(n));
        (0..n).for_each(|_| assert!(encoder.push(&random.bytes(SIZE)).is_ok()));
        let block = range(0, n);
        sparse.restart(block);
        let mut general = Decoder::new(DecoderConfig::new(SIZE, usize::from(n)));
        let mut code = SparseCode::new(block, window);
        let mut payload = Vec::new();
        while let Some(choice) = code.next(n - sparse.rank() as u16) {
            let is_lost = random.below(4) == 0;
            let arrivals = match choice {
                _ if is_lost => continue,
                SparseChoice::Source(index) => {
                    let contents = encoder.symbol(index).unwrap();
                    let arrival = sparse.handle_source(index, contents);
                    assert_eq!(sparse.symbol(index), Some(contents));
                    [arrival, general.handle_source(index, contents)]
                }
                SparseChoice::Combination(sent) => {
                    let row = row(sent);
                    encoder.combine(sent.range, &row, &mut payload).unwrap();
                    [
                        sparse.handle_combination(sent.range, &row, &payload),
                        general.handle_combination(sent.range, &row, &payload),
                    ]
                }
            };
            assert_eq!(arrivals[0], arrivals[1]);
        }
        for index in block.indexes() {
            assert_eq!(sparse.symbol(index), encoder.symbol(index));
            assert_eq!(general.symbol(index), encoder.symbol(index));
        }
        assert_eq!(sparse.handle_source(0, &[1]), Ok(Arrival::Redundant));
        assert!(sparse.handle_source(u64::from(n), &[1]).is_err());
    }
}
