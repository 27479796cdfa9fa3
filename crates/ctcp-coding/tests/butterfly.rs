//! One source and two sinks on a butterfly. Every link carries one packet in a slot, so each sink can get two: one over its
//! own branch, and one over the middle, which both share.
//!
//! ```text
//!            /== left =========== sink          source -> left: even symbols, source -> right: odd ones
//!   source ==        \         /
//!            \        middle ==                 what comes over the middle has to help both sinks
//!             \      /         \
//!              == right ========= sink
//! ```

#[path = "../src/test_random.rs"]
#[allow(dead_code, reason = "it has more than this test needs")]
mod test_random;

use ctcp_coding::{Decoder, DecoderConfig, Recoder, RecoderConfig, SymbolRange};
use test_random::TestRandom;

const SYMBOLS: u16 = 240;
const SYMBOL_SIZE: usize = 8;

fn contents(index: u64) -> [u8; SYMBOL_SIZE] {
    index.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// A node that keeps a basis of what has arrived.
struct Node(Recoder);

type Packet = (SymbolRange, Vec<u8>, Vec<u8>);

impl Node {
    fn new() -> Self {
        Self(Recoder::new(RecoderConfig { symbol_size_max: SYMBOL_SIZE, window: SYMBOLS }))
    }

    fn receive(&mut self, (range, coefficients, payload): &Packet) {
        self.0.handle_combination(*range, coefficients, payload).expect("within the window");
    }

    /// A random combination of everything, or only what has arrived last.
    fn send(&self, recodes: bool, random: &mut TestRandom) -> Option<Packet> {
        let mut weights = random.bytes(self.0.rank());
        if !recodes {
            // Rows are in the order of symbols, which is that of arrivals.
            let newest = weights.len().checked_sub(1)?;
            weights.fill(0);
            weights[newest] = 1;
        }
        let (mut coefficients, mut payload) = (Vec::new(), Vec::new());
        let range = self.0.combine(self.0.span()?, &weights, &mut coefficients, &mut payload).ok()?;
        Some((range, coefficients, payload))
    }
}

/// Returns the symbols that each sink has after the slots in which the source sends all, and a few for the last ones to
/// arrive.
fn symbols_of_sinks(recodes: bool) -> [usize; 2] {
    let mut random = TestRandom::new(1);
    let (mut branches, mut middle) = ([Node::new(), Node::new()], Node::new());
    let mut sinks = [(); 2].map(|()| Decoder::new(DecoderConfig::new(SYMBOL_SIZE, usize::from(SYMBOLS))));
    let mut from_middle: Option<Packet> = None;
    for slot in 0..u64::from(SYMBOLS) / 2 + 6 {
        // From the sinks to the source, so that a packet crosses one link in a slot.
        for (sink, branch) in sinks.iter_mut().zip(&branches) {
            for (range, coefficients, payload) in branch.send(recodes, &mut random).iter().chain(&from_middle)
            {
                sink.handle_combination(*range, coefficients, payload).expect("within the window");
            }
        }
        from_middle = middle.send(recodes, &mut random);
        for branch in &branches {
            branch.send(recodes, &mut random).iter().for_each(|packet| middle.receive(packet));
        }
        for (side, branch) in branches.iter_mut().enumerate() {
            let index = 2 * slot + side as u64;
            if index < u64::from(SYMBOLS) {
                branch.0.handle_source(index, &contents(index)).expect("within the window");
            }
        }
    }
    sinks.map(|mut sink| {
        let mut symbols = 0;
        while let Some((index, decoded)) = sink.poll_decoded() {
            assert_eq!(decoded, contents(index), "symbol {index}");
            symbols += 1;
        }
        symbols
    })
}

// Requirement: N5
#[test]
fn both_sinks_of_a_butterfly_get_two_symbols_in_a_slot_if_the_middle_combines() {
    let all = usize::from(SYMBOLS);
    assert_eq!(symbols_of_sinks(true), [all; 2]);
    // A symbol that is only forwarded is new to one of the sinks.
    assert_eq!(symbols_of_sinks(false).iter().sum::<usize>(), all * 3 / 2);
}
