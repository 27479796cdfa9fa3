//! The reverse proxy: accepts coded streams and serves the request at the head of each.
//!
//! ```text
//!  Endpoint --accept--> Connection --accept--> Stream --head--> CONNECT: dial, splice
//!                                                               GET, PUT: files
//!                                                               ASSOCIATE: UDP in messages ([`crate::udp`])
//! ```
//!
//! Requirement: C7

use core::fmt;
use core::future::poll_fn;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{Instrument, Span, debug, error_span, info, warn};

use crate::address::TargetAddress;
use crate::clients::Clients;
use crate::coded::{CodedConnection, CodedStream, has_left};
use crate::counters::Counters;
use crate::dial::{DialError, Dialer};
use crate::failures::Failures;
use crate::files::FileService;
use crate::request::{Carry, Granted, Reply, ReplyCode, Request};
use crate::seldom::{Seldom, WARNING_PAUSE};
use crate::shares::{Place, Shares, Taken};
use crate::splice::{Meter, SpliceEnd, SpliceOptions, splice};
use crate::traffic::Up;
use crate::udp::service::UdpService;
use crate::udp::{Router, UdpLimits};

/// The reply to file requests if no files are served.
const NO_FILES: &str = "it serves no files (it was started without --files)";

/// The reply to a relay that asks for something else.
const ONLY_RELAY: &str = "a relay (--relay) may only carry, not ask for anything itself";

/// The reply to a peer that is no relay of this server.
const NO_RELAY: &str = "this server takes nothing from this relay (its key is not named with --relay)";

/// The reply to a way that would go on after this server.
const NO_STOPS: &str = "this is a server, not a relay";

/// Simultaneous requests. Each has two kernel buffers besides its descriptor.
pub const STREAMS_MAX: usize = 65_536;

/// Simultaneous requests of one client: an eighth of the total.
pub const STREAMS_PER_CLIENT_MAX: usize = 8192;

/// Descriptors other than those of requests: sockets and files of [`crate::dial::LOOKUPS_MAX`] lookups, second files of
/// [`crate::files::TRANSFERS_MAX`] transfers, UDP sockets, metrics.
pub const OPEN_FILES_SPARE_MAX: usize = 512;

/// Limits of a reverse proxy.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Simultaneous requests of one connection. A browser has tens, a busy household hundreds.
    pub streams_per_connection: usize,
    /// Simultaneous requests in total. Each uses a descriptor, of a socket or a file.
    pub streams: usize,
    /// Simultaneous requests of one client (one public key), over all its connections.
    pub streams_per_client: usize,
    /// How long a stream may take to send its head, which fits one packet.
    pub head: Duration,
    /// UDP associations. They count as requests, too.
    pub udp: UdpLimits,
}

impl Default for ServerLimits {
    fn default() -> Self {
        let (streams, streams_per_client) = (STREAMS_MAX, STREAMS_PER_CLIENT_MAX);
        Self {
            streams_per_connection: 1024,
            streams,
            streams_per_client,
            head: Duration::from_secs(30),
            udp: UdpLimits::default(),
        }
    }
}

impl ServerLimits {
    /// Returns the default limits, lowered to what a process with this limit of open files can serve. A quarter of the
    /// files, at most [`OPEN_FILES_SPARE_MAX`] and a second socket per association, is reserved for everything else. One
    /// client may use half of the rest.
    #[must_use]
    pub fn for_open_files(open_files: usize) -> Self {
        let udp = UdpLimits::for_open_files(open_files);
        let spare = (open_files / 4).min(OPEN_FILES_SPARE_MAX + udp.associations);
        let streams = STREAMS_MAX.min(open_files - spare);
        let streams_per_client = STREAMS_PER_CLIENT_MAX.min(streams / 2);
        Self { streams, streams_per_client, udp, ..Self::default() }
    }
}

/// The reverse proxy.
pub struct ReverseProxy {
    dialer: Arc<Dialer>,
    files: Option<FileService>,
    limits: ServerLimits,
    slots: Shares,
    counters: Arc<Counters>,
    clients: Clients,
    full: Seldom,
    exhausted: Seldom,
    refused: Arc<Failures>,
    udp: Arc<UdpService>,
    /// The public keys of the relays that may carry datagrams of clients here.
    relays: OnceLock<BTreeSet<String>>,
}

impl fmt::Debug for ReverseProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dialer, limits, .. } = self;
        formatter
            .debug_struct("ReverseProxy")
            .field("dialer", dialer)
            .field("limits", limits)
            .finish_non_exhaustive()
    }
}

