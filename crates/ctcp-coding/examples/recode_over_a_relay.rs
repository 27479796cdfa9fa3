//! Compares a relay that forwards with a relay that recodes, over two hops that each lose every fourth packet.
#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use ctcp_coding::{Decoder, DecoderConfig, Encoder, Recoder, RecoderConfig, SymbolRange, coefficients};

/// Number of symbols in the block.
const BLOCK: u16 = 64;
const SIZE: usize = 1200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut encoder = Encoder::new(SIZE, usize::from(BLOCK));
    for value in 0..BLOCK {
        encoder.push(&[value as u8; SIZE])?;
    }
    println!("forwarding: {} packets of the source for {BLOCK} symbols", packets_sent(&encoder, false)?);
    println!("recoding:   {} packets of the source for {BLOCK} symbols", packets_sent(&encoder, true)?);
    Ok(())
}

/// Returns how many packets the source sends until the sink has all symbols. The relay sends whenever the source does.
fn packets_sent(encoder: &Encoder, does_recode: bool) -> Result<u32, Box<dyn std::error::Error>> {
    let block = SymbolRange::new(0, BLOCK).ok_or("an empty block")?;
    let mut relay = Recoder::new(RecoderConfig { symbol_size_max: SIZE, window: BLOCK });
    let mut sink = Decoder::new(DecoderConfig::new(SIZE, usize::from(BLOCK)));
    let (mut weights, mut row, mut payload) = (Vec::new(), vec![0; usize::from(BLOCK)], Vec::new());
    let (mut sent, mut path) = (0, Path { state: 7 });
    while sink.rank_in(block) < usize::from(BLOCK) {
        row.resize(usize::from(BLOCK), 0);
        coefficients::generate(sent, coefficients::DENSITY_MAX, &mut row);
        encoder.combine(block, &row, &mut payload)?;
        sent += 1;
        let reaches_relay = path.carries();
        if reaches_relay {
            relay.handle_combination(block, &row, &payload)?;
        }
        if !does_recode {
            if reaches_relay && path.carries() {
                sink.handle_combination(block, &row, &payload)?;
            }
            continue;
        }
        let Some(span) = relay.span() else { continue };
        weights.resize(relay.rank_in(span), 0);
        coefficients::generate(sent, coefficients::DENSITY_MAX, &mut weights);
        // A RECODED frame carries the first index, the coefficients, the floor and the payload.
        let made = relay.combine(span, &weights, &mut row, &mut payload)?;
        if path.carries() {
            sink.handle_combination(made, &row, &payload)?;
        }
    }
    while let Some((index, contents)) = sink.poll_decoded() {
        assert!(contents.iter().all(|&byte| u64::from(byte) == index));
    }
    Ok(u32::from(sent))
}

/// Loses a quarter of the packets, the same ones in every run (xorshift64*).
struct Path {
    state: u64,
}

impl Path {
    fn carries(&mut self) -> bool {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        !(self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40).is_multiple_of(4)
    }
}
