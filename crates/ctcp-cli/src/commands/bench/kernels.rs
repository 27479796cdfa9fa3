//! Repairs of a block, against a plain sum of the same symbols and against arithmetic in registers.

use std::hint::black_box;
use std::time::Duration;

use ctcp_coding::gf256::Engine;
use serde::Serialize;

use super::packets::{Packets, Random, SYMBOL};
use super::stopwatch::{Shortest, repeat};

/// Repairs computed at once.
const OUTPUTS: [usize; 2] = [1, 4];
/// Bytes of all blocks together: more than a first-level cache holds, less than a second-level one.
const FOOTPRINT: usize = 512 * 1024;
/// Rounds of arithmetic in registers; about as long as a sweep over the blocks.
const ROUNDS: u64 = 4000;

/// One line of the table.
#[derive(Serialize)]
pub(super) struct Speed {
    pub(super) engine: &'static str,
    pub(super) n: usize,
    pub(super) outputs: usize,
    pub(super) symbol_bytes: usize,
    /// Products, that is bytes times coefficients, in 10^9 a second.
    pub(super) gbps: f64,
    /// Bytes of a plain XOR sum of the same symbols, in 10^9 a second.
    pub(super) control_gbps: f64,
    /// What the engine's instructions, or for one repair the cache, allow at most; none where products are looked up in memory.
    pub(super) bound_gbps: Option<f64>,
}

/// The times of one engine.
struct Times {
    engine: Engine,
    control: Shortest,
    repairs: [Shortest; OUTPUTS.len()],
    registers: [Shortest; OUTPUTS.len()],
}

/// Measures all engines in turn, round by round, so that each meets the machine in the same moods.
pub(super) fn measure(engines: &[Engine], n: usize, time: Duration) -> Vec<Speed> {
    let block_count = FOOTPRINT.div_ceil(n * SYMBOL);
    let mut random = Random::new(n as u64);
    let packets = Packets::random(block_count * n, &mut random);
    let symbols = packets.all(block_count * n);
    let blocks: Vec<&[&[u8]]> = symbols.chunks_exact(n).collect();
    let rows: Vec<Vec<u8>> = (0..4).map(|_| (0..n).map(|_| random.byte().max(1)).collect()).collect();
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let mut repairs = Packets::zeroed(4);
    let mut outs = repairs.all_mut(4);
    let mut all: Vec<Times> = engines.iter().map(|&engine| Times::new(engine)).collect();
    repeat(time, || {
        for times in &mut all {
            times.run(&blocks, &rows, &mut outs);
        }
    });
    all.iter().flat_map(|times| times.speeds(n, block_count)).collect()
}

impl Times {
    fn new(engine: Engine) -> Self {
        Self {
            engine,
            control: Shortest::new(),
            repairs: [Shortest::new(), Shortest::new()],
            registers: [Shortest::new(), Shortest::new()],
        }
    }

    /// Whether the engine's products come from memory: then it is so slow that one block takes long enough, and the cache it
    /// lies in makes no difference.
    fn is_slow(&self) -> bool {
        self.engine.multiply_in_registers(1, 1) == 0
    }

    fn run(&mut self, blocks: &[&[&[u8]]], rows: &[&[u8]], outs: &mut [&mut [u8]]) {
        let engine = self.engine;
        let blocks = if self.is_slow() { &blocks[..1] } else { blocks };
        // What a job does first, waking wide registers up and filling the cache, is not to be timed.
        let warm_up = usize::from(!self.is_slow());
        for is_timed in [false, true].into_iter().skip(1 - warm_up) {
            let mut ignored = Shortest::new();
            let time = if is_timed { &mut self.control } else { &mut ignored };
            time.time(|| blocks.iter().for_each(|block| engine.sum(outs[0], block)));
            black_box(&outs);
        }
        for (index, outputs) in OUTPUTS.into_iter().enumerate() {
            let (outs, rows) = (&mut outs[..outputs], &rows[..outputs]);
            for is_timed in [false, true].into_iter().skip(1 - warm_up) {
                let mut ignored = Shortest::new();
                let time = if is_timed { &mut self.repairs[index] } else { &mut ignored };
                time.time(|| blocks.iter().for_each(|block| engine.combine_rows(outs, rows, block)));
                black_box(&outs);
            }
            self.registers[index].time(|| {
                black_box(engine.multiply_in_registers(outputs, ROUNDS));
            });
        }
    }

    fn speeds(&self, n: usize, block_count: usize) -> impl Iterator<Item = Speed> {
        let count = if self.is_slow() { 1 } else { block_count };
        let bytes = (count * n * SYMBOL) as f64;
        let control_gbps = bytes / self.control.seconds() / 1e9;
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
                bound_gbps: (products != 0).then_some(bound),
            }
        })
    }
}
