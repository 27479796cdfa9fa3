//! Delivers the messages of connections to their associations.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::{DEADLINE, PENDING_BYTES_MAX};
use crate::coded::CodedConnection;
use crate::counters::{DropReason, UdpCounters};
use crate::request::split_number;

/// Messages of one connection that wait for their association.
const EARLY_MAX: usize = 64;

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
}

impl Table {
    /// Drops the early messages that have waited too long, and returns their number.
    fn expire(&mut self, now: Instant) -> usize {
        let count = self.early.iter().take_while(|(_, _, at)| now.duration_since(*at) >= DEADLINE).count();
        self.early.drain(..count);
        count
    }

    /// Keeps a message for an association to come. Returns false if there is no room.
    fn keep(&mut self, number: u32, message: Vec<u8>, now: Instant) -> bool {
        let waiting: usize = self.early.iter().map(|(_, message, _)| message.len()).sum();
        let has_room = self.early.len() < EARLY_MAX && waiting + message.len() <= PENDING_BYTES_MAX;
        if has_room {
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
    pub(super) fn enter(self: &Arc<Self>, number: u32, receiver: Arc<Receiver>) -> Option<Entry> {
        let mut table = self.lock();
        if table.receivers.contains_key(&number) {
            return None;
        }
        let (now, mut rest) = (Instant::now(), VecDeque::new());
        for (to, message, at) in core::mem::take(&mut table.early) {
            if to != number {
                rest.push_back((to, message, at));
            } else if now.duration_since(at) < DEADLINE {
                receiver(message); // under the lock, so that later messages come later
            }
        }
        table.early = rest;
        table.receivers.insert(number, receiver);
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
                    for _ in 0..expired + usize::from(!is_kept) {
                        counters.on_dropped(DropReason::Unknown, "there is no such association");
                    }
                    return;
                }
            }
        };
        receiver(message);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let entry = router.enter(7, receiver.clone()).unwrap();
        assert!(router.enter(7, receiver.clone()).is_none(), "the number is in use");
        router.deliver(b"\0\0\0\x07abc".to_vec(), &counters);
        router.deliver(b"\0\0\0\x08abc".to_vec(), &counters);
        router.deliver(b"\0\0\0".to_vec(), &counters);
        drop(entry);
        router.deliver(b"\0\0\0\x07abc".to_vec(), &counters);
        assert_eq!(received.load(Relaxed), 7);
        assert_eq!(counters.dropped(DropReason::Unknown), 2);
        assert_eq!(counters.dropped(DropReason::Malformed), 1);
        assert!(router.enter(7, receiver).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_overtakes_its_request_waits_for_a_moment() {
        let (router, counters) = (Arc::new(Router::keeping_early()), UdpCounters::default());
        let received = Arc::new(Mutex::new(Vec::new()));
        let enter = |number| {
            let received = received.clone();
            router.enter(number, Arc::new(move |message| received.lock().unwrap().push(message))).unwrap()
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
        for _ in 0..EARLY_MAX + 5 {
            router.deliver(b"\0\0\0\x07x".to_vec(), &counters);
        }
        assert_eq!(counters.dropped(DropReason::Unknown), 5, "there is room for some");
    }
}
