//! Datagrams of other connections, which this one carries over one hop.
//!
//! ```text
//!   client                 relay                    server
//!   connection  - - - - - - - - - - - - - - - - - - connection     sealed end to end
//!       |                                               |
//!     hop =========== hop | buffers | hop =========== hop          a connection each: keys, congestion control, repair
//! ```
//!
//! The context of relayed datagrams has one symbol space in each direction, from end to end. A symbol holds whole sealed datagrams, or parts of
//! one, as for messages without a deadline. So a relay combines sealed symbols: it needs no key for that, and an end finds every forgery
//! when it opens a datagram.

use core::time::Duration;

use ctcp_base::Instant;

use super::{Connection, Established, Negotiated, State, TransportError};
use crate::code::{Choice, RELAYED_SPAN_MAX, RelayBuffer};
use crate::error::{CloseReason, ConnectionError, TransportErrorCode};
use crate::id::{ContextId, PathId};
use crate::message::MessageError;
use crate::network::hop_of;

/// Relayed datagrams do not expire.
const NEVER: Duration = Duration::from_secs(1 << 40);

/// How many datagrams wait for the congestion control of a hop. More would only add delay.
const WAITING_MAX: u64 = 16;

/// Beyond this many nothing is queued, whatever was sent before the limit above was known.
const WAITING_LIMIT: usize = 256;

/// Forged datagrams that a hop may carry. A connection may have renewed its keys since an honest one was sent.
const FORGED_MAX: u64 = 8;

/// What is wrong with a hop that carried something else than what the other end sent. Who forged it is not known: the peer, or someone
/// behind it.
const FORGERY: &str = "datagrams that it carried are forged";

/// How a hop repairs its losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HopRepair {
    /// Combinations, some of them ahead of feedback.
    #[default]
    Combinations,
    /// Symbols are repeated when they are reported missing.
    Repetitions,
}

/// What a connection does with relayed datagrams.
#[derive(Clone, Debug)]
pub enum Carriage {
    /// It is the first or the last hop: [`Connection::send_relayed`] and [`Connection::receive_relayed`] are used here.
    End {
        /// How this side repairs losses.
        repair: HopRepair,
    },
    /// Another connection of this relay carries on what arrives.
    Relay {
        /// For what arrives here.
        incoming: RelayBuffer,
        /// What is sent here.
        outgoing: RelayBuffer,
        /// How this side repairs losses.
        repair: HopRepair,
    },
}

impl Connection {
    /// Begins to carry datagrams of other connections. Both sides must do so before the first one arrives. Only the first call has an
    /// effect.
    ///
    /// # Errors
    /// Returns an error if the connection is not established or the peer takes none.
    pub fn carry(&mut self, carriage: Carriage) -> Result<(), MessageError> {
        let State::Established(established) = &mut self.state else { return Err(MessageError::Closed) };
        if !established.contexts.takes(ContextId::Messages) {
            return Err(MessageError::Unsupported);
        }
        established.contexts.carry(carriage);
        Ok(())
    }

    /// The longest symbol in bytes, and the longest block, on which both sides agreed. Both hops of a relay must have the same, as each
    /// passes on what arrives on the other.
    #[must_use]
    pub fn symbol_limits(&self) -> Option<(usize, u16)> {
        let State::Established(established) = &self.state else { return None };
        let Negotiated { symbol_size_max, code, .. } = &established.negotiated;
        Some((*symbol_size_max, code.block_size.min(RELAYED_SPAN_MAX)))
    }

    /// Queues a datagram of another connection.
    ///
    /// # Errors
    /// Returns an error if it was not queued, which counts as lost.
    pub fn send_relayed(&mut self, now: Instant, datagram: &[u8]) -> Result<(), MessageError> {
        let now = self.advance(now);
        let State::Established(established) = &mut self.state else { return Err(MessageError::Closed) };
        if !established.contexts.takes(ContextId::Relayed) {
            return Err(MessageError::Unsupported);
        }
        if established.relayed.outgoing.waiting() >= WAITING_LIMIT {
            return Err(MessageError::QueueFull);
        }
        established.relayed.outgoing.push(now, datagram, now + NEVER)
    }

    /// The next datagram of another connection that has arrived, in any order.
    pub fn receive_relayed(&mut self) -> Option<Vec<u8>> {
        let State::Established(established) = &mut self.state else { return None };
        established.relayed.incoming.pop()
    }

    /// How many datagrams for this connection failed authentication.
    #[must_use]
    pub fn forged_datagrams(&self) -> u64 {
        let State::Established(established) = &self.state else { return 0 };
        established.counts.datagrams_forged
    }

