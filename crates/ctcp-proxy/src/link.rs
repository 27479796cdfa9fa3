//! The forward proxy's connection to its server, which reconnects automatically.
//!
//! ```text
//!            +------------------------- lost --------------------------+
//!            v                                                         |
//!   Connecting --- resolve the name, try its addresses --- up ---> Connected
//!     ^    |
//!     +----+ failed: wait 0, 100 ms, 200 ms .. 2 s, .. 15 s if the server refused
//! ```
//!
//! The name is resolved for every attempt, so a server that moved is found. The first attempt after a loss is made at
//! once, unless the lost connection was so short that this would loop. While there is no connection, new requests wait
//! for [`LinkTimes::wait`] and then fail with the last reason. If the server has refused, they fail at once; attempts
//! continue, since the refusal may be lifted. When a connection is lost, requests being served get the data that had
//! arrived, and then fail.

mod address_changes;
mod connector;
mod paths;
mod routes;
mod tickets;
mod via;

use core::convert::Infallible;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::future::pending;
use std::io;
use std::sync::Arc;

use tokio::io::AsyncRead;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{debug, info, warn};

use crate::coded::{CodedConnection, CodedStream};
use crate::counters::Counters;
use crate::early::Early;
use crate::request::{HeadError, Reply, ReplyCode, Request};
use crate::traffic::Traffic;
use crate::unanswered::Unanswered;

pub use connector::{CtcpConnector, SERVER_ADDRESSES_MAX, ServerAddress};
pub use paths::PathChoice;
pub use tickets::Tickets;
pub use via::{Via, Ways};

/// The time-outs and pauses of the link.
#[derive(Clone, Copy, Debug)]
pub struct LinkTimes {
    /// How long new requests wait for a connection.
    pub wait: Duration,
    /// How long the server may take to answer a request; in that time it resolves and connects.
    pub reply: Duration,
    /// The first pause after a failed attempt; it doubles each time.
    pub retry_first: Duration,
    /// The longest pause.
    pub retry_longest: Duration,
    /// The longest pause after a refusal, which will not change without action at the server. When a request arrives
    /// the pause ends early, but not before [`Self::retry_longest`].
    pub retry_refused: Duration,
    /// A connection that lived shorter than this is followed by a pause.
    pub young: Duration,
}

impl Default for LinkTimes {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(5),
            reply: Duration::from_secs(30),
            retry_first: Duration::from_millis(100),
            retry_longest: Duration::from_secs(2),
            retry_refused: Duration::from_secs(15),
            young: Duration::from_secs(1),
        }
    }
}

/// Connects to the server. Each call is one attempt and may take long.
pub trait Connector: Send + Sync + 'static {
    /// The type of its connections.
    type Connection: CodedConnection;

    /// The address of the server as configured.
    fn server(&self) -> String;

    /// Makes one attempt. The connection may be usable before the handshake is complete.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, ConnectFailure>> + Send;

    /// Waits until the handshake of a connection is complete.
    fn confirm(
        &self,
        _connection: &Self::Connection,
    ) -> impl Future<Output = Result<(), ConnectFailure>> + Send {
        async { Ok(()) }
    }

    /// Runs while a connection is open, and may end before it.
    fn attend(&self, _connection: &Self::Connection) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectFailure {
    /// A sentence for people.
    pub reason: String,
    /// How the server was involved.
    pub kind: FailureKind,
}

/// How the server was involved in a failed attempt. Later variants are more informative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// Nothing was sent to the server.
    NotSent,
    /// The server did not answer.
    NoAnswer,
    /// It answered, and may accept us later: it is full or busy.
    Busy,
    /// It refused, and will refuse until its configuration changes: requests need not wait.
    Refusal,
}

impl From<String> for ConnectFailure {
    /// A failure without any answer of a server.
    fn from(reason: String) -> Self {
        Self { reason, kind: FailureKind::NoAnswer }
    }
}

/// The log target of failed attempts. It is separate because a command that gives up reports the failure itself, as an
/// error.
const UNCONNECTED: &str = "ctcp_proxy::link::unconnected";

