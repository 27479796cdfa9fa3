//! Speed of repairs of a block. It is compared with a plain sum of the same symbols, and with arithmetic in registers;
//! the plain sum is compared with loads alone.

use std::hint::black_box;
use std::time::Duration;

use ctcp_coding::gf256::Engine;
use serde::Serialize;

use super::packets::{Packets, Random, SYMBOL};
use super::stopwatch::{Shortest, repeat};

/// Repairs computed at once.
const OUTPUTS: [usize; 2] = [1, 4];
/// Bytes of all blocks together. They exceed the first-level cache several times, so every symbol comes from the second
/// level. They span no more pages than the first-level TLB has entries (96 on the processors at hand). With twice as
/// many, the values of large blocks, which reuse a page less often, would measure address translation instead of
/// kernels.
const FOOTPRINT: usize = 320 * 1024;
/// Rounds of arithmetic in registers; they take about as long as a pass over the blocks.
const ROUNDS: u64 = 4000;

/// One line of the table.
#[derive(Serialize)]
pub(super) struct Speed {
    pub(super) engine: &'static str,
    pub(super) n: usize,
    pub(super) outputs: usize,
    pub(super) symbol_bytes: usize,
    /// Products (bytes times coefficients), in 10^9 per second.
    pub(super) gbps: f64,
    /// Bytes of a plain XOR sum of the same symbols, in 10^9 per second.
    pub(super) control_gbps: f64,
    /// Bytes of the same symbols that are only loaded, in 10^9 per second: the limit of the control.
    pub(super) read_gbps: f64,
    /// The limit set by the engine's instructions or, for a single repair, by the cache; none if products are looked up
    /// in memory.
    pub(super) bound_gbps: Option<f64>,
}

/// The times of one engine.
struct Times {
    engine: Engine,
    read: Shortest,
    control: Shortest,
    repairs: [Shortest; OUTPUTS.len()],
    registers: [Shortest; OUTPUTS.len()],
}

/// Measures all engines in turn, round by round, so that changes of the machine's speed affect all of them.
pub(super) fn measure(engines: &[Engine], n: usize, time: Duration) -> Vec<Speed> {
    let block_count = FOOTPRINT.div_ceil(n * SYMBOL);
    let mut random = Random::new(n as u64);
    let packets = Packets::random(block_count * n, &mut random);
    let symbols = packets.all(block_count * n);
    let rows: Vec<Vec<u8>> = (0..4).map(|_| (0..n).map(|_| random.byte().max(1)).collect()).collect();
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let mut repairs = Packets::zeroed(4);
    let mut outs = repairs.all_mut(4);
    let mut all: Vec<Times> = engines.iter().map(|&engine| Times::new(engine)).collect();
    repeat(time, || {
        for times in &mut all {
            times.run(&symbols, n, &rows, &mut outs);
        }
    });
    all.iter().flat_map(|times| times.speeds(n, block_count)).collect()
}

impl Times {
    fn new(engine: Engine) -> Self {
        Self {
            engine,
            read: Shortest::new(),
            control: Shortest::new(),
            repairs: [Shortest::new(), Shortest::new()],
            registers: [Shortest::new(), Shortest::new()],
        }
    }

    /// Returns true if the engine looks products up in memory. It is then so slow that one block takes long enough, and
    /// the cache level of the block makes no difference.
    fn is_slow(&self) -> bool {
        self.engine.multiply_in_registers(1, 1) == 0
    }

    fn run(&mut self, symbols: &[&[u8]], n: usize, rows: &[&[u8]], outs: &mut [&mut [u8]]) {
        let (engine, is_slow) = (self.engine, self.is_slow());
        let symbols = if is_slow { &symbols[..n] } else { symbols };
        // An untimed first run powers up wide registers and fills the cache.
        let measure = |time: &mut Shortest, job: &mut dyn FnMut()| {
            if !is_slow {
                job();
            }
            time.time(job);
        };
        measure(&mut self.read, &mut || {
            black_box(engine.read(symbols));
        });
        measure(&mut self.control, &mut || {
            symbols.chunks_exact(n).for_each(|block| engine.sum(outs[0], block));
        });
        black_box(&outs);
        for (index, outputs) in OUTPUTS.into_iter().enumerate() {
            let (outs, rows) = (&mut outs[..outputs], &rows[..outputs]);
            measure(&mut self.repairs[index], &mut || {
                symbols.chunks_exact(n).for_each(|block| engine.combine_rows(outs, rows, block));
            });
            black_box(&outs);
            self.registers[index].time(|| {
                black_box(engine.multiply_in_registers(outputs, ROUNDS));
            });
        }
    }

    fn speeds(&self, n: usize, block_count: usize) -> impl Iterator<Item = Speed> {
        let count = if self.is_slow() { 1 } else { block_count };
        let bytes = (count * n * SYMBOL) as f64;
        let control_gbps = bytes / self.control.seconds() / 1e9;
        let read_gbps = bytes / self.read.seconds() / 1e9;
        OUTPUTS.into_iter().enumerate().map(move |(index, outputs)| {
            let products = self.engine.multiply_in_registers(outputs, 1) * ROUNDS;
            let registers = products as f64 / self.registers[index].seconds() / 1e9;
            let bound = if outputs == 1 { registers.min(control_gbps) } else { registers };
            Speed {
                engine: self.engine.name(),
                n,
                outputs,
                symbol_bytes: SYMBOL,
                gbps: outputs as f64 * bytes / self.repairs[index].seconds() / 1e9,
                control_gbps,
                read_gbps,
                bound_gbps: (products != 0).then_some(bound),
            }
        })
    }
}
