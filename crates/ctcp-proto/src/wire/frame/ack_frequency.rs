//! ACK_FREQUENCY (PROTOCOL.md section 4.1, after draft-ietf-quic-ack-frequency).

use core::time::Duration;

use super::{kind, skippable_length, write_skippable};
use crate::wire::Malformed;
use crate::wire::varint::Reader;

/// How often a receiver acknowledges the packets of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// The number of ack-eliciting packets that one acknowledgement covers, at least 1.
    pub packets: u64,
    /// The longest delay of an acknowledgement; in whole microseconds.
    pub delay: Duration,
    /// Whether an acknowledgement is sent at once when a packet is missing or fills a gap.
    pub hurries_at_gaps: bool,
}

impl AckFrequency {
    pub(super) fn parse(contents: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(contents);
        let packets = reader.varint()?;
        let delay = Duration::from_micros(reader.varint()?);
        let hurries_at_gaps = match reader.varint()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed::new("neither 0 nor 1")),
        };
        if packets == 0 {
            return Err(Malformed::new("an acknowledgement of no packets"));
        }
        if !reader.is_empty() {
            return Err(Malformed::new("more bytes than fields"));
        }
        Ok(Self { packets, delay, hurries_at_gaps })
    }

    fn fields(&self) -> [u64; 3] {
        let micros = u64::try_from(self.delay.as_micros()).unwrap_or(u64::MAX);
        [self.packets, micros, u64::from(self.hurries_at_gaps)]
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_skippable(kind::ACK_FREQUENCY, &self.fields(), out);
    }

    pub(super) fn length(&self) -> usize {
        skippable_length(kind::ACK_FREQUENCY, &self.fields())
    }
}