/// The state of the link.
#[derive(Clone, Debug)]
pub enum LinkState<C> {
    /// Not connected; attempts continue.
    Connecting {
        /// Failed attempts since the last connection.
        failures: u32,
        /// Why the last attempt failed, or the connection ended.
        last_error: Option<String>,
        /// How the server was involved.
        kind: FailureKind,
    },
    /// Connected.
    Connected {
        /// The connection.
        connection: C,
        /// Its number, counted from 1.
        number: u64,
    },
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// There is no connection to the server; contains the last reason.
    #[error("the ctcp server is not reachable: {0}")]
    Unreachable(String),
    /// The server refuses this client until its configuration changes; contains the reason.
    #[error("no connection to the ctcp server: {0}")]
    NotAdmitted(String),
    /// The connection was lost before the server answered.
    #[error("the connection to the ctcp server was lost: {0}")]
    Lost(#[source] io::Error),
    /// The server's reply was invalid.
    #[error("the ctcp server sent an invalid reply: {0}")]
    BadReply(#[source] HeadError),
    /// The server did not answer in time.
    #[error("the ctcp server did not answer in time")]
    Silent,
    /// The application failed before the server answered.
    #[error("the application is gone: {0}")]
    Left(#[source] io::Error),
    /// The server refused the request, with its code and text.
    #[error("{0}")]
    Refused(Reply),
}

impl LinkError {
    /// The corresponding reply code.
    #[must_use]
    pub fn code(&self) -> ReplyCode {
        match self {
            Self::Refused(reply) => reply.code,
            Self::Silent => ReplyCode::TimedOut,
            Self::Unreachable(_) | Self::NotAdmitted(_) => ReplyCode::NetworkUnreachable,
            Self::Lost(_) | Self::BadReply(_) | Self::Left(_) => ReplyCode::GeneralFailure,
        }
    }
}

impl From<HeadError> for LinkError {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::Stream(error) => Self::Lost(error),
            error => Self::BadReply(error),
        }
    }
}

/// A stream whose request the server accepted.
pub struct Opened<C: CodedConnection> {
    /// The stream, positioned after the reply.
    pub stream: C::Stream,
    /// The connection it belongs to.
    pub connection: C,
    /// The reply.
    pub reply: Reply,
}

/// The link to the server. Dropping it closes the connection.
pub struct ServerLink<K: Connector> {
    server: String,
    state: watch::Receiver<LinkState<K::Connection>>,
    times: LinkTimes,
    counters: Arc<Counters>,
    traffic: Arc<Traffic>,
    wanted: Arc<Notify>,
    keeper: AbortHandle,
}

impl<K: Connector> Drop for ServerLink<K> {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl<K: Connector> ServerLink<K> {
    /// Starts connecting, on the current tokio runtime.
    pub fn start(connector: K, times: LinkTimes, counters: Arc<Counters>) -> Self {
        let (publish, state) = watch::channel(LinkState::Connecting {
            failures: 0,
            last_error: None,
            kind: FailureKind::NoAnswer,
        });
        let server = connector.server();
        let (traffic, wanted) = <(Arc<Traffic>, Arc<Notify>)>::default();
        let shared = (counters.clone(), traffic.clone(), wanted.clone());
        let keeper = tokio::spawn(keep_connected(connector, times, publish, shared)).abort_handle();
        Self { server, state, times, counters, traffic, wanted, keeper }
    }

    /// The address of the server as configured.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The current state of the link; `changed` on the receiver waits for an update.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<LinkState<K::Connection>> {
        self.state.clone()
    }

