//! The relay: carries the datagrams of clients to servers or further relays, without keys of either end.
//!
//! ```text
//!  Endpoint --accept--> hop of a client --CARRY--> next stop allowed? --> connect, CARRY the rest --> join both hops
//!                                                                    \--> a pair of UDP sockets, if it only forwards
//! ```
//!
//! A client is known by its key, and the next stop is one that the operator named or allowed. The relay learns the addresses and keys of
//! the stops that follow, and which datagrams belong together; it never holds a key of what they contain.

use core::fmt;
use core::future::pending;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;
use core::time::Duration;
use std::sync::Arc;

use ctcp::{ConnectError, ConnectionError, HopRepair, PublicKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{Instrument, debug, error_span, info, warn};

use crate::counters::Counters;
use crate::link::ServerAddress;
use crate::request::{Carry, Granted, HeadError, Reply, ReplyCode, Request, Stop};
use crate::seldom::Seldom;
use crate::shares::{Shares, Taken};
use crate::traffic::Traffic;

mod destinations;
mod forward;

pub use destinations::Destinations;
use forward::Forwarder;

/// What a relay does with datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Carries them, and repairs losses of its hops so.
    Repair(HopRepair),
    /// Forwards them as they are.
    Forward,
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Repair(HopRepair::Combinations) => "recode",
            Self::Repair(HopRepair::Repetitions) => "repeat",
            Self::Forward => "forward",
        })
    }
}

/// Limits of a relay.
#[derive(Clone, Copy, Debug)]
pub struct RelayLimits {
    /// How long a client may take to send its request.
    pub head: Duration,
    /// How long the next stop may take to answer.
    pub connect: Duration,
    /// Ways that may be open at the same time. A client may have half of them.
    pub ways: usize,
}

impl RelayLimits {
    /// Ways that a client may have open at the same time.
    #[must_use]
    pub fn ways_of_client(&self) -> usize {
        (self.ways / 2).max(1)
    }
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self { head: Duration::from_secs(10), connect: Duration::from_secs(10), ways: 1024 }
    }
}

/// The pause between log lines about refused ways. An operator may be waiting for one.
const REFUSALS_PAUSE: Duration = Duration::from_secs(1);

/// A relay.
pub struct Relay {
    destinations: Destinations,
    mode: Mode,
    limits: RelayLimits,
    ways: Shares,
    /// A client may ask again and again.
    refusals: Seldom,
    counters: Arc<Counters>,
    /// The connections of clients, and those to the next stops.
    traffic: [Arc<Traffic>; 2],
}

impl fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Relay").field("destinations", &self.destinations).finish_non_exhaustive()
    }
}

/// Why a way was not opened: the code and the text for the client.
type Refusal = (ReplyCode, String);

/// The rest of a way after a relay.
struct Next<'a> {
    stop: &'a Stop,
    /// The addresses of the stop.
    addresses: Vec<SocketAddr>,
    /// The stops after it.
    rest: &'a [Stop],
}

/// A way that is open.
#[derive(Debug)]
enum Way {
    /// The connection to the next stop is joined with that of the client.
    Joined { next: ctcp::Connection, repair: HopRepair },
    /// The task forwards as long as it is held. There is a connection to the next stop if that is a relay.
    Forwarded { next: Option<ctcp::Connection>, port: NonZeroU16, _task: JoinSet<()> },
}

impl Relay {
    /// A relay to these destinations.
    #[must_use]
    pub fn new(destinations: Destinations, mode: Mode, limits: RelayLimits) -> Arc<Self> {
        let ways = Shares::new(limits.ways, limits.ways_of_client());
        let counters = Arc::new(Counters::new("relay"));
        let refusals = Seldom::new(REFUSALS_PAUSE);
        Arc::new(Self { destinations, mode, limits, ways, refusals, counters, traffic: Default::default() })
    }

