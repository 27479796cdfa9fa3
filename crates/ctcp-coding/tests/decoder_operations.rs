//! Compares the decoder with a naive model, driven by arbitrary bytes.
//!
//! [`run`] interprets any byte string as a sequence of decoder operations and checks every result against full Gaussian
//! elimination on a dense matrix. A fuzz target can include this file and call it.

#[path = "decoder_operations/model.rs"]
mod model;

use ctcp_coding::{Decoder, DecoderConfig, SymbolRange, coefficients, gf256::element};
use model::Model;

/// The maximum symbol size of a run. It is small because payload kernels have their own tests.
const SYMBOL_SIZE_MAX: usize = 70;

/// A combination that was sent, kept so that it can be repeated.
#[derive(Clone)]
struct Sent {
    range: SymbolRange,
    coefficients: Vec<u8>,
    payload: Vec<u8>,
}

/// One decoder with its model.
struct Run<'a> {
    input: Input<'a>,
    decoder: Decoder,
    model: Model,
    sent: Vec<Sent>,
    /// Whether payloads are correct, so that decoded contents can be compared.
    is_honest: bool,
    /// Number of operations between two full comparisons.
    stride: usize,
}

/// The input bytes, followed by endless zeros.
struct Input<'a> {
    bytes: &'a [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }
}

/// Interprets `bytes` as operations on a decoder and compares it with the model after each.
pub fn run(bytes: &[u8]) {
    let mut input = Input { bytes };
    let kind = usize::from(input.byte());
    let is_honest = kind % 4 != 0;
    // Beyond 64 symbols the rows of the decoder's matrix become longer, and the model is slow.
    let (window, stride) =
        if kind / 4 % 8 == 0 { (60 + input.below(140), 16) } else { (1 + input.below(24), 1) };
    let equations_max = if kind / 32 % 4 == 0 { 1 + input.below(8) } else { window };
    let config = DecoderConfig { equations_max, ..DecoderConfig::new(SYMBOL_SIZE_MAX, window) };
    let (decoder, model) = (Decoder::new(config), Model::new(window, equations_max));
    let mut run = Run { input, decoder, model, sent: Vec::new(), is_honest, stride };
    while !run.input.bytes.is_empty() {
        for _ in 0..run.stride {
            run.step();
        }
        run.compare();
    }
    run.poll(usize::MAX);
    run.compare();
}

/// Returns the contents of symbol `index`: 0 to `SYMBOL_SIZE_MAX` bytes derived from the index.
fn contents(index: u64) -> Vec<u8> {
    let mix = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    let length = usize::from(mix(index + 1)) % (SYMBOL_SIZE_MAX + 1);
    (0..length as u64).map(|position| mix(index * 1000 + position + 17)).collect()
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(SYMBOL_SIZE_MAX, 0);
    bytes
}