    /// The counters of the link and its users.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The statistics of its connections, which continue over reconnects.
    #[must_use]
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`] after `patience`, [`LinkError::NotAdmitted`] as soon as the server has refused.
    pub async fn connected(&self, patience: Duration) -> Result<K::Connection, LinkError> {
        self.connected_until(Instant::now() + patience).await.map(|(connection, _)| connection)
    }

    /// Waits for a connection as long as requests do.
    ///
    /// # Errors
    /// As for [`Self::connected`].
    pub(crate) async fn connected_in_time(&self) -> Result<(), LinkError> {
        self.connected(self.times.wait).await.map(|_| ())
    }

    async fn connected_until(&self, end: Instant) -> Result<(K::Connection, u64), LinkError> {
        let mut state = self.state.clone();
        let is_decided = |state: &LinkState<_>| match state {
            LinkState::Connected { .. } => true,
            LinkState::Connecting { kind, .. } => *kind == FailureKind::Refusal,
        };
        let found = timeout_at(end, state.wait_for(is_decided)).await;
        if let Ok(Ok(state)) = found
            && let LinkState::Connected { connection, number } = &*state
        {
            return Ok((connection.clone(), *number));
        }
        self.wanted.notify_one();
        Err(self.unreachable())
    }

    fn unreachable(&self) -> LinkError {
        match &*self.state.borrow() {
            LinkState::Connecting { last_error: Some(error), kind: FailureKind::Refusal, .. } => {
                LinkError::NotAdmitted(error.clone())
            }
            LinkState::Connecting { last_error: Some(error), .. } => LinkError::Unreachable(error.clone()),
            LinkState::Connecting { .. } => LinkError::Unreachable("no answer yet".to_owned()),
            LinkState::Connected { .. } => {
                LinkError::Unreachable("the limit of open streams is reached".to_owned())
            }
        }
    }

    /// Opens a stream; waits for a connection and for the server's limit of streams.
    async fn open(&self, end: Instant) -> Result<(K::Connection, u64, StreamOf<K>), LinkError> {
        loop {
            let (connection, number) = self.connected_until(end).await?;
            match timeout_at(end, connection.open()).await {
                Ok(Ok(stream)) => return Ok((connection, number, stream)),
                Ok(Err(_)) => self.replaced(number, end).await?,
                Err(_) => return Err(self.unreachable()),
            }
        }
    }

    /// Waits until the link has noticed that a connection is lost.
    async fn replaced(&self, over: u64, end: Instant) -> Result<(), LinkError> {
        let mut state = self.state.clone();
        let is_new =
            |state: &LinkState<_>| !matches!(state, LinkState::Connected { number, .. } if *number == over);
        match timeout_at(end, state.wait_for(is_new)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(self.unreachable()),
        }
    }

    /// Opens a stream, sends the request and waits for the reply. If the connection is lost before the reply (for
    /// example because the server restarted), the request is repeated on the next one: none of the application's data
    /// has been sent yet.
    ///
    /// # Errors
    /// See [`LinkError`]; an unsuccessful reply is [`LinkError::Refused`].
    pub async fn request(&self, request: &Request) -> Result<Opened<K::Connection>, LinkError> {
        self.request_and(request, |_| {}).await
    }

    /// The same; `on_asked` learns the connection as soon as the request is on its way and messages can follow it, each time it is sent.
    ///
    /// # Errors
    /// As for [`Self::request`].
    pub(crate) async fn request_and(
        &self,
        request: &Request,
        mut on_asked: impl FnMut(&K::Connection),
    ) -> Result<Opened<K::Connection>, LinkError> {
        let mut nobody = tokio::io::empty();
        let mut early = Early::new(&mut nobody, &self.counters.upstream);
        self.exchange(request, &mut early, &mut on_asked).await
    }

    /// The same for an application that may send before the reply. If it did and anything came from the server meanwhile, a
    /// lost connection is an error even if the server had only restarted, because the data may have had an effect.
    ///
    /// # Errors
    /// As for [`Self::request`], and [`LinkError::Left`].
    pub async fn request_early<R: AsyncRead + Unpin>(
        &self,
        request: &Request,
        early: &mut Early<'_, R>,
    ) -> Result<Opened<K::Connection>, LinkError> {
        self.exchange(request, early, &mut |_| {}).await
    }

    async fn exchange<R: AsyncRead + Unpin>(
        &self,
        request: &Request,
        early: &mut Early<'_, R>,
        on_asked: &mut impl FnMut(&K::Connection),
    ) -> Result<Opened<K::Connection>, LinkError> {
        let end = Instant::now() + self.times.wait;
        loop {
            let (connection, number, mut stream) = self.open(end).await?;
            let heard = connection.health().received;
            let was_established = AtomicBool::new(false);
            let told = async {
                connection.established().await;
                was_established.store(true, Ordering::Relaxed);
                on_asked(&connection);
            };
            match self.ask(&mut stream, request, early, told).await {
                Ok(reply) if reply.is_success() => return Ok(Opened { stream, connection, reply }),
                Ok(reply) => return Err(LinkError::Refused(reply)),
                Err(LinkError::Lost(error)) => {
                    debug!(%error, "no reply, the stream is lost");
                    let is_unheard = connection.health().received == heard;
                    if self.is_alive(&connection).await || Instant::now() >= end {
                        return Err(LinkError::Lost(error));
                    }
                    // A server that restarted while the connection was idle got nothing of it. One that forwarded the data
                    // and went down before its acknowledgement left gets it twice (decision 0042). A handshake that failed
                    // says nothing: with a ticket the data left with its first packet.
                    let may_repeat = is_unheard && was_established.load(Ordering::Relaxed);
                    if early.passed() > 0 && !(may_repeat && early.rewind()) {
                        return Err(LinkError::Lost(error));
                    }
                    self.replaced(number, end).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens a stream, sends the request and returns without waiting for the reply. The first read brings the reply.
    ///
    /// # Errors
    /// As for [`Self::request`], without the reply's.
    pub(crate) async fn request_unanswered(
        &self,
        request: &Request,
    ) -> Result<Unanswered<StreamOf<K>>, LinkError> {
        let end = Instant::now() + self.times.wait;
        loop {
            let (connection, number, mut stream) = self.open(end).await?;
            match request.write(&mut stream).await {
                Ok(()) => return Ok(Unanswered::new(stream, self.times.reply)),
                Err(error) if self.is_alive(&connection).await => return Err(LinkError::Lost(error)),
                Err(_) => self.replaced(number, end).await?,
            }
        }
    }

    /// Returns true if there is a connection now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(&*self.state.borrow(), LinkState::Connected { .. })
    }

    /// Returns true if only the stream failed and not its connection.
    async fn is_alive(&self, connection: &K::Connection) -> bool {
        timeout(Duration::ZERO, connection.closed()).await.is_err()
    }

    async fn ask<R: AsyncRead + Unpin>(
        &self,
        stream: &mut StreamOf<K>,
        request: &Request,
        early: &mut Early<'_, R>,
        told: impl Future<Output = ()>,
    ) -> Result<Reply, LinkError> {
        let exchange = async {
            stream.set_low_latency(request.wants_low_latency());
            request.write(stream).await.map_err(LinkError::Lost)?;
            let (mut reader, mut writer) = tokio::io::split(&mut *stream);
            let told = async {
                told.await;
                pending::<Infallible>().await
            };
            let reply = tokio::select! {
                biased;
                never = told => match never {},
                reply = Reply::read(&mut reader) => reply,
                error = early.pass_on(&mut writer) => return Err(LinkError::Left(error)),
            };
            reply.map_err(LinkError::from)
        };
        match timeout(self.times.reply, exchange).await {
            Ok(answer) => answer,
            Err(_) => {
                stream.reset(crate::request::stream_code::ABORTED);
                Err(LinkError::Silent)
            }
        }
    }
}

type StreamOf<K> = <<K as Connector>::Connection as CodedConnection>::Stream;

async fn keep_connected<K: Connector>(
    connector: K,
    times: LinkTimes,
    publish: watch::Sender<LinkState<K::Connection>>,
    (counters, traffic, wanted): (Arc<Counters>, Arc<Traffic>, Arc<Notify>),
) {
    let (mut failures, mut number) = (0u32, 0);
    let mut said = None;
    loop {
        let mut was_refused = false;
        let attempt = async {
            let connection = connector.connect().await?;
            number += 1;
            publish.send_replace(LinkState::Connected { connection: connection.clone(), number });
            connector.confirm(&connection).await.map(|()| connection)
        };
        match attempt.await {
            Ok(connection) => {
                let up = {
                    let connection = connection.clone();
                    traffic.enter(move || connection.stats())
                };
                let since = Instant::now();
                counters.connections_total.add(1);
                let present = counters.connections.enter();
                info!("connected to the server");
                let attend = async {
                    connector.attend(&connection).await;
                    pending::<Infallible>().await
                };
                let why = tokio::select! {
                    why = connection.closed() => why,
                    never = attend => match never {},
                };
                drop((present, up));
                warn!(reason = why, "the connection to the server is lost, connecting again");
                failures = if since.elapsed() < times.young { failures.saturating_add(1) } else { 0 };
                said = None;
                publish.send_replace(LinkState::Connecting {
                    failures,
                    last_error: Some(why),
                    kind: FailureKind::NoAnswer,
                });
            }
            Err(ConnectFailure { reason, kind }) => {
                failures = failures.saturating_add(1);
                was_refused = kind == FailureKind::Refusal;
                // Logged once for each reason.
                if said.as_ref() != Some(&reason) {
                    warn!(target: UNCONNECTED, "no connection to the server, trying again until there is one: {reason}");
                    said = Some(reason.clone());
                }
                debug!(failures, "no connection to the server");
                publish.send_replace(LinkState::Connecting { failures, last_error: Some(reason), kind });
            }
        }
        if let Some(doublings) = failures.checked_sub(1) {
            let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
            let pause = times.retry_first.saturating_mul(factor);
            sleep(pause.min(times.retry_longest)).await;
            if was_refused {
                // After a refusal the pause is longer, unless a request arrives.
                let rest = pause.min(times.retry_refused).saturating_sub(times.retry_longest);
                let _ = timeout(rest, wanted.notified()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
