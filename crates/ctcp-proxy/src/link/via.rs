//! Ways through relays: chains of hops, one or several side by side as paths of one connection.
//!
//! ```text
//!   --via A1,B1 --via A2,B2        client == A1 == A2 == server
//!                                  client == B1 == B2 == server
//! ```

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use core::time::Duration;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ctcp::{ConnectionError, HopRepair};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use super::paths::{RETRY_MIN, preference};
use super::{ConnectFailure, FailureKind};
use crate::relay;
use crate::request::{Carry, Granted, ReplyCode, STOPS_MAX, Stop};

/// The most ways side by side: as many as the paths that servers allow.
const WAYS_MAX: usize = 4;

/// How much later than the one before each further way is tried when a connection begins.
const HEAD_START: Duration = Duration::from_secs(1);

/// How many times the duration of an attempt the relays of a way may take to connect one after the other.
const HOPS: u32 = 3;

/// A path that lasted so long is opened again soon when it is lost.
const LASTING: Duration = Duration::from_secs(60);

/// The longest pause before a way over relays is tried again.
const RETRY_MAX: Duration = Duration::from_secs(300);

/// How often a path is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a new path may take to work. The server has just answered over the way, so a server that takes longer has lost the connection.
const UNKNOWN: Duration = Duration::from_secs(5);
const FORGOTTEN: &str = "the server does not know the connection any more";

/// How long a hop outlives its way, so that it carries the last packets of the connection.
const LINGER: Duration = Duration::from_secs(1);

/// The relays at one place of the way: one, or several side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via(Vec<Stop>);

impl FromStr for Via {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let stop = |name: &str| {
            if name.is_empty() { Err("no relay beside a comma".to_owned()) } else { name.parse() }
        };
        text.split(',').map(stop).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Via {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stops: Vec<String> = self.0.iter().map(Stop::to_string).collect();
        formatter.write_str(&stops.join(","))
    }
}

/// The ways to a server. None if packets go to it directly.
#[derive(Clone, Debug, Default)]
pub struct Ways(Vec<Vec<Stop>>);

impl Ways {
    /// The ways over these places, the nearest first. Where a place has one relay, all ways go through it.
    ///
    /// # Errors
    /// Returns a text for people if the places do not fit together, or if no request can hold a way.
    pub fn new(places: &[Via]) -> Result<Self, String> {
        let count = places.iter().map(|place| place.0.len()).max().unwrap_or(0);
        if count > WAYS_MAX {
            return Err(format!("at most {WAYS_MAX} relays may be side by side, not {count}"));
        }
        let mut ways = vec![Vec::new(); count];
        for Via(stops) in places {
            if stops.len() != 1 && stops.len() != count {
                let named = stops.len();
                return Err(format!(
                    "{named} relays at one place and {count} at another: each place needs one relay or the same number"
                ));
            }
            if stops.iter().enumerate().any(|(place, stop)| stops[..place].contains(stop)) {
                return Err("the same relay twice side by side".to_owned());
            }
            for (way, stop) in ways.iter_mut().zip(stops.iter().cycle()) {
                way.push(stop.clone());
            }
        }
        let carries = |way: &Vec<Stop>| Carry { repair: HopRepair::default(), stops: way.clone() }.fits();
        if !ways.iter().all(carries) {
            return Err(format!(
                "more than {STOPS_MAX} relays one after another, or names that are too long for a request"
            ));
        }
        Ok(Self(ways))
    }

    /// How many ways there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// What it takes to open ways.
#[derive(Clone, Debug)]
pub(super) struct Opener {
    pub(super) endpoint: ctcp::Endpoint,
    pub(super) server: Stop,
    pub(super) own_key: Option<ctcp::PublicKey>,
    /// Whether there is only one way to it.
    pub(super) is_only: bool,
    /// How long an attempt at one stop may take.
    pub(super) attempt: Duration,
}

/// A way that is open as far as the server.
#[derive(Debug)]
pub(super) struct OpenWay {
    /// Which one it is.
    number: usize,
    /// Its first relay, and the connection to it.
    relay: String,
    hop: ctcp::Connection,
    /// The address that stands for it, or that of the relay if it forwards.
    pub(super) address: SocketAddr,
    forwards: bool,
}

impl Drop for OpenWay {
    fn drop(&mut self) {
        let hop = self.hop.clone();
        if let Some(reason) = hop.close_reason().filter(|reason| *reason != ConnectionError::ClosedLocally) {
            warn!(relay = self.relay, %reason, "lost the connection to the relay");
        }
        let close = async move {
            sleep(LINGER).await;
            hop.close(0, "the path through the relay is no longer needed");
        };
        // Without a runtime the endpoint has ended, too.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(close);
        }
    }
}