impl Run<'_> {
    fn step(&mut self) {
        match self.input.byte() % 16 {
            0..=4 => self.source(),
            5..=10 => self.combination(),
            11 => self.repeat(),
            12 => {
                let count = self.input.below(5);
                self.poll(count);
            }
            13 => self.poll(usize::MAX),
            // In large windows the decoder may drop what it could keep.
            14 if self.input.byte().is_multiple_of(4) && self.model.window <= 32 => self.skip(),
            14 => self.release(),
            _ => self.nonsense(),
        }
    }

    /// Returns an index between a little below the oldest undecoded symbol and a little beyond the limit.
    fn index(&mut self) -> u64 {
        let spread = 2 * self.model.window + 6;
        (self.model.oldest_undecoded() + self.input.below(spread) as u64)
            .saturating_sub(self.model.window as u64 / 2 + 2)
    }

    fn source(&mut self) {
        let index = self.index();
        let bytes = contents(index);
        let expected = self.model.source(index);
        assert_eq!(self.decoder.handle_source(index, &bytes), expected, "source {index}");
    }

    fn combination(&mut self) {
        let first = self.index();
        let length = 1 + self.input.below(self.model.window + 2) as u16;
        let range = SymbolRange::new(first, length).expect("short and far from the last index");
        let mut row = vec![0; usize::from(length)];
        match self.input.byte() {
            // Small values make linear dependence and cancellation frequent.
            key @ 0..=120 => {
                coefficients::generate_uniform(u32::from(key), &mut row);
                row.iter_mut().for_each(|coefficient| *coefficient %= 3);
            }
            key => coefficients::generate(u16::from(key), key % 16, &mut row),
        }
        let mut payload = vec![0; SYMBOL_SIZE_MAX];
        for (index, &coefficient) in range.indexes().zip(&row) {
            for (sum, byte) in payload.iter_mut().zip(contents(index)) {
                *sum ^= element::mul(coefficient, byte);
            }
        }
        if self.is_honest {
            let length = payload.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            payload.truncate(length);
        } else {
            payload.truncate(self.input.below(SYMBOL_SIZE_MAX));
        }
        let sent = Sent { range, coefficients: row, payload };
        self.deliver(&sent);
        self.sent.push(sent);
    }

    fn repeat(&mut self) {
        if let Some(position) = self.input.below(16).checked_sub(1) {
            let position = self.sent.len().wrapping_sub(position + 1);
            if let Some(sent) = self.sent.get(position).cloned() {
                self.deliver(&sent);
            }
        }
    }

    fn deliver(&mut self, sent: &Sent) {
        let expected = self.model.combination(sent.range, &sent.coefficients);
        let arrival = self.decoder.handle_combination(sent.range, &sent.coefficients, &sent.payload);
        assert_eq!(arrival, expected, "{:?} {:?}", sent.range, sent.coefficients);
    }

    fn poll(&mut self, count: usize) {
        for _ in 0..count {
            let Some((index, bytes)) = self.decoder.poll_decoded() else {
                self.model.check_all_delivered();
                return;
            };
            self.model.deliver(index);
            assert_eq!(bytes.len(), SYMBOL_SIZE_MAX);
            if self.is_honest {
                assert_eq!(bytes, padded(contents(index)), "symbol {index}");
            }
        }
    }

    fn release(&mut self) {
        let index = self.index();
        self.decoder.release_before(index);
        self.model.release_before(index);
    }

    fn skip(&mut self) {
        let index = self.index();
        self.model.skip_before(index);
        self.decoder.skip_before(index);
    }

    /// Makes an invalid call, which must change nothing; the comparison afterwards checks this.
    fn nonsense(&mut self) {
        let first = self.index();
        let range = SymbolRange::new(first, 3).expect("short and far from the last index");
        match self.input.byte() % 6 {
            0 => assert!(self.decoder.handle_combination(range, &[1, 2], &[]).is_err()),
            1 => assert!(self.decoder.handle_combination(range, &[1; 3], &[1; SYMBOL_SIZE_MAX + 1]).is_err()),
            2 => assert!(self.decoder.handle_source(first, &[0; SYMBOL_SIZE_MAX + 1]).is_err()),
            3 => assert!(self.decoder.handle_source(u64::MAX, &[]).is_err()),
            4 => {
                let far = SymbolRange::new(u64::MAX - 3, 3).expect("ends at the last index");
                assert!(self.decoder.handle_combination(far, &[1; 3], &[]).is_err());
            }
            _ => self.decoder.shrink(),
        }
    }

    fn compare(&mut self) {
        let (decoder, model) = (&self.decoder, &self.model);
        assert_eq!(decoder.oldest_undecoded(), model.oldest_undecoded());
        assert_eq!(decoder.oldest_unseen(), model.oldest_unseen());
        assert_eq!(decoder.known_end(), model.known_end());
        assert_eq!(decoder.limit(), model.limit());
        assert_eq!(decoder.floor(), model.floor());
        assert_eq!(decoder.equations(), model.equations());
        for index in 0..model.known_end() + 2 {
            assert_eq!(decoder.is_decoded(index), model.is_decoded(index), "{index}");
            assert_eq!(decoder.is_seen(index), model.is_seen(index), "{index}");
        }
        let all = model.intervals();
        let mut intervals = Vec::new();
        assert_eq!(decoder.undecodable_intervals(usize::MAX, &mut intervals), model.known_end());
        assert_eq!(intervals, all);
        for limit in 0..all.len() {
            let end = decoder.undecodable_intervals(limit, &mut intervals);
            assert_eq!((end, &intervals[..]), (all[limit].first, &all[..limit]));
        }
        let first = self.index();
        let length = 1 + self.input.below(30) as u16;
        let range = SymbolRange::new(first, length).expect("short and far from the last index");
        assert_eq!(self.decoder.rank_in(range), self.model.rank_in(range), "{range:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn the_decoder_equals_naive_elimination_under_any_operations(bytes in vec(any::<u8>(), 0..1500)) {
            run(&bytes);
        }
    }
}
