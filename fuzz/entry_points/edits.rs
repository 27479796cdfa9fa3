//! A true datagram, damaged in places that the fuzzer chooses.

/// Applies edits of three bytes each: a place (two bytes, little end first) and what its byte is mixed with. Edits
/// behind the end cut the datagram there.
pub fn apply(edits: &[u8], datagram: &mut Vec<u8>) {
    for edit in edits.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]]));
        match datagram.get_mut(place) {
            Some(byte) => *byte ^= edit[2],
            None => datagram.truncate(place % (datagram.len() + 1)),
        }
    }
}
