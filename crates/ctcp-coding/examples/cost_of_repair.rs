//! Encodes and decodes a bulk transfer and nothing else, to measure what repair costs in CPU time.
//!
//! `time cargo run --release -p ctcp-coding --example cost_of_repair -- MEGABYTES LOSS [BLOCK [ENGINE]]`
//!
//! Each block crosses a path with random loss: first its symbols uncoded, then combinations of all of them until the
//! block is decoded. With a loss of 0, only the copying into and out of the windows remains, which an uncoded transport
//! needs as well.
//!
//! Requirement: U5
#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::env::args;
use std::error::Error;

use ctcp_coding::gf256::Engine;
use ctcp_coding::{Decoder, DecoderConfig, Encoder, SymbolRange, coefficients};

/// The symbol size of full datagrams on a path with an MTU of 1500 bytes.
const SYMBOL: usize = 1426;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: MEGABYTES LOSS [BLOCK (default 64) [ENGINE (default the fastest)]]";
    let megabytes: usize = args().nth(1).ok_or(usage)?.parse()?;
    let loss: f64 = args().nth(2).ok_or(usage)?.parse()?;
    let block: u16 = args().nth(3).map_or(Ok(64), |text| text.parse())?;
    if let Some(name) = args().nth(4) {
        Engine::force(Engine::named(&name).ok_or("this processor has no such engine")?);
    }
    let blocks = megabytes * 1_000_000 / (usize::from(block) * SYMBOL);

    let mut path = Path { state: 1, loss };
    let mut encoder = Encoder::new(SYMBOL, usize::from(block));
    let mut decoder = Decoder::new(DecoderConfig::new(SYMBOL, usize::from(block)));
    let (mut row, mut payload) = (vec![0; usize::from(block)], Vec::new());
    let contents: Vec<u8> = (0..SYMBOL).map(|byte| (byte * 31 % 251) as u8).collect();
    let mut repairs = 0_u64;
    for _ in 0..blocks {
        let range = SymbolRange::new(encoder.next_index(), block).ok_or("a block has 1 to 4095 symbols")?;
        for _ in 0..block {
            let index = encoder.push(&contents)?;
            if path.carries() {
                decoder.handle_source(index, &contents)?;
            }
        }
        for key in 0.. {
            if decoder.rank_in(range) == usize::from(block) {
                break;
            }
            repairs += 1;
            coefficients::generate(key, coefficients::DENSITY_MAX, &mut row);
            encoder.combine(range, &row, &mut payload)?;
            if path.carries() {
                decoder.handle_combination(range, &row, &payload)?;
            }
        }
        while let Some((_, symbol)) = decoder.poll_decoded() {
            assert!(symbol == contents, "a symbol was decoded to something else");
        }
        encoder.release_before(range.end());
        decoder.release_before(range.end());
    }
    let symbols = blocks as u64 * u64::from(block);
    println!("{}: {symbols} symbols in blocks of {block}, {repairs} repairs", Engine::current().name());
    Ok(())
}

/// Loses packets at random, the same ones in every run (xorshift64*).
struct Path {
    state: u64,
    loss: f64,
}

impl Path {
    fn carries(&mut self) -> bool {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let draw = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        draw as f64 / (1_u64 << 53) as f64 >= self.loss
    }
}
