//! The contents of streams: bytes determined by a seed and their offset, so that a reader can verify every byte.

use ctcp_base::mix;

/// The contents of one direction of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    seed: u64,
}

impl Contents {
    /// Creates contents that are different for every seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// Writes the bytes starting at `offset` to `out`.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let mut word = offset / 8;
        let skip = (offset % 8) as usize;
        let (head, tail) = out.split_at_mut(((8 - skip) % 8).min(out.len()));
        if !head.is_empty() {
            head.copy_from_slice(&self.word(word)[skip..][..head.len()]);
            word += 1;
        }
        let mut chunks = tail.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.word(word));
            word += 1;
        }
        let rest = chunks.into_remainder();
        rest.copy_from_slice(&self.word(word)[..rest.len()]);
    }

    /// Returns the offset of the first byte of `data`, which starts at `offset`, that differs from the contents.
    #[must_use]
    pub fn first_difference(self, offset: u64, data: &[u8]) -> Option<u64> {
        let mut expected = [0; 512];
        let mut place = offset;
        for part in data.chunks(expected.len()) {
            let expected = &mut expected[..part.len()];
            self.fill(place, expected);
            if expected != part {
                let first = expected.iter().zip(part).position(|(expected, byte)| expected != byte);
                return first.map(|first| place + first as u64);
            }
            place += part.len() as u64;
        }
        None
    }

    fn word(self, index: u64) -> [u8; 8] {
        mix(self.seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_the_contents_has_the_same_bytes() {
        let contents = Contents::new(7);
        let mut whole = [0; 64];
        contents.fill(0, &mut whole);
        for start in 0..40 {
            for length in 0..24 {
                let mut part = vec![0; length];
                contents.fill(start, &mut part);
                assert_eq!(part, whole[start as usize..][..length], "{start} {length}");
                assert_eq!(contents.first_difference(start, &part), None);
            }
        }
    }

    #[test]
    fn the_offset_of_a_wrong_byte_is_found() {
        let contents = Contents::new(8);
        let mut data = [0; 100];
        contents.fill(5, &mut data);
        data[42] ^= 1;
        assert_eq!(contents.first_difference(5, &data), Some(47));
        let mut data = [0; 2_000];
        contents.fill(5, &mut data);
        assert_eq!(contents.first_difference(5, &data), None);
        data[1_500] ^= 1;
        assert_eq!(contents.first_difference(5, &data), Some(1_505));
    }
}
