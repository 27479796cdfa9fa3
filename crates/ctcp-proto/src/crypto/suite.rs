//! The AEAD suites that seal packets (PROTOCOL.md section 2.2).

use ring::aead;

/// An AEAD and its header protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// AES-256-GCM: faster on machines with AES instructions.
    Aes256Gcm = 1,
    /// ChaCha20-Poly1305: faster elsewhere.
    ChaCha20Poly1305 = 2,
}

impl Suite {
    /// Every suite, starting with the one that is faster on most machines.
    pub const ALL: [Self; 2] = [Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// Returns the suite for a number on the wire.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.number() == number)
    }

    /// The number in the parameter `aead_suites`.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    pub(super) fn header_protection(self) -> &'static aead::quic::Algorithm {
        match self {
            Self::Aes256Gcm => &aead::quic::AES_256,
            Self::ChaCha20Poly1305 => &aead::quic::CHACHA20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_unknown_ones_are_rejected() {
        for suite in Suite::ALL {
            assert_eq!(Suite::from_number(suite.number()), Some(suite));
        }
        assert_eq!(Suite::from_number(0), None);
        assert_eq!(Suite::from_number(3), None);
    }
}
