//! Connects to targets: a name is resolved once, every address is checked, and only checked addresses are used.
//!
//! ```text
//!  target -- name? --> resolve (one lookup) --> policy, each address --> connect, in order, first wins
//!                                                 none passes: NotAllowed
//! ```
//!
//! A lookup of the system's resolver cannot be cancelled: it occupies its thread until it ends, even if its caller has
//! given up. So simultaneous lookups are limited, and each client has a share of them. Slow names then block only the
//! client that requested them.
//!
//! There is no second resolution between check and connect, so a name whose answer changes in between (DNS rebinding)
//! gains nothing. If a name has both forbidden and allowed addresses, the allowed ones are used.

use core::fmt;
use core::pin::Pin;
use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::address::{Host, TargetAddress};
use crate::request::ReplyCode;
use crate::shares::Shares;
use crate::target_policy::{Refusal, TargetPolicy};

mod explanation;

/// The maximum number of addresses tried per name. Clients have given up before further ones would be tried.
pub const ADDRESSES_MAX: usize = 16;

/// Simultaneous lookups. Each occupies a thread of the blocking pool (512 in all) until the system's resolver answers.
pub const LOOKUPS_MAX: usize = 128;

/// Simultaneous lookups for one client (one public key). A page of a browser has tens of names, and most answers take
/// milliseconds.
pub const LOOKUPS_PER_CLIENT_MAX: usize = 16;

/// How long each step of connecting to a target may take.
#[derive(Clone, Copy, Debug)]
pub struct DialTimes {
    /// Resolving the name, including the wait for a free slot.
    pub resolve: Duration,
    /// Connecting to one address while further addresses remain.
    pub attempt: Duration,
    /// Connecting in total.
    pub connect: Duration,
}

impl Default for DialTimes {
    /// Shorter than the time-outs of common clients (curl waits 5 minutes, browsers 20 to 30 seconds), and longer than
    /// three SYNs (0, 1 and 3 s).
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(5),
            attempt: Duration::from_secs(4),
            connect: Duration::from_secs(10),
        }
    }
}

/// Resolves names. A trait, so that a test can change the answer between two lookups.
pub trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of a name, best first. `client` is the client that requested it.
    fn resolve<'a>(&'a self, client: &'a str, name: &'a str) -> Resolving<'a>;
}

/// The future answer of a resolver.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A blocking lookup like the operating system's: it may take long and cannot be cancelled.
type Lookup = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// The resolver of the operating system.
pub struct SystemResolver {
    lookup: Arc<Lookup>,
    shares: Shares,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new(Arc::new(|name: &str| {
            Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
        }))
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SystemResolver").field("shares", &self.shares).finish_non_exhaustive()
    }
}

impl SystemResolver {
    fn new(lookup: Arc<Lookup>) -> Self {
        Self { lookup, shares: Shares::new(LOOKUPS_MAX, LOOKUPS_PER_CLIENT_MAX) }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, client: &'a str, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let place = self.shares.among_all(self.shares.own(client).await).await;
            let (lookup, name) = (self.lookup.clone(), name.to_owned());
            let work = move || {
                let _place = place; // held until the system answers, even if the caller has given up
                lookup(&name)
            };
            tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
        })
    }
}

/// Why a target was not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The name has no address, or the resolver failed.
    #[error("the server could not resolve the name: {0}")]
    Unresolved(#[source] io::Error),
    /// The policy forbids every address of the target.
    #[error("{0}")]
    Refused(Refusal),
    /// The last address that was tried failed.
    #[error("the server could not connect: {0}")]
    Connect(#[source] io::Error),
}

impl DialError {
    /// Returns true if the server itself had no descriptor or memory left.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::Unresolved(error) | Self::Connect(error) => is_exhausted(error),
            Self::Refused(Refusal::Unchecked(code)) => is_exhausted(&io::Error::from_raw_os_error(*code)),
            Self::Refused(_) => false,
        }
    }

    /// The code of the reply to the client.
    #[must_use]
    pub fn reply_code(&self) -> ReplyCode {
        match self {
            Self::Refused(Refusal::Unchecked(_)) => ReplyCode::GeneralFailure,
            Self::Refused(_) => ReplyCode::NotAllowed,
            Self::Unresolved(error) if error.kind() == io::ErrorKind::TimedOut => ReplyCode::TimedOut,
            Self::Unresolved(_) => ReplyCode::HostUnreachable,
            Self::Connect(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => ReplyCode::ConnectionRefused,
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                    ReplyCode::NetworkUnreachable
                }
                io::ErrorKind::HostUnreachable => ReplyCode::HostUnreachable,
                io::ErrorKind::TimedOut => ReplyCode::TimedOut,
                io::ErrorKind::PermissionDenied => ReplyCode::NotAllowed,
                _ => ReplyCode::GeneralFailure,
            },
        }
    }
}

