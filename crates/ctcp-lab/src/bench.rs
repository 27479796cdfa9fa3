//! `ctcp-lab bench`: measures the speed of the codec on this machine.

mod decoding;
mod kernels;
mod packets;
mod stopwatch;

use std::time::Duration;

use clap::{Args, Subcommand};
use ctcp_base::parse_duration;
use ctcp_coding::gf256::Engine;
use serde::Serialize;

use ctcp_cli::engine;
use ctcp_cli::error::CliError;

/// Symbols in a block, for all measurements.
const BLOCKS: [usize; 2] = [32, 128];

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Multiply, combine and decode in memory, with every engine of this processor
    Codec(CodecArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctcp-lab bench codec --engine avx2 --engine avx512")]
struct CodecArgs {
    /// Measure only this engine; may be repeated (default: all engines of this processor)
    #[arg(long, value_name = "NAME")]
    engine: Vec<String>,
    /// Time for each of the four parts of the measurement
    #[arg(long, default_value = "3s", value_parser = parse_duration)]
    time: Duration,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The output of `ctcp-lab bench codec --json`, which is a contract.
#[derive(Serialize)]
struct Codec {
    version: &'static str,
    cpu: String,
    /// The clock rate in GHz, measured with steps that depend on each other.
    clock_ghz: f64,
    engines: Vec<kernels::Speed>,
    decode: Vec<decoding::Speed>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), CliError> {
    match &args.part {
        Part::Codec(args) => codec(args),
    }
}

fn codec(args: &CodecArgs) -> Result<(), CliError> {
    let engines: Vec<Engine> = match args.engine.as_slice() {
        [] => Engine::available().collect(),
        names => names.iter().map(|name| engine::named(name)).collect::<Result<_, _>>()?,
    };
    // Decoding runs on the engine of the process: the only one requested, or the fastest of them.
    if let (false, Some(engine)) = (args.engine.is_empty(), engines.last()) {
        engine.force();
    }
    let mut result = Codec {
        version: ctcp_cli::VERSION,
        cpu: processor(),
        clock_ghz: stopwatch::clock_ghz(),
        engines: BLOCKS.iter().flat_map(|&n| kernels::measure(&engines, n, args.time)).collect(),
        decode: decoding::measure(args.time),
    };
    result.clock_ghz = result.clock_ghz.max(stopwatch::clock_ghz());
    if args.json {
        let json = serde_json::to_string(&result).expect("numbers and strings");
        print(&json);
    } else {
        print_tables(&result);
    }
    Ok(())
}

/// The processor's name, if the system provides it.
fn processor() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = information.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| std::env::consts::ARCH.into())
}

fn print_tables(codec: &Codec) {
    print(&format!("{}, {:.2} GHz, symbols of {} bytes", codec.cpu, codec.clock_ghz, packets::SYMBOL));
    print("");
    print(
        "Repairs of a block in the second-level cache. GB/s count products: a byte times a coefficient, added.",
    );
    print(
        "The control is a plain XOR sum of the same symbols by the same engine in the same moment, beside what share it is",
    );
    print(
        "of loads alone. The bound of one repair is the control or arithmetic in registers, whichever is slower; that of",
    );
    print("four is the latter.");
    print("");
    print("engine     N  repairs     GB/s  control  of loads  of control    bound  of bound  B/cycle");
    for speed in &codec.engines {
        let bound = speed.bound_gbps.map_or_else(
            || format!("{:>8} {:>9}", "-", "-"),
            |bound| format!("{bound:>8.1} {:>9.2}", speed.gbps / bound),
        );
        print(&format!(
            "{:<8} {:>3} {:>8} {:>8.2} {:>8.1} {:>9.2} {:>11.2} {bound} {:>8.1}",
            speed.engine,
            speed.n,
            speed.outputs,
            speed.gbps,
            speed.control_gbps,
            speed.control_gbps / speed.read_gbps,
            speed.gbps / speed.control_gbps,
            speed.gbps / codec.clock_ghz,
        ));
    }
    print("");
    print(&format!("Decoding with {}, MB/s of block", Engine::current().name()));
    print("");
    print("library        N   lost      MB/s");
    for speed in &codec.decode {
        let lost = if speed.dense { "dense".into() } else { format!("{:.0} %", speed.loss * 100.0) };
        print(&format!("{:<12} {:>3} {lost:>6} {:>9.0}", speed.library, speed.n, speed.mbps));
    }
}

#[expect(clippy::print_stdout, reason = "the output of the command")]
fn print(line: &str) {
    println!("{line}");
}
