//! Delivers the messages of connections to their associations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::coded::CodedConnection;
use crate::counters::{DropReason, UdpCounters};
use crate::request::split_number;

/// Takes a message, whose number has been read.
pub(super) type Receiver = dyn Fn(Vec<u8>) + Send + Sync;

/// The open associations by number.
#[derive(Default)]
pub(crate) struct Router(Mutex<BTreeMap<u32, Arc<Receiver>>>);

/// An open association; it receives messages until this is dropped.
pub(super) struct Entry {
    router: Arc<Router>,
    number: u32,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.router.lock().remove(&self.number);
    }
}

impl Router {
    /// Adds an association. Returns `None` if the number is in use.
    pub(super) fn enter(self: &Arc<Self>, number: u32, receiver: Arc<Receiver>) -> Option<Entry> {
        let mut table = self.lock();
        if table.contains_key(&number) {
            return None;
        }
        table.insert(number, receiver);
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
        let receiver = self.lock().get(&number).cloned();
        match receiver {
            Some(receiver) => receiver(message),
            None => counters.on_dropped(DropReason::Unknown, "there is no such association"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Receiver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
}