impl OpenWay {
    /// Adds what it was that failed.
    pub(super) fn failure(&self, ways: &Ways, failure: ConnectFailure) -> ConnectFailure {
        through(&ways.0[self.number], failure)
    }
}

/// The way that carried the handshake, until the link takes it over.
#[derive(Debug, Default)]
pub(super) struct First(Mutex<Option<OpenWay>>);

impl First {
    pub(super) fn put(&self, way: Option<OpenWay>) -> Option<OpenWay> {
        core::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), way)
    }
}

fn through(way: &[Stop], failure: ConnectFailure) -> ConnectFailure {
    let relay = way.first().map(Stop::to_string).unwrap_or_default();
    ConnectFailure { reason: format!("through the relay {relay}: {}", failure.reason), ..failure }
}

impl Opener {
    async fn open(&self, number: usize, way: &[Stop]) -> Result<OpenWay, ConnectFailure> {
        let fail = |text: String| through(way, ConnectFailure::from(text));
        let (first, rest) = way.split_first().ok_or_else(|| fail("no relay".to_owned()))?;
        let stops = rest.iter().chain([&self.server]).cloned().collect();
        let carry = Carry { repair: HopRepair::default(), stops };
        if !carry.fits() {
            return Err(fail("the stops after it are too many, or their names too long".to_owned()));
        }
        let (hop, granted) =
            match timeout(HOPS * self.attempt, relay::open(&self.endpoint, first, carry, self.own_key)).await
            {
                Err(_) => return Err(fail("no answer".to_owned())),
                Ok(Err((code, text))) => {
                    let kind = match code {
                        ReplyCode::NotAllowed | ReplyCode::CommandNotSupported => FailureKind::Refusal,
                        ReplyCode::TooManyStreams => FailureKind::Busy,
                        _ => FailureKind::NoAnswer,
                    };
                    return Err(ConnectFailure { kind, ..fail(text) });
                }
                Ok(Ok(opened)) => opened,
            };
        let address = match granted {
            Granted::Repair(repair) => hop.carry(repair).map_err(|error| fail(error.to_string())),
            // Each path would need a socket of its own.
            Granted::Forward { .. } if !self.is_only => Err(ConnectFailure {
                kind: FailureKind::Refusal,
                ..fail("it only forwards, and such a relay cannot be one of several side by side".to_owned())
            }),
            Granted::Forward { port } => Ok(relay::with_port(hop.remote_address(), port)),
        };
        let address = address.inspect_err(|failure| hop.close(0, &failure.reason))?;
        Ok(OpenWay {
            number,
            relay: first.to_string(),
            hop,
            address,
            forwards: matches!(granted, Granted::Forward { .. }),
        })
    }

    /// Begins to open all ways, the first ones a little earlier.
    pub(super) fn race(&self, ways: &Ways) -> JoinSet<Result<OpenWay, ConnectFailure>> {
        let mut racing = JoinSet::new();
        for (number, way) in ways.0.iter().cloned().enumerate() {
            let opener = self.clone();
            racing.spawn(async move {
                sleep(HEAD_START * u32::try_from(number).unwrap_or(u32::MAX)).await;
                opener.open(number, &way).await
            });
        }
        racing
    }

    /// Keeps the ways of a connection open as long as it lasts, each as a path of it. The connection is on the way `first`.
    pub(super) async fn keep(&self, ways: &Ways, first: OpenWay, connection: &ctcp::Connection) {
        let mut keeping = JoinSet::new();
        let usable = Arc::new(AtomicUsize::new(0));
        let (begun, mut first) = (first.number, Some(first));
        for (number, way) in ways.0.iter().cloned().enumerate() {
            let opened = first.take_if(|first| first.number == number);
            let preference = preference(number, begun);
            let keeper = Keeper {
                opener: self.clone(),
                number,
                way,
                preference,
                connection: connection.clone(),
                usable: Arc::clone(&usable),
            };
            keeping.spawn(keeper.keep(opened));
        }
        while keeping.join_next().await.is_some() {}
    }
}

/// Keeps one way open.
struct Keeper {
    opener: Opener,
    number: usize,
    way: Vec<Stop>,
    preference: u8,
    connection: ctcp::Connection,
    /// How many ways of the connection work.
    usable: Arc<AtomicUsize>,
}

