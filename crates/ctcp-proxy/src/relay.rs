//! The relay: carries the datagrams of clients to servers or further relays, without keys of either end.
//!
//! ```text
//!  Endpoint --accept--> hop of a client --CARRY--> next stop allowed? --> connect, CARRY the rest --> join both hops
//! ```
//!
//! A client is known by its key, and the next stop is one that the operator named. The relay learns the addresses and keys of the stops that
//! follow, and which datagrams belong together; it never holds a key of what they contain.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use ctcp::HopRepair;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{Instrument, debug, error_span, info, warn};

use crate::counters::Counters;
use crate::link::ServerAddress;
use crate::request::{Carry, Reply, ReplyCode, Request, Stop};

/// Limits of a relay.
#[derive(Clone, Copy, Debug)]
pub struct RelayLimits {
    /// How long a client may take to send its request.
    pub head: Duration,
    /// How long the next stop may take to answer.
    pub connect: Duration,
    /// Ways that may be open at the same time.
    pub ways: usize,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self { head: Duration::from_secs(10), connect: Duration::from_secs(10), ways: 1024 }
    }
}

/// A relay.
pub struct Relay {
    /// The stops to which it carries, as clients name them.
    destinations: Vec<Stop>,
    repair: HopRepair,
    limits: RelayLimits,
    ways: Semaphore,
    counters: Arc<Counters>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Relay").field("destinations", &self.destinations).finish_non_exhaustive()
    }
}

/// Why a way was not opened: the code and the text for the client.
type Refusal = (ReplyCode, String);

impl Relay {
    /// A relay to these destinations that repairs losses of its hops so.
    #[must_use]
    pub fn new(destinations: Vec<Stop>, repair: HopRepair, limits: RelayLimits) -> Arc<Self> {
        let ways = Semaphore::new(limits.ways.min(Semaphore::MAX_PERMITS));
        Arc::new(Self { destinations, repair, limits, ways, counters: Arc::new(Counters::new("relay")) })
    }

    /// The counters of the relay.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Serves the clients of an endpoint until it is closed, or the future is dropped.
    pub async fn serve(self: &Arc<Self>, endpoint: &ctcp::Endpoint) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                accepted = endpoint.accept() => match accepted {
                    Some(client) => {
                        let (relay, endpoint) = (self.clone(), endpoint.clone());
                        let name = client.peer_key().short();
                        let serve = async move { relay.serve_client(&client, &endpoint).await };
                        tasks.spawn(serve.instrument(error_span!("client", name)));
                    }
                    None => return,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    async fn serve_client(&self, client: &ctcp::Connection, endpoint: &ctcp::Endpoint) {
        self.counters.connections_total.add(1);
        let _present = self.counters.connections.enter();
        let remote = client.remote_address();
        info!(%remote, "a client connected");
        let asked = async {
            let mut stream = client.accept().await.ok()?;
            let request = Request::read(&mut stream).await;
            Some((stream, request))
        };
        let Ok(Some((mut stream, request))) = timeout(self.limits.head, asked).await else {
            client.close(0, "no request");
            return;
        };
        let way = self.ways.try_acquire();
        let opened = match &way {
            Ok(_) => self.open_way(client, endpoint, request).await,
            Err(_) => {
                Err((ReplyCode::TooManyStreams, "the relay has as many ways as it may have".to_owned()))
            }
        };
        match opened {
            Ok(next) => {
                if Carry::reply(self.repair).write(&mut stream).await.is_ok() {
                    // The stream stays open as long as the way; nothing more is said on it.
                    tokio::select! {
                        error = client.closed() => info!(reason = %error, "a client is gone"),
                        error = next.closed() => info!(reason = %error, "the next stop is gone"),
                        _ = stream.read_u8() => {}
                    }
                }
                next.close(0, "the client of the relay is gone");
            }
            Err((code, text)) => {
                self.counters.streams_failed.add(1);
                warn!(?code, "refused: {text}");
                if Reply::failure(code, &text).write(&mut stream).await.is_ok() {
                    let _ = stream.shutdown().await;
                    let _ = timeout(Duration::from_secs(1), stream.read_u8()).await;
                }
            }
        }
        client.close(0, "the way has ended");
    }

    async fn open_way(
        &self,
        client: &ctcp::Connection,
        endpoint: &ctcp::Endpoint,
        request: Result<Request, crate::request::HeadError>,
    ) -> Result<ctcp::Connection, Refusal> {
        let carry = match request {
            Ok(Request::Carry(carry)) => carry,
            Ok(_) => {
                return Err((
                    ReplyCode::CommandNotSupported,
                    "this is a relay, which only carries".to_owned(),
                ));
            }
            Err(error) => return Err((error.reply_code(), error.to_string())),
        };
        let Some((stop, rest)) = carry.stops.split_first() else {
            return Err((ReplyCode::CommandNotSupported, "this is a relay, not a server".to_owned()));
        };
        if !self.destinations.contains(stop) {
            return Err((ReplyCode::NotAllowed, format!("this relay does not carry to {stop}")));
        }
        let carry = Carry { repair: self.repair, stops: rest.to_vec() };
        let onward = timeout(self.limits.connect, open(endpoint, stop, carry));
        let (next, _) =
            onward.await.map_err(|_| (ReplyCode::TimedOut, format!("{stop} does not answer")))??;
        client
            .relay_to(&next, self.repair)
            .map_err(|error| (ReplyCode::GeneralFailure, error.to_string()))?;
        info!(next = %stop, "a way is open");
        Ok(next)
    }
}

/// Connects to a stop and asks it to carry further. Returns the connection and how the other side repairs losses on it.
///
/// # Errors
/// Returns a code and a text for people.
pub(crate) async fn open(
    endpoint: &ctcp::Endpoint,
    stop: &Stop,
    carry: Carry,
) -> Result<(ctcp::Connection, HopRepair), Refusal> {
    let unreachable =
        |error: &dyn fmt::Display| (ReplyCode::HostUnreachable, format!("{}: {error}", stop.address));
    let addresses =
        ServerAddress(stop.address.clone()).resolve().await.map_err(|error| unreachable(&error))?;
    let mut last = unreachable(&"it has no address");
    for address in addresses {
        match endpoint.connect(address, stop.key).await {
            Ok(connection) => return ask(connection, stop, carry).await,
            Err(error) => last = unreachable(&error),
        }
    }
    Err(last)
}

async fn ask(
    connection: ctcp::Connection,
    stop: &Stop,
    carry: Carry,
) -> Result<(ctcp::Connection, HopRepair), Refusal> {
    let lost = |error: &dyn fmt::Display| (ReplyCode::HostUnreachable, format!("{}: {error}", stop.address));
    let mut stream = connection.open().await.map_err(|error| lost(&error))?;
    Request::Carry(carry).write(&mut stream).await.map_err(|error| lost(&error))?;
    let reply = Reply::read(&mut stream).await.map_err(|error| lost(&error))?;
    if !reply.is_success() {
        return Err((reply.code, format!("{}: {reply}", stop.address)));
    }
    let repair = Carry::granted(&reply).map_err(|error| lost(&error))?;
    debug!(stop = %stop.address, ?repair, "the way goes on");
    // Kept as long as the connection: the other side would take its end for that of the way.
    let held = connection.clone();
    tokio::spawn(async move {
        let _stream = stream;
        held.closed().await;
    });
    Ok((connection, repair))
}
