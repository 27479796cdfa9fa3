//! A sliding window, as in TCP/NC. Every packet is a combination of all symbols that the receiver has not acknowledged.
//! The receiver acknowledges what it has seen, decoded or not.
#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use ctcp_baselines::coding::{CombinationCredit, WindowCode};
use ctcp_coding::{Decoder, DecoderConfig, Encoder, SymbolRange, coefficients};

/// Size of a symbol in bytes, and maximum number of symbols in flight.
const SIZE: usize = 1200;
const WINDOW: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut encoder = Encoder::new(SIZE, WINDOW);
    let mut decoder = Decoder::new(DecoderConfig::new(SIZE, WINDOW));
    // Every fifth packet is lost. The redundancy slightly exceeds the loss, so that the receiver catches up now and
    // then.
    let mut code = WindowCode::new(1.1 * CombinationCredit::ratio_for(0.2));
    let (mut row, mut payload, mut sent) = (Vec::new(), Vec::new(), 0_u32);
    for value in 0..1000_u32 {
        encoder.push(&value.to_be_bytes())?;
        code.on_symbol();
        while let Some(next) = code.next(encoder.first(), encoder.next_index()) {
            sent += 1;
            if sent.is_multiple_of(5) {
                continue;
            }
            row.resize(usize::from(next.range.length()), 0);
            coefficients::generate(next.key, coefficients::DENSITY_MAX, &mut row);
            encoder.combine(next.range, &row, &mut payload)?;
            decoder.handle_combination(next.range, &row, &payload)?;
            // The acknowledgement is the oldest unseen symbol. The window slides up to it.
            encoder.release_before(decoder.oldest_unseen());
        }
        while let Some((index, contents)) = decoder.poll_decoded() {
            assert_eq!(contents[..4], u32::try_from(index)?.to_be_bytes());
        }
    }
    let last = SymbolRange::new(decoder.oldest_undecoded().saturating_sub(1), 1).ok_or("nothing")?;
    println!(
        "{sent} packets for 1000 symbols; decoded up to {}, seen up to {}",
        last.end(),
        decoder.oldest_unseen()
    );
    println!("{} symbols wait for an acknowledgement", encoder.len());
    Ok(())
}
