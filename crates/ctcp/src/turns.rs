//! Turns: the peers of an endpoint share its driver's time evenly.
//!
//! A peer is a key, whatever number of connections it has. The driver measures the time that each peer costs, for
//! datagrams received and sent, and serves next the peer that has used least (start-time fair queueing, Goyal, Vin and
//! Cheng 1996):
//!
//! ```text
//!   used       peer A  =========|            <- its turn
//!              peer B  ==========|
//!              peer C  ===================|  <- waits until A and B have used as much, or have no work
//!                               ^ virtual time
//! ```
//!
//! A peer that was idle starts at the virtual time, so idle time cannot be saved up. Time that a peer used ahead of
//! others is repaid while they have work; while they have none, it may use all the time. The cost of a datagram need
//! not be known in advance. Only its maximum matters, which the protocol bounds.
//!
//! Waiting datagrams are kept up to [`INBOX_SIZE_MAX`] bytes per peer. Beyond that they are dropped unopened, as in a
//! congested network.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ctcp_base::Instant;
use ctcp_proto::{Ecn, NetworkPath, PublicKey};

use crate::state::Key;

/// The length of a turn. A peer may be ahead of waiting peers by this much before its datagrams wait too.
pub(crate) const TURN: Duration = Duration::from_micros(500);

/// Bytes of waiting datagrams of one peer: 20 ms at 100 Mbit/s.
pub(crate) const INBOX_SIZE_MAX: usize = 256 << 10;

/// Bytes of waiting datagrams of all peers. Beyond this each peer has only [`INBOX_SIZE_MIN`].
const INBOXES_SIZE_MAX: usize = 16 << 20;

/// Bytes that may wait for each peer, however many peers there are.
const INBOX_SIZE_MIN: usize = 4 << 10;

/// The id of a peer.
pub(crate) type PeerId = u64;

/// A datagram waiting for its peer's turn.
pub(crate) struct Waiting {
    pub(crate) connection: Key,
    /// When it arrived.
    pub(crate) at: Instant,
    pub(crate) network_path: NetworkPath,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) bytes: Vec<u8>,
}

/// The time used and the pending work of each peer.
#[derive(Default)]
pub(crate) struct Turns {
    peers: BTreeMap<PeerId, Peer>,
    ids: BTreeMap<PublicKey, PeerId>,
    next_id: PeerId,
    /// The peers with work, ordered by the time they have used.
    queue: BTreeSet<(Duration, PeerId)>,
    /// The time that the peer of the last turn had used.
    virtual_time: Duration,
    inboxes_size: usize,
    dropped: u64,
}

struct Peer {
    key: PublicKey,
    connections: usize,
    used: Duration,
    /// Connections whose outputs need draining, in order.
    ready: VecDeque<Key>,
    inbox: VecDeque<Waiting>,
    inbox_size: usize,
    is_queued: bool,
}

impl Peer {
    fn has_work(&self) -> bool {
        !(self.ready.is_empty() && self.inbox.is_empty())
    }
}

impl Turns {
    /// Adds a connection of the peer with `key`.
    pub(crate) fn open(&mut self, key: PublicKey) -> PeerId {
        let next = self.next_id;
        let id = *self.ids.entry(key).or_insert(next);
        self.next_id += u64::from(id == next);
        let used = self.virtual_time;
        let peer = self.peers.entry(id).or_insert_with(|| Peer {
            key,
            connections: 0,
            used,
            ready: VecDeque::new(),
            inbox: VecDeque::new(),
            inbox_size: 0,
            is_queued: false,
        });
        peer.connections += 1;
        id
    }

    /// Removes a connection of the peer.
    pub(crate) fn close(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.connections -= 1;
        if peer.connections == 0
            && let Some(peer) = self.peers.remove(&id)
        {
            self.ids.remove(&peer.key);
            self.queue.remove(&(peer.used, id));
            self.inboxes_size -= peer.inbox_size;
        }
    }

