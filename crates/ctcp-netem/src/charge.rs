//! What a packet costs on a link: its true size, or the size that a paper's packets have.

/// The bytes that a packet is charged to the rate and to a queue limited in bytes.
///
/// The figures of the papers are for packets of 1000 bytes and acknowledgements of 40, and a share of a link is a count
/// of such packets. Our packets have other sizes (coding header, sealing, ranges in acknowledgements), which would be in every
/// figure and say nothing about the code or the congestion control under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// The payload and the link's overhead.
    #[default]
    True,
    /// Two sizes, whatever the payload; the link's overhead is not added.
    Nominal {
        /// A packet with more bytes of payload than this is data, any other an acknowledgement.
        data_above: usize,
        /// Bytes for data.
        data: u64,
        /// Bytes for an acknowledgement.
        acknowledgement: u64,
    },
}

impl Charge {
    /// The sizes of TCP/NC and of EOT/PB: 1000 bytes of data, 40 of acknowledgement. The border leaves room for an
    /// acknowledgement with hundreds of ranges below it and for symbols of 500 bytes above it.
    pub const PAPERS: Self = Self::Nominal { data_above: 500, data: 1_000, acknowledgement: 40 };

    /// The same for every packet, for a way that carries only one kind, or whose payloads are so small that their sizes say
    /// nothing about them.
    #[must_use]
    pub const fn every(bytes: u64) -> Self {
        Self::Nominal { data_above: 0, data: bytes, acknowledgement: bytes }
    }

    /// For a packet with so many bytes of payload on a link with that overhead.
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
