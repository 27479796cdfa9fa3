//! Small shared primitives: HKDF-Expand and constant-time comparison.

use core::hint::black_box;

use ring::hkdf;

/// The output length, in the form that ring requires.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand with SHA-256 (RFC 5869 section 2.3): `secret` is the pseudorandom key, `info` the concatenated parts of the info string. The
/// output has at most 8160 bytes.
#[must_use]
pub fn expand<const N: usize>(secret: &[u8; 32], info: &[&[u8]]) -> [u8; N] {
    expand_prk(&hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret), info)
}

/// The same with the pseudorandom key in ring's form.
#[must_use]
pub(crate) fn expand_prk<const N: usize>(secret: &hkdf::Prk, info: &[&[u8]]) -> [u8; N] {
    const { assert!(N <= 255 * 32, "HKDF with SHA-256 yields at most 255 blocks") };
    let mut output = [0; N];
    secret
        .expand(info, Length(N))
        .and_then(|material| material.fill(&mut output))
        .expect("the length is within what HKDF yields");
    output
}

/// Whether two byte strings are equal. The time depends only on their lengths.
#[must_use]
pub fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let difference = left.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b));
    // The black box keeps the compiler from stopping at the first difference.
    left.len() == right.len() && black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expand_meets_test_case_1_of_rfc_5869() {
        let secret: [u8; 32] = [
            0x07, 0x77, 0x09, 0x36, 0x2c, 0x2e, 0x32, 0xdf, 0x0d, 0xdc, 0x3f, 0x0d, 0xc4, 0x7b, 0xba, 0x63,
            0x90, 0xb6, 0xc7, 0x3b, 0xb5, 0x0f, 0x9c, 0x31, 0x22, 0xec, 0x84, 0x4a, 0xd7, 0xc2, 0xb3, 0xe5,
        ];
        let output: [u8; 42] =
            expand(&secret, &[&[0xf0, 0xf1, 0xf2, 0xf3, 0xf4], &[0xf5, 0xf6, 0xf7, 0xf8, 0xf9]]);
        assert_eq!(output[..8], [0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a]);
        assert_eq!(output[32..], [0x34, 0x00, 0x72, 0x08, 0xd5, 0xb8, 0x87, 0x18, 0x58, 0x65]);
    }

    #[test]
    fn strings_are_equal_only_with_equal_lengths_and_bytes() {
        assert!(is_equal(b"", b""));
        assert!(is_equal(b"abc", b"abc"));
        assert!(!is_equal(b"abc", b"abd"));
        assert!(!is_equal(b"abc", b"ab"));
        assert!(!is_equal(b"", b"a"));
    }
}
