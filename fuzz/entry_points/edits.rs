//! Damages a valid datagram in places that the fuzzer chooses.

/// Applies edits of three bytes each: a position (two bytes, little-endian) and a value that is XORed into its byte.
/// Edits beyond the end truncate the datagram.
pub fn apply(edits: &[u8], datagram: &mut Vec<u8>) {
    for edit in edits.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]]));
        match datagram.get_mut(place) {
            Some(byte) => *byte ^= edit[2],
            None => datagram.truncate(place % (datagram.len() + 1)),
        }
    }
}
