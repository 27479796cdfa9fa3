//! A byte string of known length that arrives in pieces.

/// The bytes that have arrived.
#[derive(Debug)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    has_arrived: Vec<bool>,
    missing: usize,
}

impl Pieces {
    /// Nothing of `total` bytes has arrived.
    pub(crate) fn new(total: usize) -> Self {
        Self { bytes: vec![0; total], has_arrived: vec![false; total], missing: total }
    }

    /// Bytes of memory for a whole of `total` bytes.
    pub(crate) const fn memory_of(total: usize) -> usize {
        2 * total
    }

    /// The length of the whole.
    pub(crate) fn total(&self) -> usize {
        self.bytes.len()
    }

    /// Whether all bytes have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Inserts the bytes from `offset` on. Those beyond the end are ignored.
    pub(crate) fn insert(&mut self, offset: usize, piece: &[u8]) {
        let places = self.bytes.iter_mut().zip(&mut self.has_arrived).skip(offset);
        for ((place, has_arrived), &byte) in places.zip(piece) {
            *place = byte;
            self.missing -= usize::from(!*has_arrived);
            *has_arrived = true;
        }
    }

    /// The bytes, with zeros where nothing has arrived.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
