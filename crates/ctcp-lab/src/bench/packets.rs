//! Symbols in memory: aligned, and with pseudo-random contents.

/// Bytes in a symbol: whole cache lines that fit into a datagram on most paths.
pub(super) const SYMBOL: usize = 1344;

/// The alignment of the first symbol, and thus of all.
const LINE: usize = 64;

/// Consecutive symbols.
pub(super) struct Packets {
    storage: Vec<u8>,
    start: usize,
}

impl Packets {
    pub(super) fn zeroed(count: usize) -> Self {
        let storage = vec![0; count * SYMBOL + LINE];
        let start = storage.as_ptr().align_offset(LINE);
        Self { storage, start }
    }

    pub(super) fn random(count: usize, random: &mut Random) -> Self {
        let mut packets = Self::zeroed(count);
        packets.storage.fill_with(|| random.byte());
        packets
    }

    pub(super) fn packet(&self, index: usize) -> &[u8] {
        &self.storage[self.start + index * SYMBOL..][..SYMBOL]
    }

    pub(super) fn all(&self, count: usize) -> Vec<&[u8]> {
        (0..count).map(|index| self.packet(index)).collect()
    }

    pub(super) fn all_mut(&mut self, count: usize) -> Vec<&mut [u8]> {
        self.storage[self.start..].chunks_exact_mut(SYMBOL).take(count).collect()
    }
}

/// xorshift64*, of which the highest bits are used. Its lowest bits would produce matrices of too low a rank.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn byte(&mut self) -> u8 {
        (self.next() >> 56) as u8
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 32) % bound as u64) as usize
    }
}
