//! The forward proxy: accepts the connections of applications and carries each on a coded stream.
//!
//! ```text
//!  application --SOCKS5-----+
//!  application --HTTP-------+--> one stream each --> ServerLink ==coded==> reverse proxy --> target
//!  application --forward----+                                                    (UDP: see [`crate::udp`])
//!  stdin/stdout ------------+
//! ```
//!
//! When the coded connection is lost, its streams fail too: applications get what had arrived, and then a reset (never
//! a regular end). New streams wait for the link to reconnect (see [`crate::link`]).
//!
//! Requirement: C7

mod status;

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::address::{TargetAddress, UNSPECIFIED};
use crate::coded::CodedConnection;
use crate::early::Early;
use crate::failures::Failures;
use crate::http_proxy::{self, Served, Tunnel};
use crate::link::{Connector, LinkError, Opened, ServerLink};
use crate::pulse::Pulse;
use crate::request::{ReplyCode, Request};
use crate::seldom::{Seldom, WARNING_PAUSE};
use crate::socks5::{self, Asked, Socks5Error};
use crate::splice::{Meter, SpliceEnd, SpliceOptions, Spliced, splice};
use crate::udp::UdpOptions;
use crate::udp::associations::Associations;

/// The default limit of simultaneous connections of applications: as many streams as a server allows one connection by
/// default.
pub const CONNECTIONS_MAX: usize = 4096;

/// The default limit of simultaneous UDP associations, the same as that of a server for one client.
pub const ASSOCIATIONS_MAX: usize = crate::udp::ASSOCIATIONS_PER_CLIENT_MAX;

/// Descriptors other than those of applications: listeners, UDP sockets, resolving the server's name, metrics.
pub const OPEN_FILES_SPARE_MAX: usize = 128;

/// Limits of a forward proxy.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Simultaneous connections of applications, over all listeners; further ones wait in the kernel's queue.
    pub connections: usize,
    /// Simultaneous UDP associations; each has a socket besides its application's connection.
    pub associations: usize,
    /// How long an application may take to send its request.
    pub handshake: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS_MAX,
            associations: ASSOCIATIONS_MAX,
            handshake: Duration::from_secs(10),
        }
    }
}

impl ClientLimits {
    /// Returns the default limits, lowered to what a process with this limit of open files can serve. A quarter of the
    /// files, at most [`OPEN_FILES_SPARE_MAX`] and a socket per association, is reserved for everything else.
    #[must_use]
    pub fn for_open_files(open_files: usize) -> Self {
        let associations = ASSOCIATIONS_MAX.min(open_files / 16);
        let spare = (open_files / 4).min(OPEN_FILES_SPARE_MAX + associations);
        Self { connections: CONNECTIONS_MAX.min(open_files - spare), associations, ..Self::default() }
    }
}

/// The pause after `accept` failed: the process has no descriptors or memory left, which is temporary.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many connections wait in the kernel until they are accepted. A browser or a test opens hundreds at once; with
/// the usual 128 the kernel drops or resets some of them.
const BACKLOG: u32 = 4096;

/// Listens for applications, with a backlog for many simultaneous connections.
///
/// # Errors
/// Returns an error if the address cannot be bound.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // After a restart old connections linger in the kernel. On Windows the option has another meaning.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// After a refusal the application may still be sending. This many bytes are read and dropped, so that closing does not
/// reset the connection before the application has read the refusal.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How long they are read at most.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// The forward proxy.
pub struct ForwardProxy<K: Connector> {
    link: ServerLink<K>,
    limits: ClientLimits,
    slots: Arc<Semaphore>,
    full: Seldom,
    failing: Seldom,
    socks5: OnceLock<SocketAddr>,
    failures: Failures,
    pulse: Mutex<Pulse>,
    greeting: Greeting,
    pub(crate) udp: Associations,
}

/// When applications are told that they are connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Greeting {
    /// At once, so that their first data leaves with the request, which saves a round trip. If the target then turns out to
    /// be out of reach, the application's connection is reset, and for a minute further ones to this target get the reply of
    /// the server.
    #[default]
    AtOnce,
    /// When the server has connected to the target, so that every failure gets its reply.
    WhenConnected,
}