    /// Queues a connection of the peer whose outputs need draining.
    pub(crate) fn push_ready(&mut self, id: PeerId, connection: Key) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.ready.push_back(connection);
            self.enqueue(id);
        }
    }

    /// Keeps a datagram for the peer's turn, or drops it.
    pub(crate) fn push_datagram(&mut self, id: PeerId, waiting: Waiting) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let size = waiting.bytes.len();
        let most = if self.inboxes_size < INBOXES_SIZE_MAX { INBOX_SIZE_MAX } else { INBOX_SIZE_MIN };
        if peer.inbox_size + size > most {
            self.dropped += 1;
            tracing::trace!(peer = %peer.key, dropped = self.dropped, "dropped: the peer has used its share of time");
            return;
        }
        peer.inbox_size += size;
        self.inboxes_size += size;
        peer.inbox.push_back(waiting);
        self.enqueue(id);
    }

    /// Returns true if a datagram of the peer, which has used `unbooked` since the last [`Turns::charge`], need not
    /// wait.
    pub(crate) fn may_go_first(&self, id: PeerId, unbooked: Duration) -> bool {
        let Some(peer) = self.peers.get(&id) else { return true };
        let others = self.queue.iter().find(|(_, other)| *other != id);
        peer.inbox.is_empty() && others.is_none_or(|(least, _)| peer.used + unbooked <= *least + TURN)
    }

    /// Charges the peer for time that it used.
    pub(crate) fn charge(&mut self, id: PeerId, time: Duration) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let before = peer.used;
        peer.used = before.max(self.virtual_time).saturating_add(time);
        if peer.is_queued {
            self.queue.remove(&(before, id));
            self.queue.insert((peer.used, id));
        }
    }

    /// Removes and returns the peer whose turn it is; [`Turns::end_turn`] must follow.
    pub(crate) fn begin_turn(&mut self) -> Option<PeerId> {
        let (used, id) = self.queue.pop_first()?;
        self.virtual_time = self.virtual_time.max(used);
        self.peers.get_mut(&id)?.is_queued = false;
        Some(id)
    }

    /// The same among the peers with waiting datagrams.
    pub(crate) fn begin_turn_with_datagrams(&mut self) -> Option<PeerId> {
        if !self.has_datagrams() {
            return None;
        }
        let has_datagrams = |id| self.peers.get(id).is_some_and(|peer| !peer.inbox.is_empty());
        let &(used, id) = self.queue.iter().find(|(_, id)| has_datagrams(id))?;
        self.queue.remove(&(used, id));
        self.peers.get_mut(&id)?.is_queued = false;
        Some(id)
    }

    /// Ends the peer's turn. It is queued again if it has work left.
    pub(crate) fn end_turn(&mut self, id: PeerId) {
        if self.peers.get(&id).is_some_and(Peer::has_work) {
            self.enqueue(id);
        }
    }

    /// Removes and returns the peer's oldest waiting datagram.
    pub(crate) fn pop_datagram(&mut self, id: PeerId) -> Option<Waiting> {
        let peer = self.peers.get_mut(&id)?;
        let waiting = peer.inbox.pop_front()?;
        peer.inbox_size -= waiting.bytes.len();
        self.inboxes_size -= waiting.bytes.len();
        Some(waiting)
    }

    /// Removes and returns the peer's next connection with output.
    pub(crate) fn pop_ready(&mut self, id: PeerId) -> Option<Key> {
        self.peers.get_mut(&id)?.ready.pop_front()
    }

    /// Returns true if any peer has work.
    pub(crate) fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns true if datagrams wait.
    pub(crate) fn has_datagrams(&self) -> bool {
        self.inboxes_size > 0
    }

    fn enqueue(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id).filter(|peer| !peer.is_queued) else { return };
        peer.used = peer.used.max(self.virtual_time);
        peer.is_queued = true;
        self.queue.insert((peer.used, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn key(byte: u8) -> PublicKey {
        PublicKey([byte; 32])
    }

    fn datagram(size: usize) -> Waiting {
        let remote = "127.0.0.1:1".parse().expect("an address");
        let network_path = NetworkPath { local: None, remote };
        Waiting { connection: 0, at: Instant::ZERO, network_path, ecn: None, bytes: vec![0; size] }
    }

    /// Serves for `total`; each turn of a peer costs `cost`. Returns the time that the peers 0 and 1 got.
    fn serve(turns: &mut Turns, total: Duration, cost: impl Fn(PeerId) -> Duration) -> [Duration; 2] {
        let mut got = [Duration::ZERO; 2];
        while got[0] + got[1] < total {
            let id = turns.begin_turn().expect("both always have work");
            let connection = turns.pop_ready(id).expect("the peer has a ready connection");
            turns.charge(id, cost(id));
            got[id as usize] += cost(id);
            turns.end_turn(id);
            turns.push_ready(id, connection);
        }
        got
    }

    #[test]
    fn a_peer_whose_turns_cost_a_hundred_times_as_much_gets_no_more_time() {
        let mut turns = Turns::default();
        let [cheap, dear] = [1, 2].map(|byte| turns.open(key(byte)));
        // A peer with many connections gets no more than one with a single connection.
        (0..50).for_each(|connection| turns.push_ready(dear, connection));
        (1..50).for_each(|_| assert_eq!(turns.open(key(2)), dear));
        turns.push_ready(cheap, 100);
        let got = serve(&mut turns, 1000 * MILLI, |id| if id == dear { 5 * MILLI } else { MILLI / 20 });
        assert!(got[0].abs_diff(got[1]) <= 10 * MILLI, "{got:?}");
    }

    #[test]
    fn time_used_without_competition_is_not_repaid() {
        let mut turns = Turns::default();
        let [alone, late] = [1, 2].map(|byte| turns.open(key(byte)));
        turns.push_ready(alone, 1);
        for _ in 0..100 {
            assert_eq!(turns.begin_turn(), Some(alone));
            turns.charge(alone, MILLI);
            turns.end_turn(alone);
        }
        turns.push_ready(late, 2);
        let got = serve(&mut turns, 100 * MILLI, |_| MILLI);
        assert!(got[0].abs_diff(got[1]) <= 2 * MILLI, "{got:?}");
    }

    #[test]
    fn datagrams_of_a_peer_that_is_ahead_wait_and_are_dropped_when_too_many_do() {
        let mut turns = Turns::default();
        let [busy, other] = [1, 2].map(|byte| turns.open(key(byte)));
        turns.charge(busy, 10 * MILLI);
        assert!(turns.may_go_first(busy, Duration::ZERO), "no other peer waits");
        turns.push_ready(other, 1);
        assert!(!turns.may_go_first(busy, Duration::ZERO) && turns.may_go_first(other, TURN));
        for _ in 0..2 * INBOX_SIZE_MAX / 1000 {
            turns.push_datagram(busy, datagram(1000));
        }
        let mut kept = 0;
        while turns.pop_datagram(busy).is_some() {
            kept += 1;
        }
        assert_eq!(kept, INBOX_SIZE_MAX / 1000);
        assert!(turns.dropped > 0 && !turns.has_datagrams());
    }

    #[test]
    fn a_peer_without_connections_is_removed_with_its_work() {
        let mut turns = Turns::default();
        let id = turns.open(key(1));
        turns.push_ready(id, 1);
        turns.push_datagram(id, datagram(10));
        turns.close(id);
        assert!(!turns.has_work() && !turns.has_datagrams() && turns.begin_turn().is_none());
    }
}
