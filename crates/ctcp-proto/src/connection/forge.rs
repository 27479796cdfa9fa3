//! Packets that an honest connection would not send, sealed with its keys. Tests use them to play a hostile peer.

use ctcp_base::Instant;

use super::{Connection, Contents, State};
#[cfg(test)]
use crate::id::PacketNumber;
use crate::id::PathId;
use crate::wire::Frame;
#[cfg(test)]
use crate::wire::{DatagramBuilder, NewPacket};

impl Connection {
    /// The phases of the keys for sending and receiving.
    #[cfg(test)]
    pub(crate) fn key_phases(&self) -> (u64, u64) {
        let State::Established(established) = &self.state else { panic!("not connected") };
        established.protection.phases()
    }

    /// Symbols that this side stores beyond the oldest undecoded one.
    #[cfg(test)]
    pub(crate) fn own_window(&self) -> u64 {
        let State::Established(established) = &self.state else { panic!("not connected") };
        established.negotiated.window
    }

    /// Whether it answered a KEY_SHARE.
    #[cfg(test)]
    pub(crate) fn has_answered_key_share(&self) -> bool {
        let State::Established(established) = &self.state else { panic!("not connected") };
        established.keys.has_answered()
    }

    /// The largest packet number that arrived on a path.
    #[cfg(test)]
    pub(crate) fn largest_received(&self, path: PathId) -> Option<PacketNumber> {
        let State::Established(established) = &self.state else { return None };
        established.paths.get(path)?.replay.largest()
    }

    /// Until when the peer's reports count what was sent on a path, as far as ARRIVED told.
    #[cfg(test)]
    pub(crate) fn counted(&self, path: PathId) -> Option<Instant> {
        let State::Established(established) = &self.state else { return None };
        Some(established.paths.get(path)?.counted())
    }

    /// The number of the next packet on a path.
    #[cfg(test)]
    pub(crate) fn next_number(&self, path: PathId) -> Option<u64> {
        let State::Established(established) = &self.state else { return None };
        Some(established.paths.get(path)?.sent.next_number().0)
    }

    /// Seals the first packet of a path that this side does not have.
    #[cfg(test)]
    pub(crate) fn forge_on(&mut self, path: PathId, frames: &[Frame<'_>]) -> Vec<u8> {
        let State::Established(established) = &mut self.state else { panic!("not connected") };
        let packet = NewPacket {
            destination: established.path_changes.ids.of_peer(path),
            path,
            packet_number: PacketNumber(0),
            largest_acked: None,
        };
        let mut builder = DatagramBuilder::short(Vec::new(), 1_200, packet);
        for frame in frames {
            builder.write(frame);
        }
        established.seal(builder).expect("a key that is not used up")
    }

    /// Seals a packet with these frames under the next packet number. Only with the feature `forge`, which is for tests.
    ///
    /// # Panics
    /// Panics if the connection is not established.
    #[doc(hidden)]
    pub fn forge(&mut self, now: Instant, frames: &[Frame<'_>]) -> Vec<u8> {
        let State::Established(established) = &mut self.state else { panic!("not connected") };
        let size = usize::try_from(established.paths.main().datagram_size()).unwrap_or(usize::MAX);
        let mut builder = established.open_builder(PathId(0), Vec::new(), size);
        for frame in frames {
            builder.write(frame);
        }
        let mut datagram = Vec::new();
        established
            .send(now, PathId(0), builder, Contents::default(), &mut datagram)
            .expect("a key that is not used up");
        datagram
    }
}