    /// The counters of the relay.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The statistics of the connections of clients, and of those to the next stops.
    #[must_use]
    pub fn traffic(&self) -> &[Arc<Traffic>; 2] {
        &self.traffic
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
        let [clients, stops] = &self.traffic;
        let _up = clients.enter(stats_of(client));
        let remote = client.remote_address();
        info!(%remote, "a client connected");
        let asked = async {
            let mut stream = client.accept().await.ok()?;
            let request = Request::read(&mut stream).await;
            Some((stream, request))
        };
        let Ok(Some((mut stream, request))) = timeout(self.limits.head, asked).await else {
            client.close(0, "this is a relay, and it got no request (name it with --via, not --server)");
            return;
        };
        let place = self.ways.place_now(&client.peer_key().to_string());
        let full = |text: &str| Err((ReplyCode::TooManyStreams, text.to_owned()));
        let opened = match &place {
            Ok(_) => self.open_way(client, endpoint, request).await,
            Err(Taken::Share) => full("this client has as many paths through the relay as it may have"),
            Err(Taken::All) => full("the relay is full"),
        };
        let reason = match opened {
            Ok(way) => {
                self.counters.streams_total.add(1);
                let _open = self.counters.streams_open.enter();
                let _up = way.next().map(|next| stops.enter(stats_of(next)));
                keep(client, stream, &way).await;
                "the way has ended".to_owned()
            }
            Err((code, text)) => {
                self.counters.streams_failed.add(1);
                if let Some(suppressed) = self.refusals.is_due() {
                    warn!(?code, suppressed, "refused: {text}");
                }
                if Reply::failure(code, &text).write(&mut stream).await.is_ok() {
                    let _ = stream.shutdown().await;
                    let _ = timeout(Duration::from_secs(1), copy(&mut stream, &mut sink())).await;
                }
                text
            }
        };
        client.close(0, &reason);
    }

    async fn open_way(
        &self,
        client: &ctcp::Connection,
        endpoint: &ctcp::Endpoint,
        request: Result<Request, HeadError>,
    ) -> Result<Way, Refusal> {
        let carry = match request {
            Ok(Request::Carry(carry)) => carry,
            Ok(_) => {
                return Err((
                    ReplyCode::CommandNotSupported,
                    "this is a relay, not a server: name it with --via".to_owned(),
                ));
            }
            Err(error) => return Err((error.reply_code(), error.to_string())),
        };
        let Some((stop, rest)) = carry.stops.split_first() else {
            return Err((
                ReplyCode::CommandNotSupported,
                "this is a relay, not a server: the way must go on to one".to_owned(),
            ));
        };
        let opening = async {
            let addresses = self.destinations.addresses(&client.peer_key().to_string(), stop, rest).await?;
            let next = Next { stop, addresses, rest };
            match self.mode {
                Mode::Repair(repair) => join(client, endpoint, &next, repair).await,
                Mode::Forward => forward(client, endpoint, &next).await,
            }
        };
        // The stops after it have their own time, and say which of them does not answer.
        let limit = self.limits.connect * (1 + rest.len() as u32);
        let opened = timeout(limit, opening).await;
        let way = opened.map_err(|_| (ReplyCode::TimedOut, format!("{stop} does not answer")))??;
        info!(next = %stop, mode = %self.mode, "a way is open");
        Ok(way)
    }
}

impl Way {
    fn granted(&self) -> Granted {
        match self {
            Self::Joined { repair, .. } => Granted::Repair(*repair),
            Self::Forwarded { port, .. } => Granted::Forward { port: *port },
        }
    }

    fn next(&self) -> Option<&ctcp::Connection> {
        match self {
            Self::Joined { next, .. } => Some(next),
            Self::Forwarded { next, .. } => next.as_ref(),
        }
    }
}

fn stats_of(connection: &ctcp::Connection) -> impl Fn() -> ctcp::ConnectionStats + Send + Sync + use<> {
    let connection = connection.clone();
    move || connection.stats()
}

/// How long one side of a way outlives the other, to carry what arrived last: an end has closed its connection, and says so to the other end.
const LINGER: Duration = Duration::from_secs(1);

/// Grants a way, and keeps it until the client or the next stop is gone.
async fn keep(client: &ctcp::Connection, mut stream: ctcp::Stream, way: &Way) {
    let next_closed = async {
        match way.next() {
            Some(next) => next.closed().await,
            None => pending().await,
        }
    };
    if Carry::reply(way.granted()).write(&mut stream).await.is_ok() {
        // The stream stays open as long as the way; nothing more is said on it.
        let error = tokio::select! {
            error = client.closed() => {
                info!(reason = %error, "a client is gone");
                Some(error)
            }
            error = next_closed => {
                info!(reason = %error, "the next stop is gone");
                Some(error)
            }
            _ = stream.read_u8() => None,
        };
        if error.is_some_and(|error| error.is_orderly_close()) {
            sleep(LINGER).await;
        }
    }
    if let Some(next) = way.next() {
        next.close(0, "the client of the relay is gone");
    }
}

