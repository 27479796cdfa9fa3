//! The bytes that are sent: a repeating pseudo-random block, so that no transport can compress or guess it.

use std::sync::OnceLock;

use ctcp_base::Prng;

/// Bytes of a block.
pub(super) const BLOCK: usize = 64 * 1_024;

/// The block, generated once.
pub(super) fn block() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut bytes = vec![0; BLOCK];
        Prng::new(2_013).fill(&mut bytes);
        bytes
    })
}

/// Returns true if `bytes` are the pattern at `offset` of the stream.
pub(super) fn is_pattern(offset: u64, mut bytes: &[u8]) -> bool {
    let mut place = (offset % BLOCK as u64) as usize;
    while !bytes.is_empty() {
        let length = bytes.len().min(BLOCK - place);
        let (head, rest) = bytes.split_at(length);
        if head != &block()[place..place + length] {
            return false;
        }
        (bytes, place) = (rest, 0);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compared_by_their_position_also_across_blocks() {
        let stream = [block(), block()].concat();
        let at = BLOCK - 10;
        assert!(is_pattern(at as u64, &stream[at..at + 20]));
        assert!(is_pattern((3 * BLOCK + at) as u64, &stream[at..at + 20]));
        assert!(!is_pattern(at as u64 + 1, &stream[at..at + 20]));
        assert!(is_pattern(5, &[]));
    }
}
