//! The receiver of messages: any symbols in any order take bounded memory, and parsed fragments survive encoding.
//!
//! The input is a sequence of operations: a byte, then for a symbol two bytes of its length and its bytes.

use ctcp_proto::fuzzing::MessageReceiver;
use ctcp_proto::wire::{FragmentBuilder, MESSAGE_SIZE_MAX, fragments_in_symbol};

/// A receiver holds a megabyte of partial messages and one of whole ones.
const MEMORY_MAX: u64 = 2 << 20;

pub fn run(mut data: &[u8]) {
    let mut receiver = MessageReceiver::default();
    let mut index: u64 = 0;
    while let Some((&operation, rest)) = data.split_first() {
        data = rest;
        match operation {
            0..=7 => while receiver.pop().is_some_and(|message| message.len() <= MESSAGE_SIZE_MAX) {},
            8..=31 => receiver.settle_before(index.saturating_sub(u64::from(operation) - 8)),
            _ => {
                let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
                let length = usize::from(u16::from_be_bytes(*length) % 1_500).min(rest.len());
                let (symbol, rest) = rest.split_at(length);
                data = rest;
                index += 1;
                check_encoding(symbol);
                if receiver.on_symbol(index, symbol).is_err() {
                    return;
                }
            }
        }
        assert!(receiver.memory() <= MEMORY_MAX);
    }
}

fn check_encoding(symbol: &[u8]) {
    let Ok(fragments) = fragments_in_symbol(symbol) else { return };
    let Ok(fragments) = fragments.collect::<Result<Vec<_>, _>>() else { return };
    let mut builder = FragmentBuilder::reusing(Vec::new(), 2 * symbol.len() + 64);
    fragments.iter().for_each(|&fragment| builder.push(fragment));
    let written = builder.finish();
    let again: Result<Vec<_>, _> = fragments_in_symbol(&written).expect("what was written").collect();
    assert_eq!(again, Ok(fragments));
}