/// Opens a way whose losses are repaired.
async fn join(
    client: &ctcp::Connection,
    endpoint: &ctcp::Endpoint,
    way: &Next<'_>,
    repair: HopRepair,
) -> Result<Way, Refusal> {
    let (next, granted) = way.open(endpoint, repair).await?;
    let joined = match granted {
        Granted::Repair(_) => {
            client.relay_to(&next, repair).map_err(|error| misfit(way.stop, &error.to_string()))
        }
        Granted::Forward { .. } => {
            Err(misfit(way.stop, "that relay only forwards, but this one repairs losses"))
        }
    };
    joined.inspect_err(|(_, text)| next.close(0, text))?;
    Ok(Way::Joined { next, repair })
}

/// Opens a way without repair. A server at its end learns nothing of it.
async fn forward(
    client: &ctcp::Connection,
    endpoint: &ctcp::Endpoint,
    way: &Next<'_>,
) -> Result<Way, Refusal> {
    let (next, addresses) = if way.rest.is_empty() {
        (None, way.addresses.clone())
    } else {
        let (next, granted) = way.open(endpoint, HopRepair::default()).await?;
        match granted {
            Granted::Forward { port } => {
                let address = with_port(next.remote_address(), port);
                (Some(next), vec![address])
            }
            Granted::Repair(_) => {
                let refusal = misfit(way.stop, "that relay repairs losses, but this one only forwards");
                next.close(0, &refusal.1);
                return Err(refusal);
            }
        }
    };
    let opened = forwarder(client, endpoint, way.stop, &addresses);
    let forwarder = opened.inspect_err(|(_, text)| {
        if let Some(next) = &next {
            next.close(0, text);
        }
    })?;
    let (port, client, mut task) = (forwarder.port(), client.clone(), JoinSet::new());
    task.spawn(forwarder.run(move || client.remote_address().ip()));
    Ok(Way::Forwarded { next, port, _task: task })
}

/// A forwarder to the first of these addresses to which a route leads.
fn forwarder(
    client: &ctcp::Connection,
    endpoint: &ctcp::Endpoint,
    stop: &Stop,
    addresses: &[SocketAddr],
) -> Result<Forwarder, Refusal> {
    let failure =
        |error: &dyn fmt::Display| (ReplyCode::GeneralFailure, format!("{}: {error}", stop.address));
    let listening = endpoint.local_addr().map_err(|error| failure(&error))?;
    // The client takes answers only from the address to which it sends.
    let local = client.paths().first().and_then(|path| path.local);
    let facing = SocketAddr::new(local.unwrap_or(listening.ip()), listening.port());
    let client: IpAddr = client.remote_address().ip();
    let mut last = unreachable(stop, &NO_ADDRESS);
    for &address in addresses {
        match Forwarder::open([facing, listening], client, address) {
            Ok(forwarder) => return Ok(forwarder),
            Err(error) => last = unreachable(stop, &error),
        }
    }
    Err(last)
}

/// The next stop treats datagrams in a way that is incompatible with ours.
fn misfit(stop: &Stop, text: &str) -> Refusal {
    (ReplyCode::CommandNotSupported, format!("{}: {text}", stop.address))
}

fn unreachable(stop: &Stop, error: &dyn fmt::Display) -> Refusal {
    // The stop is named already, and may be a relay.
    let text = error.to_string().replace("the server", "the other side");
    (ReplyCode::HostUnreachable, format!("{}: {text}", stop.address))
}

const NO_ADDRESS: &str = "the name has no address";

async fn resolve(stop: &Stop) -> Result<Vec<SocketAddr>, Refusal> {
    ServerAddress(stop.address.clone()).resolve().await.map_err(|error| unreachable(stop, &error))
}

