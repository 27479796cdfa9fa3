//! Whose turn it is: the peers of an endpoint share its driver's time evenly.
//!
//! A peer is a key, whatever number of connections it has. The driver measures what each costs, datagrams that arrived and datagrams that
//! leave, and serves the one next that has used least (start-time fair queueing, Goyal, Vin and Cheng 1996):
//!
//! ```text
//!   used       peer A  =========|            <- its turn
//!              peer B  ==========|
//!              peer C  ===================|  <- waits until A and B have come so far, or have nothing to do
//!                               ^ virtual time
//! ```
//!
//! A peer that was idle begins at the virtual time, so that nobody saves up. What a peer used ahead of others it pays back while they have
//! work; while they have none, all the time is its own. Nobody needs to know beforehand what a datagram costs: only by how much one
//! can exceed the others, which the protocol bounds.
//!
//! Datagrams that must wait are kept up to [`INBOX_SIZE_MAX`] bytes a peer and dropped beyond it, unopened, as a full network does.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ctcp_base::Instant;
use ctcp_proto::{Ecn, NetworkPath, PublicKey};

use crate::state::Key;

/// The time of a turn, and by how much a peer may be ahead of those that wait before its datagrams wait too.
pub(crate) const TURN: Duration = Duration::from_micros(500);

/// Bytes of a peer's datagrams that wait: 20 ms at 100 Mbit/s.
pub(crate) const INBOX_SIZE_MAX: usize = 256 << 10;

/// The same of all peers together; then a peer has only [`INBOX_SIZE_MIN`].
const INBOXES_SIZE_MAX: usize = 16 << 20;

/// Bytes that may wait of each peer, however many peers there are.
const INBOX_SIZE_MIN: usize = 4 << 10;

/// Name of a peer in the books.
pub(crate) type PeerId = u64;

/// A datagram that waits for its connection's turn.
pub(crate) struct Waiting {
    pub(crate) connection: Key,
    /// When it arrived.
    pub(crate) at: Instant,
    pub(crate) network_path: NetworkPath,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) bytes: Vec<u8>,
}

/// The books.
#[derive(Default)]
pub(crate) struct Turns {
    peers: BTreeMap<PeerId, Peer>,
    ids: BTreeMap<PublicKey, PeerId>,
    next_id: PeerId,
    /// The peers with work, by what they have used.
    queue: BTreeSet<(Duration, PeerId)>,
    /// What the peer had used whose turn was last.
    virtual_time: Duration,
    inboxes_size: usize,
    dropped: u64,
}

struct Peer {
    key: PublicKey,
    connections: usize,
    used: Duration,
    /// Connections whose outputs want draining, in turn.
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
    /// The peer with `key` has another connection.
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

    /// A connection of the peer is gone.
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

    /// A connection of the peer has something to say.
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
            tracing::trace!(peer = %peer.key, dropped = self.dropped, "a peer that had its share of time: dropped");
            return;
        }
        peer.inbox_size += size;
        self.inboxes_size += size;
        peer.inbox.push_back(waiting);
        self.enqueue(id);
    }

    /// Whether a datagram of the peer, which has used `unbooked` since the last [`Turns::charge`], need not wait.
    pub(crate) fn may_go_first(&self, id: PeerId, unbooked: Duration) -> bool {
        let Some(peer) = self.peers.get(&id) else { return true };
        let others = self.queue.iter().find(|(_, other)| *other != id);
        peer.inbox.is_empty() && others.is_none_or(|(least, _)| peer.used + unbooked <= *least + TURN)
    }

    /// The peer has used so much.
    pub(crate) fn charge(&mut self, id: PeerId, time: Duration) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let before = peer.used;
        peer.used = before.max(self.virtual_time).saturating_add(time);
        if peer.is_queued {
            self.queue.remove(&(before, id));
            self.queue.insert((peer.used, id));
        }
    }

    /// The peer whose turn it is; [`Turns::end_turn`] must follow.
    pub(crate) fn begin_turn(&mut self) -> Option<PeerId> {
        let (used, id) = self.queue.pop_first()?;
        self.virtual_time = self.virtual_time.max(used);
        self.peers.get_mut(&id)?.is_queued = false;
        Some(id)
    }

    /// The same among the peers whose datagrams wait.
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

    /// The peer has had its turn; with work left it waits for another.
    pub(crate) fn end_turn(&mut self, id: PeerId) {
        if self.peers.get(&id).is_some_and(Peer::has_work) {
            self.enqueue(id);
        }
    }

    /// The oldest datagram of the peer that waits.
    pub(crate) fn pop_datagram(&mut self, id: PeerId) -> Option<Waiting> {
        let peer = self.peers.get_mut(&id)?;
        let waiting = peer.inbox.pop_front()?;
        peer.inbox_size -= waiting.bytes.len();
        self.inboxes_size -= waiting.bytes.len();
        Some(waiting)
    }

    /// The connection of the peer whose turn it is.
    pub(crate) fn pop_ready(&mut self, id: PeerId) -> Option<Key> {
        self.peers.get_mut(&id)?.ready.pop_front()
    }

    /// Whether somebody has work.
    pub(crate) fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether datagrams wait.
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

    /// Serves for `total`; each turn of a peer costs what `cost` says. Returns what each of the peers 0 and 1 got.
    fn serve(turns: &mut Turns, total: Duration, cost: impl Fn(PeerId) -> Duration) -> [Duration; 2] {
        let mut got = [Duration::ZERO; 2];
        while got[0] + got[1] < total {
            let id = turns.begin_turn().expect("both always have work");
            let connection = turns.pop_ready(id).expect("it is ready");
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
        // Many connections are no more than one.
        (0..50).for_each(|connection| turns.push_ready(dear, connection));
        (1..50).for_each(|_| assert_eq!(turns.open(key(2)), dear));
        turns.push_ready(cheap, 100);
        let got = serve(&mut turns, 1000 * MILLI, |id| if id == dear { 5 * MILLI } else { MILLI / 20 });
        assert!(got[0].abs_diff(got[1]) <= 10 * MILLI, "{got:?}");
    }

    #[test]
    fn a_peer_alone_pays_nothing_back() {
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
        assert!(turns.may_go_first(busy, Duration::ZERO), "nobody waits");
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
    fn a_peer_without_connections_leaves_nothing() {
        let mut turns = Turns::default();
        let id = turns.open(key(1));
        turns.push_ready(id, 1);
        turns.push_datagram(id, datagram(10));
        turns.close(id);
        assert!(!turns.has_work() && !turns.has_datagrams() && turns.begin_turn().is_none());
    }
}