    /// A datagram of another connection, which this hop has carried, failed authentication there ([`Self::forged_datagrams`]). The hop is
    /// closed after a few.
    pub fn on_forged_datagram(&mut self, now: Instant) {
        let now = self.advance(now);
        let State::Established(established) = &mut self.state else { return };
        established.counts.relayed_forged += 1;
        if established.counts.relayed_forged > FORGED_MAX {
            self.on_fault(now, TransportError::new(TransportErrorCode::SymbolEncoding, FORGERY));
            self.settle();
        }
    }

    /// How many datagrams [`Self::send_relayed`] takes now before more would only wait.
    #[must_use]
    pub fn relayed_room(&self) -> u64 {
        let State::Established(established) = &self.state else { return 0 };
        if !established.contexts.takes(ContextId::Relayed) {
            return 0;
        }
        WAITING_MAX.saturating_sub(established.relayed.outgoing.waiting() as u64)
    }

    /// The next hop of a relay has received more: the peer may be told so.
    pub fn on_relay_progress(&mut self, now: Instant) {
        let now = self.advance(now);
        if let State::Established(established) = &mut self.state {
            established.on_relay_progress(now);
        }
    }

    /// The hops that carry paths of this connection.
    #[must_use]
    pub fn hops(&self) -> Vec<u64> {
        let State::Established(established) = &self.state else { return Vec::new() };
        established.paths.iter().filter_map(|path| hop_of(path.network.remote)).collect()
    }

    /// A hop that carried paths of this connection is lost. Others repair what was in flight there. If they do not work yet, those paths stay
    /// until one does; without others the connection ends.
    pub fn on_hop_lost(&mut self, now: Instant, hop: u64) {
        let now = self.advance(now);
        let State::Established(established) = &mut self.state else { return };
        let on_hop = |path: &&crate::path::Path| hop_of(path.network.remote) == Some(hop);
        if established.paths.iter().all(|path| on_hop(&path)) {
            let close = CloseReason {
                by_application: false,
                code: TransportErrorCode::NoError.number(),
                reason: "the connection to the relay was lost".to_owned(),
            };
            self.begin_ending(now, &close, ConnectionError::RelayLost);
        } else {
            let lost: Vec<PathId> = established.paths.iter().filter(on_hop).map(|path| path.id).collect();
            lost.into_iter().for_each(|id| established.retire_path(id));
            self.drain_established();
        }
        self.settle();
    }

    /// Sets how many datagrams a hop takes now.
    pub fn set_hop_room(&mut self, hop: u64, datagrams: u64) {
        let State::Established(established) = &mut self.state else { return };
        for path in established.paths.iter_mut() {
            if hop_of(path.network.remote) == Some(hop) {
                path.set_room(datagrams);
            }
        }
    }
}

impl Established {
    /// Whether a datagram of another connection would be cut in two symbols, because only `room` bytes are left in a packet.
    pub(super) fn cuts_datagram(
        &mut self,
        choice: Option<(ContextId, Choice)>,
        path: PathId,
        datagram_size: usize,
        room: usize,
    ) -> bool {
        if choice != Some((ContextId::Relayed, Choice::NewSymbol)) {
            return false;
        }
        let whole = self.symbol_size(path, ContextId::Relayed, datagram_size);
        let overhead = self.contexts.open(ContextId::Relayed).sender.overhead();
        self.relayed.outgoing.is_cut(whole, room.saturating_sub(overhead))
    }

    fn on_relay_progress(&mut self, now: Instant) {
        if self.contexts.relay_buffer().is_none_or(|buffer| !buffer.take_progress()) {
            return;
        }
        if let Some(context) = self.contexts.get_mut(ContextId::Relayed) {
            context.receiver.on_progress();
            self.report_progress(now);
        }
    }

    /// The peer may wait for just this report, with nothing in flight. So its loss must be noticed.
    fn report_progress(&mut self, now: Instant) {
        self.paths.main_mut().acks.on_news(now);
        self.ping = true;
    }

    /// Reports with these numbers, by context, were lost.
    pub(super) fn on_report_lost(&mut self, now: Instant, reports: [u64; ContextId::ALL.len()]) {
        if self.contexts.relay_buffer().is_some()
            && let Some(context) = self.contexts.get(ContextId::Relayed)
            && context.receiver.is_newest_report(reports[ContextId::Relayed as usize])
        {
            self.report_progress(now);
        }
    }
}

/// The symbols of a hop are wrong only if someone on the way forged them, or the other end did.
pub(super) fn name_forgery(error: TransportError) -> TransportError {
    let is_contents = error.code == TransportErrorCode::SymbolEncoding;
    if is_contents { TransportError { reason: FORGERY, ..error } } else { error }
}