impl ReverseProxy {
    /// Creates a proxy that connects with `dialer` and optionally serves `files`.
    #[must_use]
    pub fn new(dialer: Dialer, files: Option<FileService>, limits: ServerLimits) -> Arc<Self> {
        let slots = Shares::new(limits.streams, limits.streams_per_client);
        let counters = Arc::new(Counters::new("server"));
        let (full, exhausted) = (Seldom::new(WARNING_PAUSE), Seldom::new(WARNING_PAUSE));
        let clients = Clients::default();
        let (dialer, refused) = (Arc::new(dialer), Arc::<Failures>::default());
        let udp = UdpService::new(limits.udp, dialer.clone(), counters.clone(), refused.clone());
        let udp = Arc::new(udp);
        Arc::new(Self {
            dialer,
            files,
            limits,
            slots,
            counters,
            clients,
            full,
            exhausted,
            refused,
            udp,
            relays: OnceLock::new(),
        })
    }

    /// The counters of the proxy.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Lets relays with these public keys carry datagrams of clients here. Only the first call has an effect. The endpoint must accept their
    /// connections, too.
    pub fn accept_relays(&self, keys: impl IntoIterator<Item = ctcp::PublicKey>) {
        self.relays.get_or_init(|| keys.into_iter().map(|key| key.to_string()).collect());
    }

    /// The names and statistics of its clients.
    #[must_use]
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Serves the clients of an endpoint until it is closed, or the future is dropped.
    pub async fn serve(self: &Arc<Self>, endpoint: &ctcp::Endpoint) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                accepted = endpoint.accept() => match accepted {
                    Some(connection) => {
                        let proxy = self.clone();
                        tasks.spawn(async move { proxy.serve_connection(connection).await });
                    }
                    None => return,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    /// Serves the streams of one connection until it is closed.
    pub async fn serve_connection<C: CodedConnection>(self: &Arc<Self>, connection: C) {
        let name = self.clients.name(&connection.peer());
        let up = {
            let connection = connection.clone();
            self.clients.traffic(&name).enter(move || connection.stats())
        };
        // A span of the highest level, so that log lines of every level have it.
        self.serve_client(connection, up).instrument(error_span!("client", name)).await;
    }

    async fn serve_client<C: CodedConnection>(self: &Arc<Self>, connection: C, up: Up) {
        let peer = connection.peer();
        self.counters.connections_total.add(1);
        let present = self.counters.connections.enter();
        let remote = connection.remote();
        info!(%remote, key = %peer, "a client connected");
        let slots = Arc::new(Semaphore::new(self.limits.streams_per_connection.min(Semaphore::MAX_PERMITS)));
        let mut tasks = JoinSet::new();
        let router = Arc::new(Router::keeping_early());
        {
            let (router, connection, counters) = (router.clone(), connection.clone(), self.counters.clone());
            let pump = async move { router.pump(&connection, &counters.udp).await };
            tasks.spawn(pump.instrument(Span::current()));
        }
        loop {
            tokio::select! {
                accepted = connection.accept() => match accepted {
                    Ok(stream) => {
                        let slot = self.slot(&peer, &slots);
                        let (proxy, connection, router) = (self.clone(), connection.clone(), router.clone());
                        let serve =
                            async move { proxy.serve_stream(stream, &connection, &router, slot).await };
                        tasks.spawn(serve.instrument(Span::current()));
                    }
                    Err(error) => {
                        let remote = connection.remote(); // it may have changed
                        info!(%remote, reason = %error, "a client is gone");
                        break;
                    }
                },
                Some(_) = tasks.join_next() => {}
            }
        }
        drop((present, up));
        // Streams notice that their connection is closed, pass on the data that had arrived, and reset their targets.
        while tasks.join_next().await.is_some() {}
    }

    /// Takes a slot for one more request, of the connection, of the client and of the total; or returns the text for
    /// the client.
    fn slot(&self, client: &str, of_connection: &Arc<Semaphore>) -> Result<Slot, &'static str> {
        let (limit, text) = match (of_connection.clone().try_acquire_owned(), self.slots.place_now(client)) {
            (Ok(own), Ok(place)) => return Ok(Slot { _of_connection: own, _place: place }),
            (Err(_), _) => (self.limits.streams_per_connection, "this connection has too many open streams"),
            (_, Err(Taken::Share)) => {
                (self.limits.streams_per_client, "this client has too many open streams")
            }
            (_, Err(Taken::All)) => (self.limits.streams, "the server has too many open streams"),
        };
        if let Some(suppressed) = self.full.is_due() {
            warn!(limit, suppressed, "a request is refused: {text}");
        }
        Err(text)
    }

