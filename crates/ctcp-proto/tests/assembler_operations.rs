//! The assembler of a stream compared to a naive model, with operations derived from bytes.
//!
//! [`run`] interprets any byte string as a sequence of inserts, reads and discards, and compares every result with a map from offset to
//! byte. A fuzz target can include this file and call it.

use std::collections::BTreeMap;

use ctcp_proto::fuzzing::{Assembler, PagePool};

/// The credit of the stream: several pages, not a multiple of one.
const WINDOW: u64 = 9000;

/// The size of the assembler's pages, to check that memory follows the bytes.
const PAGE_SIZE: u64 = 2048;

/// An endless input: zeros follow the bytes.
struct Input<'a> {
    bytes: &'a [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    fn number(&mut self) -> u64 {
        u64::from(u16::from_be_bytes([self.byte(), self.byte()]))
    }
}

/// Bytes that were inserted and not read.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<u64, u8>,
    read: u64,
    ready: u64,
}

impl Model {
    fn insert(&mut self, offset: u64, data: &[u8]) {
        for (at, &byte) in (offset..).zip(data).filter(|&(at, _)| at >= self.read) {
            self.bytes.entry(at).or_insert(byte);
        }
        while self.bytes.contains_key(&self.ready) {
            self.ready += 1;
        }
    }

    fn read(&mut self, count: usize) -> Vec<u8> {
        let end = self.ready.min(self.read + count as u64);
        let taken = (self.read..end).filter_map(|at| self.bytes.remove(&at)).collect();
        self.read = end;
        taken
    }

    fn discard(&mut self) {
        self.read = self.ready;
        self.bytes.clear();
    }

    fn pages(&self) -> usize {
        let mut pages: Vec<u64> = self.bytes.keys().map(|at| at / PAGE_SIZE).collect();
        pages.dedup();
        pages.len()
    }
}

/// Interprets `bytes` as operations on an assembler and compares it with the model after each.
pub fn run(bytes: &[u8]) {
    let mut input = Input { bytes };
    let (mut assembler, mut pool, mut model) = (Assembler::default(), PagePool::default(), Model::default());
    let mut step = 0;
    while !input.bytes.is_empty() {
        step += 1;
        match input.byte() {
            255 => {
                assembler.discard(&mut pool);
                model.discard();
            }
            kind @ 192..=254 => {
                // Short reads, and reads of everything.
                let count = if kind < 224 { usize::from(input.byte()) } else { WINDOW as usize };
                let mut out = vec![0; count];
                let taken = assembler.read(&mut pool, &mut out);
                assert_eq!(out[..taken], model.read(count));
            }
            kind => {
                // From before what was read, in order, or anywhere within the credit; of all lengths.
                let offset = match kind % 3 {
                    0 => model.read.saturating_sub(100) + input.number() % 200,
                    1 => model.ready,
                    _ => model.read + input.number() % WINDOW,
                };
                let most = (model.read + WINDOW).saturating_sub(offset);
                let length = if kind < 96 { input.number() % 1400 } else { u64::from(input.byte()) % 4 };
                // Repeated ranges have different contents, which shows which one won.
                let data: Vec<u8> = (0..length.min(most)).map(|at| (at * 7 + step * 13) as u8).collect();
                assembler.insert(&mut pool, offset, &data);
                model.insert(offset, &data);
            }
        }
        assert_eq!(assembler.ready(), model.ready);
        assert_eq!(assembler.readable() as u64, model.ready - model.read);
        assert_eq!(assembler.buffered(), model.bytes.len());
        // The page that is being read may have no unread bytes left.
        assert!((model.pages()..=model.pages() + 1).contains(&assembler.pages()), "pages follow the bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn the_assembler_equals_the_model_for_any_operations(bytes in vec(any::<u8>(), 0..400)) {
            run(&bytes);
        }
    }

    #[test]
    fn single_bytes_in_any_order_take_no_more_pages_than_they_touch() {
        // Kind 98: anywhere, with a length below four.
        let insert = |step: u16| {
            let [high, low] = (step.wrapping_mul(2741) % 9000).to_be_bytes();
            [98, high, low, 1]
        };
        run(&(0..500).flat_map(insert).collect::<Vec<u8>>());
    }
}
