//! Frames of meaningless types, sent now and then so that no implementation relies on their absence (the idea of RFC 8701).

use crate::crypto::random::SecretRng;
use crate::wire::{DatagramBuilder, Frame, reserved_number};

/// Minimum number of packets without a combination from one such frame to the next. Packets with a combination have better use for their
/// room.
const DISTANCE_MIN: u64 = 32;

/// The distance varies by so many packets.
const DISTANCE_RANGE: u64 = 64;

/// Number of types in use here, all of two bytes.
const TYPES: u64 = 256;

/// Maximum length of the random contents in bytes.
const CONTENTS_MAX: usize = 7;

/// Counts the packets until the next frame of a meaningless type.
#[derive(Debug, Default)]
pub(super) struct Grease {
    packets_left: u64,
}

impl Grease {
    /// A packet without a combination is about to be sent. Writes the frame if it is due.
    pub(super) fn write(&mut self, rng: &mut SecretRng, builder: &mut DatagramBuilder) {
        if self.packets_left > 0 {
            self.packets_left -= 1;
            return;
        }
        self.packets_left = DISTANCE_MIN + rng.below(DISTANCE_RANGE);
        // An odd type is not ack-eliciting, so a packet with nothing but acknowledgements stays one.
        let kind = reserved_number(2 * rng.below(TYPES) + 1);
        let noise = rng.bytes();
        let length = rng.below(CONTENTS_MAX as u64 + 1) as usize;
        builder.write_if_it_fits(&Frame::Skippable { kind, contents: &noise[..length] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ConnectionId, PacketNumber, PathId};
    use crate::wire::{NewPacket, frames};

    #[test]
    fn about_one_packet_in_64_has_a_frame_that_elicits_nothing() {
        let (mut grease, mut rng) = (Grease::default(), SecretRng::new([1; 32]));
        let destination = ConnectionId::new(&[1; 8]).expect("8 bytes");
        let packet =
            NewPacket { destination, path: PathId(0), packet_number: PacketNumber(0), largest_acked: None };
        let mut count = 0;
        for _ in 0..6_400 {
            let mut builder = DatagramBuilder::short(Vec::new(), 1200, packet);
            grease.write(&mut rng, &mut builder);
            assert!(!builder.is_ack_eliciting());
            count += usize::from(!builder.is_empty());
            let sealable = builder.finish();
            let payload = &sealable.buffer[1 + 8 + 1 + sealable.packet_number_length..];
            for frame in frames(payload) {
                match frame.expect("well-formed") {
                    Frame::Skippable { kind, .. } => assert_eq!(kind % 31, 27),
                    other => assert!(matches!(other, Frame::Padding(_)), "{other}"),
                }
            }
        }
        assert!((80..=120).contains(&count), "{count} of 6,400");
    }
}
