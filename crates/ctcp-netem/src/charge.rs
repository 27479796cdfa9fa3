//! The size that a packet is charged on a link: its true size, or the size of a paper's packets.

/// The bytes that a packet is charged to the rate and to a queue limited in bytes.
///
/// The papers' figures are for packets of 1000 bytes and acknowledgements of 40, and they count such packets. Our
/// packets have other sizes because of the coding header, the encryption and the ranges in acknowledgements. Charged at
/// their true size, they would affect every figure without saying anything about the code or the congestion control
/// under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// The payload plus the link's overhead.
    #[default]
    True,
    /// Two sizes, independent of the payload. The link's overhead is not added.
    Nominal {
        /// A packet with a larger payload, in bytes, is data. Any other packet is an acknowledgement.
        data_above: usize,
        /// Bytes charged for data.
        data: u64,
        /// Bytes charged for an acknowledgement.
        acknowledgement: u64,
    },
}

impl Charge {
    /// The sizes of TCP/NC and of EOT/PB: 1000 bytes of data, 40 of acknowledgement. The threshold is above an
    /// acknowledgement with hundreds of ranges and below symbols of more than 500 bytes.
    pub const PAPERS: Self = Self::Nominal { data_above: 500, data: 1_000, acknowledgement: 40 };

    /// Returns the same charge for every packet. It is for a direction with only one kind of packet, or for payloads
    /// whose sizes do not tell the kinds apart.
    #[must_use]
    pub const fn every(bytes: u64) -> Self {
        Self::Nominal { data_above: 0, data: bytes, acknowledgement: bytes }
    }

    /// Returns the charge for a packet with `payload` bytes on a link with the given overhead.
    pub(crate) fn of(self, payload: usize, overhead: u64) -> u64 {
        match self {
            Self::True => (payload as u64).saturating_add(overhead),
            Self::Nominal { data_above, data, .. } if payload > data_above => data,
            Self::Nominal { acknowledgement, .. } => acknowledgement,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_charged_by_its_kind_and_not_by_its_size() {
        assert_eq!(Charge::True.of(100, 28), 128);
        assert_eq!(
            [40, 500, 501, 1_472].map(|payload| Charge::PAPERS.of(payload, 28)),
            [40, 40, 1_000, 1_000]
        );
        assert_eq!([0, 1, 1_472].map(|payload| Charge::every(1_000).of(payload, 28)), [1_000; 3]);
    }
}
