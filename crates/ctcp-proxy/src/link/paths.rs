//! The paths of a client's connection: one for each local address or interface, opened and closed as they come and go.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use ctcp::{LocalPath, PREFERENCE_OF_FIRST, PathError, PathId, PathStats};
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use super::address_changes::AddressChanges;
use super::routes::Routes;
use crate::seldom::{Seldom, WARNING_PAUSE};
use crate::target_policy::{Special, kind};

/// How often the system's addresses are read, even if no change of them is noticed.
const LOOK: Duration = Duration::from_secs(1);

/// Changes follow each other: an address, then its routes.
const SETTLED: Duration = Duration::from_millis(20);

/// The shortest pause before a path on which nothing answers is tried again.
pub(super) const RETRY_MIN: Duration = Duration::from_secs(5);

/// A longer pause is this share of the time since the first try. Each try uses one of 255 ids: 90 of them last for ten days.
const RETRY_SHARE: u32 = 8;

/// After this time without an answer a path leads to another address of the server, if it has one.
const DEAD: Duration = Duration::from_secs(30);

/// Where the paths of a client begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChoice {
    /// At this address or interface.
    One(LocalPath),
    /// At every interface that has a route to the server.
    Auto,
}

impl FromStr for PathChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text != "auto" {
            return text.parse().map(Self::One);
        }
        if cfg!(target_os = "linux") {
            Ok(Self::Auto)
        } else {
            Err("`auto` needs Linux: name the addresses of your interfaces".to_owned())
        }
    }
}

impl fmt::Display for PathChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(path) => path.fmt(formatter),
            Self::Auto => formatter.write_str("auto"),
        }
    }
}

/// Opens and closes the paths of one connection.
#[derive(Debug)]
pub(super) struct PathKeeper<'a> {
    choices: &'a [PathChoice],
    endpoint: &'a ctcp::Endpoint,
    connection: &'a ctcp::Connection,
    tries: BTreeMap<IpAddr, Try>,
    /// Since when paths do not answer.
    silent: BTreeMap<PathId, Instant>,
    /// How many paths from a place were given up because they did not answer.
    given_up: BTreeMap<IpAddr, usize>,
    /// The places of paths.
    places: BTreeMap<IpAddr, LocalPath>,
    /// The addresses of the sockets that were added for paths.
    sockets: BTreeSet<IpAddr>,
    /// The index of the interface to which the socket of a local address is bound.
    interfaces: BTreeMap<IpAddr, u32>,
    /// The choices without an address.
    missing: BTreeSet<String>,
    /// Limits the warnings about each place that the user named.
    warned: BTreeMap<String, Seldom>,
    ids_are_used_up: bool,
    /// The user was told that the server allows no further path.
    has_told_of_limit: bool,
    /// Paths that were opened, and when the last one was.
    opened: u32,
    opened_at: Option<Instant>,
    /// The place where the connection began, and its position among the choices when it last was there.
    first: Option<(LocalPath, usize)>,
    /// The server's address with which it began. That of the connection is another one once the first path is closed.
    server: Option<SocketAddr>,
}

/// A path that does not work yet.
#[derive(Clone, Copy, Debug)]
struct Try {
    since: Instant,
    next: Instant,
    /// How many retries there were.
    count: usize,
}

/// Candidate pairs (RFC 8445): the addresses of a place, each with an address of the server to which packets leave from there.
type Candidates = Vec<(IpAddr, SocketAddr)>;

/// The places where paths to a server with these addresses can begin now, in the order of the choices, each once.
pub(super) fn places(choices: &[PathChoice], servers: &[SocketAddr]) -> Vec<LocalPath> {
    let mut places = Vec::<LocalPath>::new();
    let add = |places: &mut Vec<LocalPath>, place| {
        if !places.contains(&place) {
            places.push(place);
        }
    };
    for choice in choices {
        match choice {
            PathChoice::One(path) => add(&mut places, path.clone()),
            PathChoice::Auto => {
                let leading = leading_to(servers).into_iter().map(LocalPath::Interface);
                leading.for_each(|place| add(&mut places, place));
            }
        }
    }
    places
}

