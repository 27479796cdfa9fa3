//! Slots of which no client may take more than its share.
//!
//! ```text
//!  client a --> [share of a] --+
//!                              +--> [slots of all] --> Place
//!  client b --> [share of b] --+
//! ```
//!
//! A waiting request passes two queues, first that of its client and then the common one; both are served in order. So
//! a client that requests a thousand slots has no more than its share in the common queue, and other clients wait
//! behind few of its requests and not behind all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Slots for all clients and the share of each.
#[derive(Debug)]
pub(crate) struct Shares {
    all: Arc<Semaphore>,
    share: usize,
    /// Clients that hold a slot or wait for one.
    clients: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

/// A slot, released on drop.
#[derive(Debug)]
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_client: OwnedSemaphorePermit,
}

/// A slot of the client's own share, before it has one of the common slots.
#[derive(Debug)]
pub(crate) struct OwnPlace(OwnedSemaphorePermit);

/// Why there is no free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The client has used up its share.
    Share,
    /// All slots are taken.
    All,
}

impl Shares {
    /// Creates `all` slots, of which one client may hold `share`.
    pub(crate) fn new(all: usize, share: usize) -> Self {
        let [all, share] = [all, share].map(|places| places.min(Semaphore::MAX_PERMITS));
        Self { all: Arc::new(Semaphore::new(all)), share, clients: Mutex::default() }
    }

    /// Waits until the client holds less than its share.
    pub(crate) async fn own(&self, client: &str) -> OwnPlace {
        let share = self.of(client);
        OwnPlace(share.acquire_owned().await.expect("these semaphores are never closed"))
    }

    /// Waits for one of the common slots.
    pub(crate) async fn among_all(&self, OwnPlace(of_client): OwnPlace) -> Place {
        let of_all = self.all.clone().acquire_owned().await.expect("these semaphores are never closed");
        Place { _of_all: of_all, _of_client: of_client }
    }

    /// Takes a slot at once, or returns which limit is reached.
    pub(crate) fn place_now(&self, client: &str) -> Result<Place, Taken> {
        let of_client = self.of(client).try_acquire_owned().map_err(|_| Taken::Share)?;
        let of_all = self.all.clone().try_acquire_owned().map_err(|_| Taken::All)?;
        Ok(Place { _of_all: of_all, _of_client: of_client })
    }

    /// The client's share. Adding a new client removes clients without slots.
    fn of(&self, client: &str) -> Arc<Semaphore> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = clients.get(client) {
            return share.clone();
        }
        clients.retain(|_, share| Arc::strong_count(share) > 1);
        let share = Arc::new(Semaphore::new(self.share));
        clients.insert(client.to_owned(), share.clone());
        share
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn place(shares: &Shares, client: &str) -> Option<Place> {
        let place = async { shares.among_all(shares.own(client).await).await };
        timeout(Duration::from_millis(1), place).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_gets_its_share_and_all_clients_share_the_total() {
        let shares = Shares::new(5, 2);
        let mut held = Vec::new();
        for (client, is_given) in
            [("a", true), ("a", true), ("a", false), ("b", true), ("b", true), ("c", true), ("c", false)]
        {
            let place = place(&shares, client).await;
            assert_eq!(place.is_some(), is_given, "{client}");
            held.extend(place);
        }
        held.remove(0);
        assert!(place(&shares, "c").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_behind_a_greedy_client_waits_for_that_clients_share_only() {
        let shares = Shares::new(2, 2);
        let held = [place(&shares, "greedy").await.unwrap(), place(&shares, "greedy").await.unwrap()];
        let again = async { shares.among_all(shares.own("greedy").await).await };
        let mut greedy = core::pin::pin!(async { tokio::join!(again, core::future::pending::<()>()) });
        assert!(timeout(Duration::from_millis(1), greedy.as_mut()).await.is_err());
        let modest = async { shares.among_all(shares.own("modest").await).await };
        let mut modest = core::pin::pin!(modest);
        assert!(timeout(Duration::from_millis(1), modest.as_mut()).await.is_err());
        // The greedy client has asked for more before, but that request waits in its own queue.
        drop(held);
        assert!(timeout(Duration::from_millis(1), modest).await.is_ok());
    }

    #[test]
    fn place_now_returns_which_limit_is_reached() {
        let shares = Shares::new(3, 2);
        let held = [shares.place_now("a").unwrap(), shares.place_now("a").unwrap()];
        assert_eq!(shares.place_now("a").err(), Some(Taken::Share));
        let _other = shares.place_now("b").unwrap();
        assert_eq!(shares.place_now("b").err(), Some(Taken::All));
        drop(held);
        assert!(shares.place_now("b").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_left_are_forgotten() {
        let shares = Shares::new(5, 2);
        for number in 0..100 {
            assert!(place(&shares, &number.to_string()).await.is_some());
        }
        assert!(shares.clients.lock().unwrap().len() <= 1);
    }
}
