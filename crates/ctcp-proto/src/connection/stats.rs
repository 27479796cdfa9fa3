//! Statistics of a connection.

use core::time::Duration;

use super::{Connection, Established, State};
use crate::code::{ReceiverCounts, SenderCounts};

/// Statistics of a connection. Counters run from its beginning; fields marked "now" are current values. Round trips, loss, window, packets in
/// flight and datagram size are those of the oldest path that works; [`Connection::paths`] has those of all.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Round-trip times.
    pub rtt: RttStats,
    /// The loss average `p` of the packets that this side sends.
    pub loss: f64,
    /// Congestion window in packets (the paper's tokens), now.
    pub window: f64,
    /// Packets in flight, now.
    pub in_flight: u64,
    /// Largest datagram the path carries, in bytes, now.
    pub datagram_size: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Datagrams that were authentic and new.
    pub datagrams_received: u64,
    /// Bytes of UDP payload in datagrams that were authentic and new.
    pub bytes_received: u64,
    /// Datagrams that failed authentication or were duplicates.
    pub datagrams_dropped: u64,
    /// Those of them that failed authentication.
    pub datagrams_forged: u64,
    /// Packets sent that were declared lost.
    pub packets_lost: u64,
    /// Packets that arrived after they had been declared lost.
    pub spurious_losses: u64,
    /// Packets sent that the network marked instead of dropping, as reported by the peer.
    pub congestion_marks: u64,
    /// Whether packets are sent as ECN-capable now, because the peer reports marks correctly.
    pub is_ecn_capable: bool,
    /// Probe timeouts and timeouts of the coding scheme.
    pub timeouts: u64,
    /// New source symbols sent.
    pub symbols_sent: u64,
    /// Combinations and repeated symbols sent.
    pub repairs_sent: u64,
    /// Symbols decoded.
    pub symbols_decoded: u64,
    /// Combinations of more than one symbol received.
    pub repairs_received: u64,
    /// Combinations and symbols received that carried no new information.
    pub redundant_received: u64,
    /// Symbols sent that the peer may not have decoded yet, now.
    pub symbols_outstanding: u64,
    /// Times that data waited only because the coding window was full.
    pub window_stalls: u64,
    /// Times that the peer moved to another address.
    pub migrations: u64,
    /// Messages.
    pub messages: MessageStats,
}

/// Messages of a connection. The loss of messages before repair is `(lost + repaired) / (lost + received)`, that after repair `lost / (lost +
/// received)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageStats {
    /// Messages sent, at least in part.
    pub sent: u64,
    /// Messages whose deadline passed before all of them was sent. Those sent in part count in `sent`, too.
    pub expired: u64,
    /// Messages sent whose deadline passed before the peer confirmed their arrival: lost, late, or confirmed late. Messages that share a
    /// packet count at the last of their deadlines.
    pub unconfirmed: u64,
    /// Messages that arrived.
    pub received: u64,
    /// Those that arrived only thanks to repairs, of which some came late.
    pub repaired: u64,
    /// Messages sent that have not arrived, now: lost for ever or still on their way.
    pub lost: u64,
    /// Messages that arrived and were dropped because the application did not read.
    pub unread: u64,
}

/// Round-trip times of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttStats {
    /// The latest sample.
    pub latest: Duration,
    /// The smoothed round-trip time (RFC 9002).
    pub smoothed: Duration,
    /// The minimum of the last seconds.
    pub minimum: Duration,
}

/// Counters that the connection itself maintains.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) datagrams_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) datagrams_received: u64,
    pub(crate) bytes_received: u64,
    pub(crate) datagrams_dropped: u64,
    /// Those of them that failed authentication.
    pub(crate) datagrams_forged: u64,
    /// Datagrams of other connections that failed authentication, as reported by them.
    pub(crate) relayed_forged: u64,
    pub(crate) packets_lost: u64,
    pub(crate) spurious_losses: u64,
    pub(crate) timeouts: u64,
    pub(crate) window_stalls: u64,
    pub(crate) migrations: u64,
}

impl Connection {
    /// The statistics: all zero before the connection is established, the last values after it has closed.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        let State::Established(established) = &self.state else {
            return self.remains.as_ref().map(|remains| remains.stats.clone()).unwrap_or_default();
        };
        let counts = &established.counts;
        // A dead path says nothing about the connection while another one works.
        let path = established.paths.working();
        let (sent, received) = established.coding_counts();
        let (messages_sent, messages_received) =
            (established.messages.outgoing.counts(), established.messages.incoming.counts());
        ConnectionStats {
            rtt: path.measured.rtt.stats(self.now),
            loss: path.measured.loss_average.value(),
            window: path.admission.controller.window(),
            in_flight: path.sent.packets_in_flight(),
            datagram_size: path.owed.mtu.current(),
            datagrams_sent: counts.datagrams_sent,
            bytes_sent: counts.bytes_sent,
            datagrams_received: counts.datagrams_received,
            bytes_received: counts.bytes_received,
            datagrams_dropped: counts.datagrams_dropped,
            datagrams_forged: counts.datagrams_forged,
            packets_lost: counts.packets_lost,
            spurious_losses: counts.spurious_losses,
            congestion_marks: path.ecn.congestion_marks(),
            is_ecn_capable: path.ecn.is_capable(),
            timeouts: counts.timeouts,
            symbols_sent: sent.symbols,
            repairs_sent: sent.repairs,
            symbols_decoded: received.decoded,
            repairs_received: received.repairs,
            redundant_received: received.redundant,
            symbols_outstanding: established
                .contexts
                .used()
                .map(|context| context.sender.outstanding())
                .sum(),
            window_stalls: counts.window_stalls,
            migrations: counts.migrations,
            messages: MessageStats {
                sent: messages_sent.sent,
                expired: messages_sent.expired,
                unconfirmed: messages_sent.unconfirmed,
                received: messages_received.received,
                repaired: messages_received.repaired,
                lost: messages_received.numbers.saturating_sub(messages_received.received),
                unread: messages_received.unread,
            },
        }
    }
}

impl Established {
    /// The counters of all contexts together.
    pub(super) fn coding_counts(&self) -> (SenderCounts, ReceiverCounts) {
        let (mut sent, mut received) = (SenderCounts::default(), ReceiverCounts::default());
        for context in self.contexts.used() {
            let (from, to) = (context.sender.counts(), context.receiver.counts());
            sent.symbols += from.symbols;
            sent.repairs += from.repairs;
            received.decoded += to.decoded;
            received.repairs += to.repairs;
            received.redundant += to.redundant;
        }
        (sent, received)
    }
}