/// `ENFILE` and `EMFILE` of every Unix: the system's or the process's descriptors are used up.
#[cfg(unix)]
const OUT_OF_DESCRIPTORS: [i32; 2] = [23, 24];
/// `WSAEMFILE`.
#[cfg(not(unix))]
const OUT_OF_DESCRIPTORS: [i32; 1] = [10024];

/// Returns true if a call failed because descriptors or memory were used up.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
        || error.raw_os_error().is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code))
}

/// Connects to targets: resolver, policy, time-outs.
pub struct Dialer {
    resolver: Box<dyn Resolve>,
    policy: TargetPolicy,
    times: DialTimes,
}

impl Dialer {
    /// Creates a dialer with the operating system's resolver.
    #[must_use]
    pub fn new(policy: TargetPolicy) -> Self {
        Self { resolver: Box::new(SystemResolver::default()), policy, times: DialTimes::default() }
    }

    /// Replaces the resolver.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Box::new(resolver);
        self
    }

    /// Replaces the time-outs.
    #[must_use]
    pub fn with_times(mut self, times: DialTimes) -> Self {
        self.times = times;
        self
    }

    /// Connects to a target on behalf of a client. `client` is the peer's name; lookups count towards its share.
    ///
    /// # Errors
    /// See [`DialError`].
    pub async fn connect(&self, client: &str, target: &TargetAddress) -> Result<TcpStream, DialError> {
        let addresses = self.allowed_addresses(client, target).await?;
        let end = Instant::now() + self.times.connect;
        let mut last = DialError::Connect(io::ErrorKind::TimedOut.into());
        for (index, address) in addresses.iter().enumerate() {
            let is_last = index + 1 == addresses.len();
            let until = if is_last { end } else { end.min(Instant::now() + self.times.attempt) };
            match timeout_at(until, TcpStream::connect(SocketAddr::new(*address, target.port))).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true); // the coded side decides how to batch data
                    return Ok(stream);
                }
                Ok(Err(error)) => last = DialError::Connect(error),
                Err(_) => last = DialError::Connect(timed_out("no answer from the target")),
            }
        }
        Err(last)
    }

    /// Checks an address that a client named itself.
    pub(crate) fn check(&self, address: IpAddr, port: u16) -> Result<(), Refusal> {
        self.policy.check(None, address, port)
    }

    /// Returns the addresses of the target that pass the policy, at least one.
    pub(crate) async fn allowed_addresses(
        &self,
        client: &str,
        target: &TargetAddress,
    ) -> Result<Vec<IpAddr>, DialError> {
        let (name, addresses) = match &target.host {
            Host::Address(address) => (None, vec![*address]),
            Host::Name(name) => (Some(name.as_str()), self.resolve(client, name).await?),
        };
        let mut refusal = None;
        let mut allowed = Vec::new();
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            match self.policy.check(name, address, target.port) {
                Ok(()) if allowed.contains(&address) => {}
                Ok(()) => allowed.push(address),
                Err(why) => refusal = Some(why),
            }
        }
        match refusal {
            _ if !allowed.is_empty() => Ok(allowed),
            Some(why) => Err(DialError::Refused(why)),
            None => Err(DialError::Unresolved(io::Error::new(io::ErrorKind::NotFound, "it has no address"))),
        }
    }

    async fn resolve(&self, client: &str, name: &str) -> Result<Vec<IpAddr>, DialError> {
        match timeout(self.times.resolve, self.resolver.resolve(client, name)).await {
            Ok(answer) => answer.map_err(DialError::Unresolved),
            Err(_) => Err(DialError::Unresolved(timed_out("no answer from the resolver"))),
        }
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dialer").field("policy", &self.policy).field("times", &self.times).finish()
    }
}

fn timed_out(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

#[cfg(test)]
mod tests;