/// The address at which a relay forwards on this port.
pub(crate) fn with_port(mut relay: SocketAddr, port: NonZeroU16) -> SocketAddr {
    relay.set_port(port.get());
    relay
}

impl Next<'_> {
    /// Connects to the stop and asks it to carry further.
    async fn open(
        &self,
        endpoint: &ctcp::Endpoint,
        repair: HopRepair,
    ) -> Result<(ctcp::Connection, Granted), Refusal> {
        let carry = Carry { repair, stops: self.rest.to_vec() };
        connect(endpoint, self.stop, &self.addresses, carry, unknown_relay).await
    }
}

/// Connects to a stop and asks it to carry further. Returns the connection and what the other side does with datagrams.
///
/// # Errors
/// Returns a code and a text for people.
pub(crate) async fn open(
    endpoint: &ctcp::Endpoint,
    stop: &Stop,
    carry: Carry,
    own_key: Option<PublicKey>,
) -> Result<(ctcp::Connection, Granted), Refusal> {
    let failed = |stop: &Stop, error: &ConnectError| refused(stop, error, own_key);
    connect(endpoint, stop, &resolve(stop).await?, carry, failed).await
}

/// Why a client with this key does not reach its first relay.
fn refused(stop: &Stop, error: &ConnectError, own_key: Option<PublicKey>) -> Refusal {
    let (code, text) = unreachable(stop, error);
    match error {
        ConnectError::Failed(ConnectionError::Refused { code: ConnectionError::UNLISTED, .. }) => {
            let key = own_key.map(|key| format!(" (it is {key})")).unwrap_or_default();
            (ReplyCode::NotAllowed, text + &key)
        }
        ConnectError::Failed(
            ConnectionError::HandshakeTimedOut { rejected: true }
            | ConnectionError::VersionMismatch { .. }
            | ConnectionError::Refused { code: ConnectionError::NEWER_VERSION, .. },
        ) => (ReplyCode::NotAllowed, text),
        ConnectError::Failed(
            ConnectionError::Busy | ConnectionError::Refused { code: ConnectionError::FULL, .. },
        ) => (ReplyCode::TooManyStreams, text),
        _ => (code, text),
    }
}

/// Why a relay does not reach the next stop.
fn unknown_relay(stop: &Stop, error: &ConnectError) -> Refusal {
    match error {
        ConnectError::Failed(ConnectionError::Refused { code: ConnectionError::UNLISTED, .. }) => (
            ReplyCode::NotAllowed,
            format!(
                "{} does not take datagrams from this relay: name its key there (a server: --relay, a relay: --client)",
                stop.address
            ),
        ),
        _ => unreachable(stop, error),
    }
}

async fn connect(
    endpoint: &ctcp::Endpoint,
    stop: &Stop,
    addresses: &[SocketAddr],
    carry: Carry,
    failed: impl Fn(&Stop, &ConnectError) -> Refusal,
) -> Result<(ctcp::Connection, Granted), Refusal> {
    let mut last = unreachable(stop, &NO_ADDRESS);
    for &address in addresses {
        match endpoint.connect(address, stop.key).await {
            Ok(connection) => return ask(connection, stop, carry).await,
            // A refusal says more than silence.
            Err(_) if last.0 == ReplyCode::NotAllowed => {}
            Err(error) => last = failed(stop, &error),
        }
    }
    Err(last)
}

async fn ask(
    connection: ctcp::Connection,
    stop: &Stop,
    carry: Carry,
) -> Result<(ctcp::Connection, Granted), Refusal> {
    let mut stream = connection.open().await.map_err(|error| unreachable(stop, &error))?;
    Request::Carry(carry).write(&mut stream).await.map_err(|error| unreachable(stop, &error))?;
    let reply = Reply::read(&mut stream).await.map_err(|error| unreachable(stop, &error))?;
    if !reply.is_success() {
        return Err((reply.code, format!("{}: {reply}", stop.address)));
    }
    let granted = Carry::granted(&reply).map_err(|error| unreachable(stop, &error))?;
    debug!(stop = %stop.address, ?granted, "the way goes on");
    // Kept as long as the connection: the other side would take its end for that of the way.
    let held = connection.clone();
    tokio::spawn(async move {
        let _stream = stream;
        held.closed().await;
    });
    Ok((connection, granted))
}