/// A way that works, as long as this lives.
struct Usable(Arc<AtomicUsize>);

impl Usable {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Usable {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Keeper {
    async fn keep(self, opened: Option<OpenWay>) {
        if self.connection.connected().await.is_err() {
            return;
        }
        let relay = self.way.first().map(Stop::to_string).unwrap_or_default();
        if let Some(way) = opened {
            let forwards = way.forwards;
            self.attend(way).await;
            if forwards {
                // It is the only way, and the next one begins at another port.
                self.connection.close(0, "the relay does not forward any more");
            }
        }
        let mut pause = RETRY_MIN;
        while !self.connection.is_closed() {
            let begun = Instant::now();
            match self.open().await {
                Ok(way) => {
                    debug!(relay, "opening a path");
                    self.attend(way).await;
                }
                // Said once for each series of attempts.
                Err(failure) if pause == RETRY_MIN => warn!("no path {}", failure.reason),
                Err(failure) => debug!("no path {}", failure.reason),
            }
            // A relay that loses the path again and again is tried less and less: each try uses one of the connection's path ids.
            let is_lasting = begun.elapsed() > LASTING;
            sleep(if is_lasting { RETRY_MIN } else { pause }).await;
            pause = if is_lasting { RETRY_MIN } else { (2 * pause).min(RETRY_MAX) };
        }
    }

    async fn open(&self) -> Result<OpenWay, ConnectFailure> {
        let way = self.opener.open(self.number, &self.way).await?;
        if way.forwards {
            let text = "it only forwards, which a connection that began otherwise cannot use";
            return Err(through(&self.way, ConnectFailure::from(text.to_owned())));
        }
        self.connection
            .add_path(None, way.address, self.preference)
            .map_err(|error| through(&self.way, ConnectFailure::from(error.to_string())))?;
        Ok(way)
    }

    /// Waits until the way is lost.
    async fn attend(&self, way: OpenWay) {
        let relay = &way.relay;
        let (mut usable, begun) = (None, Instant::now());
        loop {
            let path = self.connection.paths().into_iter().find(|path| path.remote == way.address);
            let Some(path) = path else {
                warn!(relay, "lost the path through the relay: the server does not answer on it");
                return;
            };
            if path.is_validated && usable.is_none() {
                usable = Some(Usable::new(&self.usable));
                info!(relay, path = path.id.0, "new path");
            }
            if begun.elapsed() > UNKNOWN && self.usable.load(Ordering::Relaxed) == 0 {
                warn!(relay, "{FORGOTTEN}");
                self.connection.close(0, FORGOTTEN);
                return;
            }
            tokio::select! {
                // Dropping the way says so.
                _ = way.hop.closed() => return,
                () = sleep(LOOK) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn via(names: &str) -> Via {
        let key = ctcp::SecretKey::from_bytes([1; 32]).public_key();
        let stops: Vec<String> = names.chars().map(|name| format!("{name}:1={key}")).collect();
        stops.join(",").parse().unwrap()
    }

    fn names(places: &[&str]) -> Result<Vec<String>, String> {
        let places: Vec<Via> = places.iter().map(|names| via(names)).collect();
        let name = |stop: &Stop| stop.address.to_string().replace(":1", "");
        Ways::new(&places).map(|ways| ways.0.iter().map(|way| way.iter().map(name).collect()).collect())
    }

    #[test]
    fn relays_of_a_place_are_side_by_side_and_places_follow_each_other() {
        assert_eq!(names(&[]).unwrap(), [""; 0]);
        assert_eq!(names(&["a", "b"]).unwrap(), ["ab"]);
        assert_eq!(names(&["ab"]).unwrap(), ["a", "b"]);
        assert_eq!(names(&["ab", "c"]).unwrap(), ["ac", "bc"]);
        assert_eq!(names(&["ab", "cd"]).unwrap(), ["ac", "bd"]);
        assert!(names(&["abc", "de"]).unwrap_err().contains("2 relays at one place and 3 at another"));
        assert!(names(&["abcde"]).is_err() && names(&["a"; 9]).unwrap_err().contains("more than 8 relays"));
        assert!(names(&["aba"]).unwrap_err().contains("twice"));
        assert_eq!(via("ab").to_string().parse(), Ok(via("ab")));
        assert!("nowhere".parse::<Via>().is_err());
    }
}
