//! Sends a block of 32 symbols over a path that loses every fifth packet.
#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use ctcp_coding::{Decoder, DecoderConfig, Encoder, SymbolRange, coefficients};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut encoder = Encoder::new(1344, 32);
    let mut decoder = Decoder::new(DecoderConfig::new(1344, 32));
    for value in 0..32 {
        let index = encoder.push(&[value; 1344])?;
        if index % 5 != 0 {
            decoder.handle_source(index, &[value; 1344])?;
        }
    }
    let range = SymbolRange::new(0, 32).ok_or("an empty range")?;
    let (mut row, mut payload) = ([0; 32], Vec::new());
    for key in 0.. {
        if decoder.rank_in(range) == 32 {
            break;
        }
        coefficients::generate(key, coefficients::DENSITY_MAX, &mut row);
        encoder.combine(range, &row, &mut payload)?;
        println!("combination {key}: {:?}", decoder.handle_combination(range, &row, &payload)?);
    }
    while let Some((index, contents)) = decoder.poll_decoded() {
        assert!(contents.iter().all(|&byte| u64::from(byte) == index));
    }
    println!("all {} symbols are decoded", decoder.oldest_undecoded());
    Ok(())
}
