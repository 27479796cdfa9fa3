//! Benchmarks of every engine's kernels, of the decoder and of the coefficients: `cargo bench -p ctcp-coding`.
//!
//! `ctcp-lab bench codec` interleaves its measurements and compares them with bounds. Here each benchmark runs alone
//! and reports its spread.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ctcp_coding::gf256::Engine;
use ctcp_coding::{Decoder, DecoderConfig, SymbolRange, coefficients};
use std::hint::black_box;

const SYMBOL: usize = 1344;

/// `count` symbols, each aligned to cache lines.
struct Symbols {
    storage: Vec<u8>,
    start: usize,
}

impl Symbols {
    fn new(count: usize) -> Self {
        let mut storage = vec![0; count * SYMBOL + 64];
        coefficients::generate_uniform(1, &mut storage);
        let start = storage.as_ptr().align_offset(64);
        Self { storage, start }
    }

    fn all(&self) -> Vec<&[u8]> {
        self.storage[self.start..].chunks_exact(SYMBOL).collect()
    }

    fn all_mut(&mut self) -> Vec<&mut [u8]> {
        self.storage[self.start..].chunks_exact_mut(SYMBOL).collect()
    }
}

fn rows(count: usize, n: usize) -> Vec<Vec<u8>> {
    let row = |key| {
        let mut row = vec![0; n];
        coefficients::generate(key, coefficients::DENSITY_MAX, &mut row);
        row
    };
    (0..count as u16).map(row).collect()
}

fn repairs(criterion: &mut Criterion) {
    for n in [32, 128] {
        let (symbols, mut repairs) = (Symbols::new(n), Symbols::new(4));
        let (sources, rows) = (symbols.all(), rows(4, n));
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        let mut outs = repairs.all_mut();
        for engine in Engine::available() {
            let mut group = criterion.benchmark_group(format!("{} over {n} symbols", engine.name()));
            group.throughput(Throughput::Bytes((n * SYMBOL) as u64));
            group.bench_function("sum", |bencher| bencher.iter(|| engine.sum(outs[0], black_box(&sources))));
            for outputs in [1, 4] {
                group.throughput(Throughput::Bytes((outputs * n * SYMBOL) as u64));
                group.bench_function(BenchmarkId::new("repairs", outputs), |bencher| {
                    bencher.iter(|| {
                        engine.combine_rows(&mut outs[..outputs], &rows[..outputs], black_box(&sources));
                    });
                });
            }
        }
    }
}

fn decoders(criterion: &mut Criterion) {
    for (n, missing) in [(32, 2), (32, 16), (128, 13), (128, 128)] {
        let symbols = Symbols::new(n);
        let (sources, rows) = (symbols.all(), rows(missing, n));
        let mut payloads = Symbols::new(missing);
        for (payload, row) in payloads.all_mut().into_iter().zip(&rows) {
            Engine::current().combine(payload, row, &sources);
        }
        let payloads = payloads.all();
        let mut group = criterion.benchmark_group(format!("{n} symbols, {missing} missing"));
        group.throughput(Throughput::Bytes((n * SYMBOL) as u64));
        // The first symbols are missing; the choice does not affect the amount of work.
        let combinations: Vec<(&[u8], &[u8])> =
            rows.iter().zip(&payloads).map(|(row, payload)| (&row[..], *payload)).collect();
        let mut decoder = Decoder::new(DecoderConfig::new(SYMBOL, 2 * n));
        group.bench_function("window", |bencher| {
            bencher.iter(|| run_window(&mut decoder, &sources[missing..], &combinations));
        });
    }
}

/// Decodes one block: the symbols that arrived, then the combinations, until everything is polled.
fn run_window(decoder: &mut Decoder, arrived: &[&[u8]], combinations: &[(&[u8], &[u8])]) {
    let first = decoder.known_end();
    let range = SymbolRange::new(first, (arrived.len() + combinations.len()) as u16).expect("short");
    for (index, symbol) in (first + combinations.len() as u64..).zip(arrived) {
        decoder.handle_source(index, symbol).expect("inside the window");
    }
    for (coefficients, payload) in combinations {
        decoder.handle_combination(range, coefficients, payload).expect("inside the window");
    }
    while decoder.poll_decoded().is_some() {}
    assert_eq!(decoder.oldest_undecoded(), range.end());
    decoder.release_before(range.end());
}

fn coefficient_arithmetic(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("coefficients");
    let mut row = [0; 128];
    group.bench_function("a row of 128", |bencher| {
        bencher.iter(|| coefficients::generate(black_box(7), coefficients::DENSITY_MAX, &mut row));
    });
}

criterion_group!(benches, repairs, decoders, coefficient_arithmetic);
criterion_main!(benches);