/// The interfaces with a route to one of these addresses, those first that the system prefers. All of them if there is none, since the table
/// of routes may be another one.
fn leading_to(servers: &[SocketAddr]) -> Vec<String> {
    let (routes, all) = (Routes::of_system(), interfaces());
    let metric = |name: &String| servers.iter().filter_map(|server| routes.metric(name, server.ip())).min();
    let mut leading: Vec<(u32, String)> =
        all.iter().filter_map(|name| Some((metric(name)?, name.clone()))).collect();
    leading.sort();
    if leading.is_empty() { all } else { leading.into_iter().map(|(_, name)| name).collect() }
}

/// The addresses of the server to use: the one that the user named, and those further ones that lie in the same kind of network or on the
/// internet. A server must not direct its clients to the networks behind them.
fn servers(server: SocketAddr, further: &[SocketAddr]) -> Vec<SocketAddr> {
    // Examples and tests use addresses for documentation like those of hosts.
    let kind = |address: &SocketAddr| kind(address.ip()).filter(|&kind| kind != Special::Documentation);
    let may_use =
        |address: &&SocketAddr| **address != server && [None, kind(&server)].contains(&kind(address));
    [&server].into_iter().chain(further.iter().filter(may_use)).copied().collect()
}

/// The candidate pairs of a place and a server with these addresses.
fn candidates(place: &LocalPath, servers: &[SocketAddr]) -> std::io::Result<Candidates> {
    let (mut candidates, mut failure) = (Vec::new(), None);
    for &server in servers {
        match place.address(server) {
            Ok(local) => candidates.push((local, server)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(failure) if candidates.is_empty() => Err(failure),
        _ => Ok(candidates),
    }
}

/// The names of the network interfaces.
fn interfaces() -> Vec<String> {
    let mut names = LocalPath::interfaces();
    names.sort();
    names
}

/// Tells the server at once when the address of a client with one path changes.
pub(super) async fn tell_of_changes(connection: &ctcp::Connection) {
    let changes = AddressChanges::new();
    loop {
        tokio::select! {
            () = changes.changed() => {}
            _ = connection.closed() => return,
        }
        connection.on_network_change();
        sleep(SETTLED).await;
    }
}

impl<'a> PathKeeper<'a> {
    pub(super) fn new(
        choices: &'a [PathChoice],
        endpoint: &'a ctcp::Endpoint,
        connection: &'a ctcp::Connection,
    ) -> Self {
        Self {
            choices,
            endpoint,
            connection,
            tries: BTreeMap::new(),
            silent: BTreeMap::new(),
            given_up: BTreeMap::new(),
            places: BTreeMap::new(),
            sockets: BTreeSet::new(),
            interfaces: BTreeMap::new(),
            missing: BTreeSet::new(),
            warned: BTreeMap::new(),
            ids_are_used_up: false,
            has_told_of_limit: false,
            opened: 0,
            opened_at: None,
            first: None,
            server: None,
        }
    }

    /// Keeps the paths as they should be until the connection is closed.
    pub(super) async fn keep(mut self) {
        if self.connection.connected().await.is_err() {
            return;
        }
        let changes = AddressChanges::new();
        while !self.connection.is_closed() {
            self.adjust();
            tokio::select! {
                () = sleep(LOOK) => {}
                () = changes.changed() => {
                    // The same address may lead through another network now.
                    self.connection.on_network_change();
                    sleep(SETTLED).await;
                }
                _ = self.connection.closed() => return,
            }
        }
    }

    fn adjust(&mut self) {
        let server = *self.server.get_or_insert_with(|| self.connection.remote_address());
        let servers = servers(server, &self.connection.server_addresses());
        let open = self.connection.paths();
        let mut present = Vec::new();
        for (position, place) in places(self.choices, &servers).into_iter().enumerate() {
            let candidates = match candidates(&place, &servers) {
                Ok(candidates) if !candidates.iter().any(|(local, _)| present.contains(local)) => candidates,
                Ok(_) => {
                    self.note_missing(&place, &"its address is that of another path");
                    continue;
                }
                Err(error) => {
                    self.note_missing(&place, &error);
                    continue;
                }
            };
            present.extend(candidates.iter().map(|(local, _)| *local));
            if let Some((_, at)) = self.first.as_mut().filter(|(first, _)| *first == place) {
                *at = position;
            }
            self.missing.remove(&place.to_string());
            let is_here = |path: &&PathStats| candidates.iter().any(|(local, _)| path.local == Some(*local));
            match open.iter().find(is_here) {
                Some(path) => {
                    if path.is_validated {
                        self.tries.remove(&candidates[0].0);
                        self.first.get_or_insert_with(|| (place.clone(), position));
                        path.local.map(|local| self.places.insert(local, place.clone()));
                    }
                    self.renew_socket(&place, path);
                    self.give_up_if_dead(path, &candidates, &open);
                }
                None => {
                    let may_wait = open.iter().any(PathStats::is_usable);
                    self.open(&place, &candidates, position, may_wait);
                }
            }
        }
        // An address that returns may lead through another network.
        self.tries.retain(|local, _| present.contains(local));
        for path in &open {
            self.close_if_gone(path, &present, &open);
        }
        self.silent.retain(|id, _| open.iter().any(|path| path.id == *id));
    }

    /// Closes a path that has not answered for long, so that the next one from its place leads to another address of the server.
    fn give_up_if_dead(&mut self, path: &PathStats, candidates: &Candidates, open: &[PathStats]) {
        if !path.is_avoided
            || candidates.len() == 1
            || !open.iter().any(|other| other.id != path.id && other.is_usable())
        {
            self.silent.remove(&path.id);
            return;
        }
        let since = *self.silent.entry(path.id).or_insert_with(Instant::now);
        if since.elapsed() >= DEAD && self.connection.abandon_path(path.id).is_ok() {
            *self.given_up.entry(candidates[0].0).or_default() += 1;
            info!(remote = %path.remote, path = path.id.0, "path closed: nothing answers");
        }
    }

    /// Warns that a place the user named has no address: once until it has one, and at most once a minute. The other paths go on.
    fn note_missing(&mut self, place: &LocalPath, error: &dyn fmt::Display) {
        let name = place.to_string();
        let is_new = self.choices.contains(&PathChoice::One(place.clone())) && !self.missing.contains(&name);
        let warned =
            || self.warned.entry(name.clone()).or_insert_with(|| Seldom::new(WARNING_PAUSE)).is_due();
        if let Some(suppressed) = is_new.then(warned).flatten() {
            self.missing.insert(name);
            warn!(%place, %error, suppressed, "this interface or address cannot be used for a path now");
        } else {
            debug!(%place, %error, "this interface or address cannot be used for a path now");
        }
    }

    /// Opens a path from a place to one of the server's addresses. Each place begins with another one, so that the paths also differ at the
    /// server, and each try takes the next. It `may_wait`, so that ids last, while another path works.
    fn open(&mut self, place: &LocalPath, candidates: &Candidates, position: usize, may_wait: bool) {
        let now = Instant::now();
        let earlier = self.tries.get(&candidates[0].0).copied();
        let is_early = may_wait && self.opened_at.is_some_and(|at| now < at + pause_of_ids(self.opened));
        if is_early || earlier.is_some_and(|earlier| now < earlier.next) {
            return;
        }
        let tried = earlier.unwrap_or(Try { since: now, next: now, count: 0 });
        let pause = RETRY_MIN.max((now - tried.since) / RETRY_SHARE);
        let count = earlier.map_or(0, |earlier| earlier.count + 1);
        let given_up = self.given_up.get(&candidates[0].0).copied().unwrap_or_default();
        let (local, remote) = candidates[(position + given_up + count) % candidates.len()];
        // What was not sent is no try.
        self.tries.insert(candidates[0].0, Try { next: now + RETRY_MIN, ..tried });
        let socket = place.bind(remote).and_then(|socket| self.endpoint.add_socket(socket));
        if let Err(error) = socket {
            debug!(%place, %error, "no socket for a path");
            return;
        }
        self.sockets.insert(local);
        self.interfaces.extend(place.interface_index().map(|index| (local, index)));
        let first = self.first.as_ref().map_or(0, |&(_, position)| position);
        match self.connection.add_path(local, remote, preference(position, first)) {
            Ok(id) => {
                self.opened += 1;
                self.opened_at = Some(now);
                self.tries.insert(candidates[0].0, Try { next: now + pause, count, ..tried });
                info!(%place, %local, %remote, path = id.0, "new path");
            }
            Err(error @ PathError::IdsUsedUp) if !core::mem::replace(&mut self.ids_are_used_up, true) => {
                warn!(%place, %error, "no new path until the client connects again");
            }
            Err(error @ PathError::TooMany) if !core::mem::replace(&mut self.has_told_of_limit, true) => {
                warn!(%place, %error, "no new path from there while the others are open");
            }
            Err(error) => debug!(%place, %error, "no new path"),
        }
    }

    /// Replaces the socket of a path if its interface was removed and another one has its name and address. The old socket sends nothing.
    fn renew_socket(&mut self, place: &LocalPath, path: &PathStats) {
        let (Some(local), Some(index)) = (path.local, place.interface_index()) else { return };
        if *self.interfaces.entry(local).or_insert(index) == index {
            return;
        }
        let renewed = place.bind(path.remote).and_then(|socket| {
            if self.sockets.contains(&local) {
                self.endpoint.add_socket(socket).map(drop)
            } else {
                self.endpoint.rebind_to(socket)
            }
        });
        match renewed {
            Ok(()) => {
                self.interfaces.insert(local, index);
                self.connection.on_network_change();
                info!(%place, %local, path = path.id.0, "new socket: the interface was replaced");
            }
            Err(error) => debug!(%place, %error, "no new socket for a path"),
        }
    }

    /// Closes a path whose address the machine no longer has, if another one works. An address that is only no longer preferred, such as an
    /// old temporary one of IPv6, is used until the place has a path from its new address.
    fn close_if_gone(&mut self, path: &PathStats, present: &[IpAddr], open: &[PathStats]) {
        let Some(local) = path.local.filter(|local| !present.contains(local)) else { return };
        let place = self.places.get(&local);
        let is_of_place = |other: &PathStats| {
            other.local.is_some_and(|other| present.contains(&other) && self.places.get(&other) == place)
        };
        let is_replaced =
            open.iter().any(|other| other.id != path.id && other.is_usable() && is_of_place(other));
        if !is_replaced && is_still_here(local) {
            return;
        }
        if !present.is_empty() && self.connection.abandon_path(path.id).is_ok() {
            self.endpoint.remove_socket(local);
            info!(%local, path = path.id.0, "path closed: its address is gone");
        }
    }
}

/// Whether the machine has this address.
fn is_still_here(local: IpAddr) -> bool {
    std::net::UdpSocket::bind((local, 0)).is_ok()
}

/// The sockets of a connection that is over would receive what belongs to the next one. One that is still open has to say on its paths that it
/// ends.
impl Drop for PathKeeper<'_> {
    fn drop(&mut self) {
        if !self.connection.is_closed() {
            return;
        }
        self.sockets.iter().for_each(|&local| self.endpoint.remove_socket(local));
    }
}

/// The least time between two new paths after so many of them, so that the ids of a connection last for three days. An interface that comes
/// and goes every two seconds would otherwise use them up in ten minutes.
fn pause_of_ids(opened: u32) -> Duration {
    Duration::from_secs(match opened {
        0..64 => 0,
        64..128 => 60,
        128..192 => 600,
        _ => 3_600,
    })
}

/// The preference of the path at a position among the choices, if the connection began at the position `first`.
pub(super) fn preference(position: usize, first: usize) -> u8 {
    let preference = usize::from(PREFERENCE_OF_FIRST) + position;
    u8::try_from(preference.saturating_sub(first)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
