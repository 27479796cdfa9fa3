//! Two implementations of RFC 8681 decode each other: ours and the crate cu-fec.
//!
//! `cargo run --release --manifest-path benchmarks/rfc8681-interop/Cargo.toml`
//!
//! It exits with an error at the first difference. It prints what was compared, and the known answers that the tests of
//! `crates/ctcp-coding/src/coefficients.rs` use.
#![deny(unsafe_code)]

use ctcp_coding::{Decoder, DecoderConfig, Encoder, SymbolRange, coefficients};
use cu_fec::{
    DensityThreshold, EncodingSymbolId, Field, RepairParameters, RlcConfig, RlcDecoder, RlcEncoder,
    generate_coding_coefficients,
};

/// Bytes of a symbol, and symbols in a window.
const SIZE: usize = 64;
const WINDOW: usize = 48;

type Peer = RlcDecoder<SIZE, WINDOW, WINDOW>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{} rows of coefficients agree", compare_coefficients()?);
    let mut decoded = [0; 2];
    for round in 0..2000 {
        let window = Window::new(round)?;
        decoded[0] += window.peer_decodes_ours()?;
        decoded[1] += window.we_decode_the_peers()?;
    }
    println!("the peer decoded {} symbols of our combinations, we {} of its repairs", decoded[0], decoded[1]);
    print_known_answers()
}

/// Compares every density, all lengths up to 100 and many keys.
fn compare_coefficients() -> Result<u32, Box<dyn std::error::Error>> {
    let mut rows = 0;
    for density in 0..=coefficients::DENSITY_MAX {
        for key in (0..=u16::MAX).step_by(37) {
            let length = 1 + usize::from(key) % 100;
            let (mut ours, mut theirs) = (vec![0; length], vec![0; length]);
            coefficients::generate(key, density, &mut ours);
            generate_coding_coefficients(Field::Gf256, key, DensityThreshold::new(density)?, &mut theirs);
            if ours != theirs {
                return Err(format!("key {key}, density {density}: {ours:?} and {theirs:?}").into());
            }
            rows += 1;
        }
    }
    Ok(rows)
}

/// The symbols of a window, some of them lost, and repairs of all of them.
struct Window {
    round: u16,
    density: u8,
    symbols: Vec<[u8; SIZE]>,
    lost: Vec<usize>,
}

impl Window {
    fn new(round: u16) -> Result<Self, Box<dyn std::error::Error>> {
        let mut bytes = vec![0; WINDOW * SIZE + WINDOW];
        coefficients::generate_uniform(u32::from(round), &mut bytes);
        let count = 1 + usize::from(bytes[0]) % WINDOW;
        let symbols = bytes[WINDOW..].chunks_exact(SIZE).take(count).map(|chunk| chunk.try_into());
        let symbols = symbols.collect::<Result<Vec<[u8; SIZE]>, _>>()?;
        let lost = (0..count).filter(|&index| bytes[index] < 80).collect();
        Ok(Self { round, density: if round % 2 == 0 { 15 } else { 9 }, symbols, lost })
    }

    fn keys(&self) -> impl Iterator<Item = u16> {
        let first = self.round.wrapping_mul(97);
        (0..self.lost.len() as u16 + 20).map(move |number| first.wrapping_add(number))
    }

    fn peer_decodes_ours(&self) -> Result<usize, Box<dyn std::error::Error>> {
        let mut encoder = Encoder::new(SIZE, WINDOW);
        let mut peer = Peer::new(RlcConfig::new(SIZE, WINDOW, Field::Gf256)?, WINDOW)?;
        for (index, symbol) in self.symbols.iter().enumerate() {
            encoder.push(symbol)?;
            if !self.lost.contains(&index) {
                let _ = peer.receive_source(EncodingSymbolId::new(index as u32), symbol)?;
            }
        }
        let length = self.symbols.len() as u16;
        let range = SymbolRange::new(0, length).ok_or("an empty window")?;
        let (mut row, mut payload) = (vec![0; self.symbols.len()], Vec::new());
        let density = DensityThreshold::new(self.density)?;
        for key in self.keys() {
            coefficients::generate(key, self.density, &mut row);
            encoder.combine(range, &row, &mut payload)?;
            payload.resize(SIZE, 0);
            let id = cu_fec::RepairPayloadId::new(key, density, length, EncodingSymbolId::new(0))?;
            let _ = peer.receive_repair(id, &payload)?;
        }
        for &index in &self.lost {
            let decoded = peer.symbol(EncodingSymbolId::new(index as u32));
            if decoded != Some(&self.symbols[index][..]) {
                return Err(
                    format!("round {}: the peer has {decoded:?} for symbol {index}", self.round).into()
                );
            }
        }
        Ok(self.lost.len())
    }

    fn we_decode_the_peers(&self) -> Result<usize, Box<dyn std::error::Error>> {
        let config = RlcConfig::new(SIZE, WINDOW, Field::Gf256)?;
        let mut peer = RlcEncoder::<SIZE, WINDOW>::new(config, EncodingSymbolId::new(0))?;
        let mut decoder = Decoder::new(DecoderConfig::new(SIZE, WINDOW));
        for (index, symbol) in self.symbols.iter().enumerate() {
            peer.push_source(symbol)?;
            if !self.lost.contains(&index) {
                decoder.handle_source(index as u64, symbol)?;
            }
        }
        let range = SymbolRange::new(0, self.symbols.len() as u16).ok_or("an empty window")?;
        let (mut row, mut repair) = (vec![0; self.symbols.len()], [0; SIZE]);
        for key in self.keys() {
            let parameters = RepairParameters::new(key, DensityThreshold::new(self.density)?);
            let _ = peer.encode_repair(parameters, &mut repair)?;
            coefficients::generate(key, self.density, &mut row);
            decoder.handle_combination(range, &row, &repair)?;
        }
        for (index, symbol) in self.symbols.iter().enumerate() {
            if decoder.symbol(index as u64) != Some(&symbol[..]) {
                return Err(format!("round {}: symbol {index} is not decoded", self.round).into());
            }
        }
        Ok(self.lost.len())
    }
}

/// Prints rows and a repair computed by the peer alone.
fn print_known_answers() -> Result<(), Box<dyn std::error::Error>> {
    for (key, density) in [(0, 15), (1, 15), (7, 9), (500, 0), (65_535, 14)] {
        let mut row = [0; 12];
        generate_coding_coefficients(Field::Gf256, key, DensityThreshold::new(density)?, &mut row);
        println!("({key}, {density}, {row:?}),");
    }
    let config = RlcConfig::new(8, WINDOW, Field::Gf256)?;
    let mut peer = RlcEncoder::<SIZE, WINDOW>::new(config, EncodingSymbolId::new(0))?;
    for value in 0..12_u8 {
        peer.push_source(&core::array::from_fn::<u8, 8, _>(|byte| value * 16 + byte as u8))?;
    }
    let mut repair = [0; 8];
    peer.encode_repair(RepairParameters::new(7, DensityThreshold::FULL), &mut repair)?;
    println!("repair of 12 symbols under key 7: {repair:?}");
    Ok(())
}
