//! Packets that an honest connection would not send, under its keys: for tests of what a hostile peer can do.

use ctcp_base::Instant;

use super::{Connection, Contents, State};
use crate::wire::Frame;

impl Connection {
    /// The phases of the keys for sending and receiving.
    #[cfg(test)]
    pub(crate) fn key_phases(&self) -> (u64, u64) {
        let State::Established(established) = &self.state else { panic!("not connected") };
        established.protection.phases()
    }

    /// Symbols that it stores behind the oldest undecoded one.
    #[cfg(test)]
    pub(crate) fn own_window(&self) -> u64 {
        let State::Established(established) = &self.state else { panic!("not connected") };
        established.negotiated.window
    }

    /// Whether it answered a share of new keys.
    #[cfg(test)]
    pub(crate) fn has_answered_key_share(&self) -> bool {
        let State::Established(established) = &self.state else { panic!("not connected") };
        established.keys.has_answered()
    }

    /// A packet with these frames, sealed and numbered as the next one. Only with the feature `forge`, which is for tests.
    ///
    /// # Panics
    /// When the connection is not up.
    #[doc(hidden)]
    pub fn forge(&mut self, now: Instant, frames: &[Frame<'_>]) -> Vec<u8> {
        let State::Established(established) = &mut self.state else { panic!("not connected") };
        let mut builder = established.open_builder(Vec::new(), 1_200);
        for frame in frames {
            builder.write(frame);
        }
        let mut datagram = Vec::new();
        established
            .send(now, builder, Contents::default(), &mut datagram)
            .expect("a key that is not used up");
        datagram
    }
}