/// The protocol of a listener's connections.
#[derive(Clone, Debug)]
enum Service {
    Socks5,
    Http,
    /// The same request for each connection.
    Forward(Request),
}

impl<K: Connector> ForwardProxy<K> {
    /// Creates a proxy over a link.
    pub fn new(link: ServerLink<K>, limits: ClientLimits) -> Arc<Self> {
        Self::with_greeting(link, limits, Greeting::default())
    }

    /// Creates a proxy that tells applications at this time that they are connected.
    pub fn with_greeting(link: ServerLink<K>, limits: ClientLimits, greeting: Greeting) -> Arc<Self> {
        Self::with_options(link, limits, greeting, UdpOptions::default())
    }

    /// Creates a proxy that also serves UDP in this way.
    pub fn with_options(
        link: ServerLink<K>,
        limits: ClientLimits,
        greeting: Greeting,
        udp: UdpOptions,
    ) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        let (full, failing) = (Seldom::new(WARNING_PAUSE), Seldom::new(WARNING_PAUSE));
        let (socks5, failures, pulse) = (OnceLock::new(), Failures::default(), Mutex::default());
        let udp = Associations::new(udp, limits.associations);
        Arc::new(Self { link, limits, slots, full, failing, socks5, failures, pulse, greeting, udp })
    }

    /// The link to the server.
    #[must_use]
    pub fn link(&self) -> &ServerLink<K> {
        &self.link
    }

    /// Serves SOCKS5 until the future is dropped, which resets the connections it serves.
    pub async fn serve_socks5(self: &Arc<Self>, listener: TcpListener) {
        if let Ok(address) = listener.local_addr() {
            let _ = self.socks5.set(address); // for the PAC file, which names the first listener
        }
        self.serve(listener, Service::Socks5).await;
    }

    /// Serves the HTTP proxy, its PAC file and its status page until the future is dropped.
    pub async fn serve_http(self: &Arc<Self>, listener: TcpListener) {
        tokio::select! {
            () = self.serve(listener, Service::Http) => {}
            () = self.watch_link() => {}
        }
    }

    /// Serves a fixed forward, whose connections are carried to the target of `request`, until the future is dropped.
    pub async fn serve_forward(self: &Arc<Self>, listener: TcpListener, request: Request) {
        self.serve(listener, Service::Forward(request)).await;
    }

    async fn serve(self: &Arc<Self>, listener: TcpListener, service: Service) {
        let mut tasks = JoinSet::new();
        loop {
            let Some(slot) = self.slot().await else { return };
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((application, from)) => {
                        let (proxy, service) = (self.clone(), service.clone());
                        tasks.spawn(async move {
                            let _slot = slot;
                            if let Err(error) = proxy.handle(application, service).await {
                                debug!(%from, %error, "an application's request failed");
                            }
                        });
                    }
                    Err(error) => {
                        if let Some(suppressed) = self.failing.is_due() {
                            warn!(%error, suppressed, "cannot accept connections at the moment");
                        }
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    /// Waits for a free slot for one more connection. Returns `None` only if the proxy is gone.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = self.slots.clone().try_acquire_owned() {
            return Some(slot);
        }
        if let Some(suppressed) = self.full.is_due() {
            let limit = self.limits.connections;
            warn!(limit, suppressed, "the limit of open connections is reached, further ones wait");
        }
        self.slots.clone().acquire_owned().await.ok()
    }

    /// Serves one connection of an application.
    async fn handle(&self, application: TcpStream, service: Service) -> io::Result<()> {
        let _ = application.set_nodelay(true); // the coded side decides how to batch data
        match service {
            Service::Socks5 => self.handle_socks5(application).await,
            Service::Http => self.handle_http(application).await,
            Service::Forward(request) => {
                self.carry_early(application, request, Vec::new()).await;
                Ok(())
            }
        }
    }

    async fn handle_socks5(&self, mut application: TcpStream) -> io::Result<()> {
        let target = match timeout(self.limits.handshake, socks5::handshake(&mut application)).await {
            Ok(Ok(Asked::Connect(target))) => target,
            Ok(Ok(Asked::Associate { port })) => return self.serve_association(application, port).await,
            Ok(Err(Socks5Error::Stream(error))) => return Err(error),
            Ok(Err(error)) => {
                if matches!(error, Socks5Error::Version(first) if first.is_ascii_uppercase()) {
                    application.write_all(NOT_HTTP).await?;
                }
                close_gently(application).await;
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            Err(_) => return Err(too_slow()),
        };
        let opened = match self.greets_at_once(&target).await {
            Ok(true) => {
                socks5::write_reply(&mut application, ReplyCode::Succeeded, UNSPECIFIED).await?;
                self.carry_early(application, Request::Connect(target), Vec::new()).await;
                return Ok(());
            }
            Ok(false) => self.connect(&target).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(opened) => {
                let bound = opened.reply.bound().unwrap_or(UNSPECIFIED);
                socks5::write_reply(&mut application, ReplyCode::Succeeded, bound).await?;
                self.carry(application, opened, SpliceOptions::default()).await;
            }
            Err(error) => {
                socks5::write_reply(&mut application, error.code(), UNSPECIFIED).await?;
                close_gently(application).await;
            }
        }
        Ok(())
    }

    async fn handle_http(&self, application: TcpStream) -> io::Result<()> {
        let local = application.local_addr()?;
        match http_proxy::serve(application, local, self, self.limits.handshake).await? {
            Served::Done(application) => close_gently(application).await,
            Served::Tunnel { application, early, to: Tunnel::Opened(opened) } => {
                self.carry(application, opened, SpliceOptions { early, ..SpliceOptions::default() }).await;
            }
            Served::Tunnel { application, early, to: Tunnel::Target(target) } => {
                self.carry_early(application, Request::Connect(target), early).await;
            }
        }
        Ok(())
    }

    /// Returns true if an application is told that it is connected before the server has replied. A failure would then be a
    /// reset without a reason, so a target that failed lately gets the server's reply. Waits for a connection to the server.
    async fn greets_at_once(&self, target: &TargetAddress) -> Result<bool, LinkError> {
        if self.greeting != Greeting::AtOnce || self.failures.has_failed_lately(&target.to_string()) {
            return Ok(false);
        }
        let connected = self.link.connected_in_time().await;
        connected.map(|()| true).inspect_err(|error| self.count_failure(error))
    }

    /// Connects an application that believes it is connected to its target. `pending` was read from it before.
    async fn carry_early(&self, mut application: TcpStream, request: Request, pending: Vec<u8>) {
        application.arm(); // a failure must not look like a regular end
        let connected = {
            let early = Early::new(&mut application, &self.link.counters().upstream);
            let mut early = early.with_pending(pending);
            let opened = self.connect_early(&request, &mut early).await;
            opened.map(|opened| (opened, early.into_rest()))
        };
        match connected {
            Ok((opened, (early, is_a_done))) => {
                let options = SpliceOptions { early, is_a_done, ..SpliceOptions::default() };
                self.carry(application, opened, options).await;
            }
            // The connection is reset. Only the log and the status page can say why.
            Err(error) => self.note(&request, &error),
        }
    }

    /// Connects a reader and a writer with a target, for `ctcp connect`. Finishes when the target has sent everything
    /// or failed. The end of the reader is passed on, and the target may continue to send after it.
    ///
    /// # Errors
    /// Returns an error if the target cannot be reached.
    pub async fn connect_pipes<R, W>(
        &self,
        mut reader: R,
        writer: W,
        target: &TargetAddress,
    ) -> Result<Spliced, LinkError>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut early = Early::new(&mut reader, &self.link.counters().upstream);
        let Opened { mut stream, connection, .. } =
            self.connect_early(&Request::Connect(target.clone()), &mut early).await?;
        let passed = early.passed();
        let (early, is_a_done) = early.into_rest();
        let options = SpliceOptions { early, is_a_done, is_over_with_b: true };
        let mut pipes = tokio::io::join(reader, writer);
        let spliced = self.join(&mut pipes, &mut stream, options, connection.closed()).await;
        Ok(Spliced { a_to_b: spliced.a_to_b + passed, ..spliced })
    }

    async fn connect(&self, target: &TargetAddress) -> Result<Opened<K::Connection>, LinkError> {
        let mut nobody = tokio::io::empty();
        let mut early = Early::new(&mut nobody, &self.link.counters().upstream);
        let opened = self.connect_early(&Request::Connect(target.clone()), &mut early).await;
        if let Err(error) = &opened {
            self.note(target, error);
        }
        opened
    }

    /// Logs and remembers why a target was not reached. Failures of the link itself are logged by the link, and only
    /// once.
    fn note(&self, target: &impl ToString, error: &LinkError) {
        match error {
            LinkError::Left(_) | LinkError::Unreachable(_) | LinkError::NotAdmitted(_) => {}
            error => self.failures.note(&target.to_string(), &error.to_string()),
        }
    }

    /// Logs, remembers and counts why something that has no target was refused.
    pub(crate) fn on_failure(&self, what: &str, error: &LinkError) {
        self.count_failure(error);
        if !matches!(error, LinkError::Unreachable(_) | LinkError::NotAdmitted(_)) {
            self.failures.note(what, &error.to_string());
        }
    }

    /// Logs and remembers why datagrams were refused.
    pub(crate) fn on_refused(&self, target: &str, reason: &str) {
        self.failures.note(target, reason);
    }

    async fn connect_early<R: AsyncRead + Unpin>(
        &self,
        request: &Request,
        early: &mut Early<'_, R>,
    ) -> Result<Opened<K::Connection>, LinkError> {
        let counters = self.link.counters();
        counters.streams_total.add(1);
        let opened = self.link.request_early(request, early).await;
        if let Err(error) = &opened {
            self.count_failure(error);
            debug!(target = %request, %error, "not connected");
        }
        opened
    }

    fn count_failure(&self, error: &LinkError) {
        let counters = self.link.counters();
        // An application that disconnects is not a failure.
        counters.streams_failed.add(u64::from(!matches!(error, LinkError::Left(_))));
        counters.targets_refused.add(u64::from(error.code() == ReplyCode::NotAllowed));
    }

    async fn carry(&self, mut application: TcpStream, opened: Opened<K::Connection>, options: SpliceOptions) {
        let Opened { mut stream, connection, .. } = opened;
        self.join(&mut application, &mut stream, options, connection.closed()).await;
    }

    async fn join<A: SpliceEnd, B: SpliceEnd, C: Future>(
        &self,
        a: &mut A,
        b: &mut B,
        options: SpliceOptions,
        cut: C,
    ) -> Spliced {
        let counters = self.link.counters();
        let _present = counters.streams_open.enter();
        let meter = Meter { a_to_b: &counters.upstream, b_to_a: &counters.downstream };
        let spliced = splice(a, b, options, meter, cut).await;
        if let Some((end, error)) = &spliced.failure {
            counters.streams_failed.add(1);
            debug!(?end, %error, "a proxied connection was cut");
        }
        spliced
    }
}

/// The response to a program that speaks HTTP to the SOCKS5 port.
const NOT_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
    ctcp: this is the SOCKS5 port; the HTTP proxy is another one\n";

/// Closes the connection after a response: our half first, then further data of the application is read and dropped.
/// Otherwise the kernel would send a reset and discard the response.
pub(crate) async fn close_gently(mut application: TcpStream) {
    let drain = async {
        application.shutdown().await?;
        tokio::io::copy(&mut (&mut application).take(DRAIN_BYTES), &mut tokio::io::sink()).await
    };
    let _ = timeout(DRAIN_TIME, drain).await;
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the application sent no request in time")
}

/// Standard input and output cannot be reset.
impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> SpliceEnd for tokio::io::Join<R, W> {
    fn abort(&mut self) {}
}

#[cfg(test)]
mod tests;