    async fn serve_stream<C: CodedConnection>(
        &self,
        mut stream: C::Stream,
        connection: &C,
        router: &Arc<Router>,
        slot: Result<Slot, &'static str>,
    ) {
        self.counters.streams_total.add(1);
        let _slot = match slot {
            Ok(slot) => slot,
            Err(text) => {
                self.refuse(&mut stream, ReplyCode::TooManyStreams, text).await;
                return;
            }
        };
        let _present = self.counters.streams_open.enter();
        let request = match timeout(self.limits.head, Request::read(&mut stream)).await {
            Ok(Ok(request)) => request,
            Ok(Err(error)) => {
                self.refuse(&mut stream, error.reply_code(), &error.to_string()).await;
                return;
            }
            Err(_) => {
                self.counters.streams_failed.add(1);
                return; // dropping the stream resets it
            }
        };
        let is_relay = self.relays.get().is_some_and(|relays| relays.contains(&connection.peer()));
        if is_relay && !matches!(request, Request::Carry(_)) {
            self.refuse(&mut stream, ReplyCode::NotAllowed, ONLY_RELAY).await;
            return;
        }
        stream.set_low_latency(request.wants_low_latency());
        match request {
            Request::Connect(target) | Request::ConnectLowLatency(target) => {
                self.serve_connect(stream, connection, &target).await;
            }
            Request::Associate(asked) => match self.udp.admit(connection, router, asked) {
                Ok(association) => association.serve(stream).await,
                Err((code, text)) => self.refuse(&mut stream, code, text).await,
            },
            Request::Carry(carry) if !carry.stops.is_empty() => {
                self.refuse(&mut stream, ReplyCode::CommandNotSupported, NO_STOPS).await;
            }
            Request::Carry(carry) if is_relay => self.serve_carry(stream, connection, &carry).await,
            Request::Carry(_) => self.refuse(&mut stream, ReplyCode::NotAllowed, NO_RELAY).await,
            Request::Get(get) => match &self.files {
                Some(files) => files.serve_get(&connection.peer(), stream, get, &self.counters).await,
                None => self.refuse(&mut stream, ReplyCode::FilesOff, NO_FILES).await,
            },
            Request::Put(put) => match &self.files {
                Some(files) => files.serve_put(&connection.peer(), stream, put, &self.counters).await,
                None => self.refuse(&mut stream, ReplyCode::FilesOff, NO_FILES).await,
            },
        }
    }

    async fn serve_connect<C: CodedConnection>(
        &self,
        mut stream: C::Stream,
        connection: &C,
        target: &TargetAddress,
    ) {
        let client = connection.peer();
        let dialed = tokio::select! {
            dialed = self.dialer.connect(&client, target) => dialed,
            () = poll_fn(|context| stream.poll_broken(context)) => return,
            _ = connection.closed() => return,
        };
        let mut tcp = match dialed {
            Ok(tcp) => tcp,
            Err(error) => {
                if let DialError::Refused(refusal) = &error {
                    self.counters.targets_refused.add(1);
                    self.refused.note_refused(&client, &target.to_string(), &refusal.to_string());
                }
                if error.is_exhausted()
                    && let Some(suppressed) = self.exhausted.is_due()
                {
                    warn!(%error, suppressed, "refused a request: this process is out of file descriptors or memory (see `ulimit -n`)");
                }
                self.refuse(&mut stream, error.reply_code(), &error.explain(target)).await;
                return;
            }
        };
        keep_alive(&tcp);
        let bound = tcp.local_addr().unwrap_or(crate::address::UNSPECIFIED);
        if Reply::connected(bound).write(&mut stream).await.is_err() {
            tcp.abort();
            return;
        }
        let meter = Meter { a_to_b: &self.counters.upstream, b_to_a: &self.counters.downstream };
        let closed = connection.closed();
        let spliced = splice(&mut stream, &mut tcp, SpliceOptions::default(), meter, closed).await;
        if let Some((end, error)) = spliced.failure
            && !(spliced.is_b_done && has_left(&error))
        {
            self.counters.streams_failed.add(1);
            debug!(%target, ?end, %error, "a proxied connection was cut");
        }
    }

    /// Ends a way that goes through relays here.
    async fn serve_carry<C: CodedConnection>(&self, mut stream: C::Stream, connection: &C, carry: &Carry) {
        match connection.carry(carry.repair) {
            Ok(_) => {
                info!("a relay carries datagrams of clients here");
                if Carry::reply(Granted::Repair(carry.repair)).write(&mut stream).await.is_ok() {
                    connection.closed().await;
                }
            }
            Err(error) => self.refuse(&mut stream, ReplyCode::GeneralFailure, &error.to_string()).await,
        }
    }

    async fn refuse<S: CodedStream>(&self, stream: &mut S, code: ReplyCode, text: &str) {
        self.counters.streams_failed.add(1);
        debug!(?code, text, "a request is refused");
        if Reply::failure(code, text).write(stream).await.is_ok() {
            let _ = stream.shutdown().await;
        }
    }
}

/// The slots of a request being served.
struct Slot {
    _of_connection: OwnedSemaphorePermit,
    _place: Place,
}

/// Enables keep-alive: the kernel notices after some two hours that a target has vanished. Otherwise a connection could
/// stay idle forever.
fn keep_alive(tcp: &tokio::net::TcpStream) {
    let _ = socket2::SockRef::from(tcp).set_keepalive(true);
}

#[cfg(test)]
mod tests;
