//! One cell of the table: a block of symbols, which of them were lost, and what arrived instead.

use ctcp_coding::{Arrival, Decoder, DecoderConfig, SymbolRange};

/// Bytes in a symbol: whole cache lines that fit into a datagram on most paths.
pub const SYMBOL: usize = 1344;

/// The alignment of arrived packets, chosen to suit every library.
const LINE: usize = 64;

/// The last byte of every block. The `rlnc` crate treats it as the end of its data.
pub const LAST_BYTE: u8 = 0x81;

/// Consecutive packets, each starting on a cache line.
pub struct Packets {
    storage: Vec<u8>,
    start: usize,
    length: usize,
}

impl Packets {
    pub fn zeroed(count: usize, length: usize) -> Self {
        let storage = vec![0; count * length + LINE];
        let start = storage.as_ptr().align_offset(LINE);
        Self { storage, start, length }
    }

    pub fn packet(&self, index: usize) -> &[u8] {
        &self.storage[self.start + index * self.length..][..self.length]
    }

    pub fn packet_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.storage[self.start + index * self.length..][..self.length]
    }

    pub fn all(&self, count: usize) -> &[u8] {
        &self.storage[self.start..][..count * self.length]
    }
}

/// A block of `n` symbols.
pub struct Case {
    pub n: usize,
    /// The share of symbols lost; 1 in a dense case, where only combinations arrive.
    pub loss: f64,
    /// Indexes of the lost symbols, ascending.
    pub lost: Vec<usize>,
    pub symbols: Packets,
    /// Coefficients of as many combinations as symbols were lost. Their columns for the lost symbols have full rank.
    pub rows: Vec<Vec<u8>>,
    /// The combinations of [`Case::rows`].
    pub payloads: Packets,
}

impl Case {
    /// Creates a case whose losses and coefficients follow from the seed.
    pub fn new(n: usize, loss: f64, seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut symbols = Packets::zeroed(n, SYMBOL);
        for index in 0..n {
            symbols.packet_mut(index).fill_with(|| random.byte());
        }
        symbols.packet_mut(n - 1)[SYMBOL - 1] = LAST_BYTE;
        let count = ((n as f64 * loss).round() as usize).clamp(1, n);
        let mut lost: Vec<usize> = (0..n).collect();
        for position in 0..count {
            lost.swap(position, position + random.below(n - position));
        }
        lost.truncate(count);
        lost.sort_unstable();
        let rows = independent_rows(n, &lost, &mut random);
        let mut payloads = Packets::zeroed(rows.len(), SYMBOL);
        let sources: Vec<&[u8]> = (0..n).map(|index| symbols.packet(index)).collect();
        for (index, row) in rows.iter().enumerate() {
            ctcp_coding::gf256::combine(payloads.packet_mut(index), row, &sources);
        }
        Self { n, loss, lost, symbols, rows, payloads }
    }

    pub fn is_dense(&self) -> bool {
        self.lost.len() == self.n
    }

    pub fn arrived(&self) -> impl Iterator<Item = usize> {
        (0..self.n).filter(|index| self.lost.binary_search(index).is_err())
    }

    pub fn range(&self, first: u64) -> SymbolRange {
        SymbolRange::new(first, self.n as u16).expect("blocks are short")
    }

    /// Panics unless `symbol` is the symbol `index`, since a decoder must be correct to take part.
    pub fn check(&self, library: &str, index: usize, symbol: &[u8]) {
        assert!(symbol == self.symbols.packet(index), "{library}: symbol {index} of {} is wrong", self.n);
    }
}

/// Random coefficients without zeros. A row that adds no information about the lost symbols is drawn again.
fn independent_rows(n: usize, lost: &[usize], random: &mut Random) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new(DecoderConfig::new(1, n));
    for index in (0..n).filter(|index| lost.binary_search(index).is_err()) {
        decoder.handle_source(index as u64, &[]).expect("inside the window");
    }
    let range = SymbolRange::new(0, n as u16).expect("blocks are short");
    let mut rows = Vec::new();
    while rows.len() < lost.len() {
        let row: Vec<u8> = (0..n).map(|_| random.byte().max(1)).collect();
        if decoder.handle_combination(range, &row, &[]) == Ok(Arrival::Innovative) {
            rows.push(row);
        }
    }
    rows
}

/// xorshift64*, of which the high bits are used, so that matrices have the expected rank.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 56) as u8
    }

    fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 32) % bound as u64) as usize
    }
}
