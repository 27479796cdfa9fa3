//! Delivers the messages of connections to their associations.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::{ASSOCIATIONS_PER_CLIENT_MAX, DEADLINE};
use crate::coded::CodedConnection;
use crate::counters::{DropReason, UdpCounters};
use crate::request::split_number;

/// Messages of one connection that wait for their association, and their bytes: one message for each association that a client may have.
const EARLY_MAX: usize = ASSOCIATIONS_PER_CLIENT_MAX;
const EARLY_BYTES_MAX: usize = 256 * 1024;

/// Takes a message, whose number has been read.
pub(super) type Receiver = dyn Fn(Vec<u8>) + Send + Sync;

/// The open associations by number.
#[derive(Default)]
pub(crate) struct Router {
    keeps_early: bool,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    receivers: BTreeMap<u32, Arc<Receiver>>,
    /// Messages that overtook the request of their association, and when they arrived.
    early: VecDeque<(u32, Vec<u8>, Instant)>,
    early_bytes: usize,
}

impl Table {
    /// Drops the early messages that have waited too long, and returns their number.
    fn expire(&mut self, now: Instant) -> usize {
        let count = self.early.iter().take_while(|(_, _, at)| now.duration_since(*at) >= DEADLINE).count();
        self.early_bytes -= self.early.drain(..count).map(|(_, message, _)| message.len()).sum::<usize>();
        count
    }

    /// Keeps a message for an association to come. Returns false if there is no room.
    fn keep(&mut self, number: u32, message: Vec<u8>, now: Instant) -> bool {
        let bytes = self.early_bytes + message.len();
        let has_room = self.early.len() < EARLY_MAX && bytes <= EARLY_BYTES_MAX;
        if has_room {
            self.early_bytes = bytes;
            self.early.push_back((number, message, now));
        }
        has_room
    }
}

/// An open association; it receives messages until this is dropped.
pub(super) struct Entry {
    router: Arc<Router>,
    number: u32,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.router.lock().receivers.remove(&self.number);
    }
}

impl Router {
    /// A router that keeps messages for a moment if their association is not open yet. Clients send them right after
    /// the request, and any of these packets may be lost.
    pub(crate) fn keeping_early() -> Self {
        Self { keeps_early: true, ..Self::default() }
    }

    /// Adds an association. Returns `None` if the number is in use.
    pub(super) fn enter(
        self: &Arc<Self>,
        number: u32,
        receiver: Arc<Receiver>,
        counters: &UdpCounters,
    ) -> Option<Entry> {
        let mut table = self.lock();
        if table.receivers.contains_key(&number) {
            return None;
        }
        let expired = table.expire(Instant::now());
        let (own, rest) = table.early.drain(..).partition::<VecDeque<_>, _>(|(to, _, _)| *to == number);
        table.early = rest;
        for (_, message, _) in own {
            table.early_bytes -= message.len();
            receiver(message); // under the lock, so that later messages come later
        }
        table.receivers.insert(number, receiver);
        drop(table);
        count_unknown(counters, expired);
        Some(Entry { router: self.clone(), number })
    }

    /// Delivers the messages of a connection until it is closed.
    pub(crate) async fn pump<C: CodedConnection>(&self, connection: &C, counters: &UdpCounters) {
        while let Ok(message) = connection.receive_message().await {
            self.deliver(message, counters);
            tokio::task::coop::consume_budget().await;
        }
    }

    fn deliver(&self, message: Vec<u8>, counters: &UdpCounters) {
        let number = match split_number(&message) {
            Ok((number, _)) => number,
            Err(error) => return counters.on_dropped(DropReason::Malformed, error),
        };
        let receiver = {
            let mut table = self.lock();
            match table.receivers.get(&number).cloned() {
                Some(receiver) => receiver,
                None => {
                    let now = Instant::now();
                    let expired = table.expire(now);
                    let is_kept = self.keeps_early && table.keep(number, message, now);
                    drop(table);
                    return count_unknown(counters, expired + usize::from(!is_kept));
                }
            }
        };
        receiver(message);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_unknown(counters: &UdpCounters, count: usize) {
    (0..count).for_each(|_| counters.on_dropped(DropReason::Unknown, "there is no such association"));
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn messages_reach_their_association_while_it_is_open() {
        let (router, counters) = (Arc::new(Router::default()), UdpCounters::default());
        let received = Arc::new(AtomicUsize::new(0));
        let count = received.clone();
        let receiver: Arc<Receiver> = Arc::new(move |message| {
            count.fetch_add(message.len(), Relaxed);
        });
        let entry = router.enter(7, receiver.clone(), &counters).unwrap();
        assert!(router.enter(7, receiver.clone(), &counters).is_none(), "the number is in use");
        router.deliver(b"\0\0\0\x07abc".to_vec(), &counters);
        router.deliver(b"\0\0\0\x08abc".to_vec(), &counters);
        router.deliver(b"\0\0\0".to_vec(), &counters);
        drop(entry);
        router.deliver(b"\0\0\0\x07abc".to_vec(), &counters);
        assert_eq!(received.load(Relaxed), 7);
        assert_eq!(counters.dropped(DropReason::Unknown), 2);
        assert_eq!(counters.dropped(DropReason::Malformed), 1);
        assert!(router.enter(7, receiver, &counters).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_overtakes_its_request_waits_for_a_moment() {
        let (router, counters) = (Arc::new(Router::keeping_early()), UdpCounters::default());
        let received = Arc::new(Mutex::new(Vec::new()));
        let enter = |number| {
            let received = received.clone();
            let receiver: Arc<Receiver> = Arc::new(move |message| received.lock().unwrap().push(message));
            router.enter(number, receiver, &counters).unwrap()
        };
        for message in [&b"\0\0\0\x07a"[..], b"\0\0\0\x08b", b"\0\0\0\x07c"] {
            router.deliver(message.to_vec(), &counters);
        }
        let seven = enter(7);
        router.deliver(b"\0\0\0\x07d".to_vec(), &counters);
        let got: Vec<u8> = received.lock().unwrap().iter().map(|message| message[4]).collect();
        assert_eq!(got, b"acd");
        drop(seven);
        tokio::time::advance(DEADLINE).await;
        let _eight = enter(8);
        assert_eq!(received.lock().unwrap().len(), 3, "the message to 8 is too old");
        assert_eq!(counters.dropped(DropReason::Unknown), 1, "and it is counted");
        for _ in 0..EARLY_MAX + 5 {
            router.deliver(b"\0\0\0\x07x".to_vec(), &counters);
        }
        assert_eq!(counters.dropped(DropReason::Unknown), 6, "there is room for some");
        tokio::time::advance(DEADLINE).await;
        let large = [&[0, 0, 0, 7][..], &[0; 60_000]].concat();
        (0..6).for_each(|_| router.deliver(large.clone(), &counters));
        let expired = EARLY_MAX as u64;
        assert_eq!(counters.dropped(DropReason::Unknown), 6 + expired + 2, "four large ones fit");
    }
}
