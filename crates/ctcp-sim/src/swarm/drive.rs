//! Executes a plan.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use ctcp_base::Instant;
use ctcp_baselines::{TCP_NC, TCP_NC_EOT, TCP_NC_PB};
use ctcp_netem::{Change, FULL_PACKET_BYTES, LinkConfig, PathConfig, QueueLimit, Schedule};
use ctcp_proto::{ConnectionError, Role};

use super::plan::{Happening, NetworkPlan, PathHappening, Plan};
use crate::Stop;
use crate::application::Application;
use crate::link::{Direction, Way};
use crate::node::Host;
use crate::topology::Pair;

/// The code with which the swarm closes the connection at the end.
const CLOSE_CODE: u64 = 42;

/// The code with which the swarm closes the connection in the middle.
const MIDDLE_CODE: u64 = 43;

/// How long the client waits before it reconnects after losing a connection.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The longest measured round trip that may prolong a close.
const LONG_ROUND_TRIP: Duration = Duration::from_secs(3);

/// With jitter above this fraction of the round trip, Vegas takes it for a queue.
const VARIES: u32 = 20;

/// The maximum number of connections, more than a network that heals after 20 s can need.
const ATTEMPTS_MAX: u32 = 20;

/// Idle wake-ups of a host allowed per datagram sent or received. A sent datagram can expire, be declared lost and time
/// out.
const IDLE_WAKES_A_DATAGRAM: u64 = 1;

/// Idle wake-ups allowed per second of silence, for time-outs that back off.
const IDLE_WAKES_A_SECOND: u64 = 5;

/// Longer than any run.
const FOREVER: Duration = Duration::from_secs(1 << 20);

/// Packets with coded data that may arrive for nothing over several paths, for each useful one and in all: a path that
/// returns may deliver what was repaired meanwhile. This is twice the worst of 2,000 seeds.
const REDUNDANT_MAX: (u64, u64) = (5, 500);

/// Datagrams that both hosts may send over several paths for each packet with coded data that arrives, and for each
/// second.
const DATAGRAMS_MAX: (u64, u64) = (10, 200);

/// Packets with coded data that arrived on the newest connection, at both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coded {
    /// New degrees of freedom.
    pub(super) useful: u64,
    /// Those that were known already.
    pub(super) redundant: u64,
}

/// A plan being executed.
pub(super) struct Driver<'a> {
    pub(super) pair: Pair,
    pub(super) start: Instant,
    pub(super) attempts: u32,
    plan: &'a Plan,
    moves: u16,
    /// How often one of several paths changed.
    path_changes: u16,
    /// The server has dropped a connection that the client may still consider open.
    may_be_reset: bool,
    /// An application closed the present connection.
    was_closed: bool,
    healed_at: Option<Instant>,
    /// The time from the healing to the end of the script.
    pub(super) took: Duration,
    /// The packets with coded data that arrived by then, and those of them that arrived for nothing.
    pub(super) coded: Coded,
}

impl<'a> Driver<'a> {
    pub(super) fn new(seed: u64, plan: &'a Plan) -> Self {
        let mut pair = pair(seed, plan);
        let simulation = &mut pair.simulation;
        let start = simulation.now();
        for (&link, network) in pair.links.iter().zip(plan.networks()) {
            for direction in [Direction::Forward, Direction::Backward] {
                simulation.set_schedule(link, direction, schedule(network, start, direction));
            }
            simulation.set_mtu(link, network.mtu);
            if let Some(rate) = network.mischief {
                simulation.add_mischief(link, rate);
            }
        }
        if plan.is_noisy {
            simulation.add_noise(pair.client);
            simulation.add_noise(pair.server);
        }
        Self {
            pair,
            start,
            attempts: 0,
            plan,
            moves: 0,
            path_changes: 0,
            healed_at: None,
            took: Duration::ZERO,
            coded: Coded::default(),
            may_be_reset: false,
            was_closed: false,
        }
    }

    /// Runs all phases in order.
    pub(super) fn run(&mut self) -> Result<(), String> {
        self.connect()?;
        for (at, happening) in &self.plan.happenings {
            self.run_to(self.start + *at)?;
            if !self.is_complete() {
                self.let_happen(*happening);
            }
        }
        self.run_to(self.start + self.plan.heals_after)?;
        self.healed_at = Some(self.pair.simulation.now());
        self.heal();
        let limit = self.liveness_limit();
        self.run_to(self.pair.simulation.now() + limit)?;
        self.took = self.pair.simulation.now() - self.healed_at.unwrap_or(self.start);
        if !self.is_complete() {
            return Err(format!(
                "not everything has arrived {limit:.1?} after the network healed: {}",
                self.state()
            ));
        }
        self.coded = self.coded_packets();
        self.check_waste()?;
        self.close()?;
        self.check_wakes()
    }

    /// Checks that little is sent for nothing over several paths. The counts of coded packets are those of the last
    /// connection, so that the bytes of earlier ones must be counted, too.
    fn check_waste(&self) -> Result<(), String> {
        let Coded { useful, redundant } = self.coded;
        if self.plan.further.is_empty() {
            return Ok(());
        }
        let (each, all) = REDUNDANT_MAX;
        if redundant > each * useful + all {
            return Err(format!(
                "{redundant} packets with coded data arrived for nothing, and {useful} that did not"
            ));
        }
        let hosts = [self.pair.client, self.pair.server].map(|id| self.pair.simulation.host(id).counts());
        let sent: u64 = hosts.iter().map(|counts| counts.sent).sum();
        let seconds = (self.pair.simulation.now() - self.start).as_secs() + 5;
        let content = self.pair.simulation.ledger().total_read() / 100;
        let (each, in_a_second) = DATAGRAMS_MAX;
        if sent > each * (useful + redundant) + content + in_a_second * seconds {
            return Err(format!("{sent} datagrams for {useful} useful packets in {seconds} s: {hosts:?}"));
        }
        Ok(())
    }

    fn coded_packets(&self) -> Coded {
        let hosts = [self.pair.client, self.pair.server].map(|id| self.pair.simulation.host(id).stats());
        Coded {
            useful: hosts.iter().map(|stats| stats.symbols_decoded).sum(),
            redundant: hosts.iter().map(|stats| stats.redundant_received).sum(),
        }
    }

    /// Checks the number of idle wake-ups, which would cost energy on a real machine.
    fn check_wakes(&self) -> Result<(), String> {
        let seconds = (self.pair.simulation.now() - self.start).as_secs();
        for id in [self.pair.client, self.pair.server] {
            let host = self.pair.simulation.host(id);
            let counts = host.counts();
            let most = IDLE_WAKES_A_DATAGRAM * (counts.sent + counts.unsent + counts.received)
                + IDLE_WAKES_A_SECOND * (seconds + 1);
            if counts.idle_wakes > most {
                return Err(format!("{} had too many idle wake-ups: {counts:?}", host.name()));
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), String> {
        self.attempts += 1;
        if self.attempts > ATTEMPTS_MAX {
            return Err(format!("{ATTEMPTS_MAX} attempts to connect: {}", self.state()));
        }
        self.pair.connect().map_err(|error| format!("cannot connect: {error}"))
    }

    fn heal(&mut self) {
        let links = self.pair.links.clone();
        for (number, &link) in links.iter().enumerate() {
            self.pair.simulation.heal(link);
            if Some(number) == self.plan.dead {
                let dead = Schedule::default().with_blackout(self.pair.simulation.now(), FOREVER);
                for direction in [Direction::Forward, Direction::Backward] {
                    self.pair.simulation.set_schedule(link, direction, dead.clone());
                }
            }
        }
        if !self.plan.further.is_empty() {
            for number in 0..links.len() {
                self.pair.simulation.set_present(self.pair.client, number, true);
            }
        }
    }

    fn let_happen_to_path(&mut self, number: usize, happening: PathHappening) {
        let (simulation, client) = (&mut self.pair.simulation, self.pair.client);
        self.path_changes += 1;
        let mut address = simulation.host(client).interface(number);
        match happening {
            PathHappening::Rebind => {
                address.set_port(30_000 + self.path_changes);
                simulation.set_interface(client, number, address);
            }
            PathHappening::Leave => simulation.set_present(client, number, false),
            PathHappening::Return => simulation.set_present(client, number, true),
            PathHappening::ReturnElsewhere => {
                let [high, low] = self.path_changes.to_be_bytes();
                address = SocketAddr::from(([10, 100, high, low], address.port()));
                simulation.set_interface(client, number, address);
                simulation.set_present(client, number, true);
                simulation.on_network_change(client);
            }
            PathHappening::Abandon => simulation.abandon_path(client, number),
        }
    }

    fn let_happen(&mut self, happening: Happening) {
        let simulation = &mut self.pair.simulation;
        match happening {
            Happening::Move { changes_host } => {
                self.moves += 1;
                let mut address = simulation.host(self.pair.client).address();
                if changes_host {
                    address.set_ip(IpAddr::from([
                        192,
                        0,
                        2,
                        100 + u8::try_from(self.moves).unwrap_or_default(),
                    ]));
                }
                address.set_port(20_000 + self.moves);
                simulation.set_address(self.pair.client, address);
                // A new port is the work of a NAT, which tells nobody.
                if changes_host {
                    simulation.on_network_change(self.pair.client);
                }
            }
            Happening::Restart => {
                self.may_be_reset = true;
                simulation.restart(self.pair.server, Pair::server_config(&self.plan.server));
            }
            Happening::Close(role) => {
                self.may_be_reset = true;
                self.was_closed = true;
                let closer = if role == Role::Client { self.pair.client } else { self.pair.server };
                simulation.close(closer, MIDDLE_CODE, "enough");
            }
            Happening::Path(number, happening) => self.let_happen_to_path(number, happening),
        }
    }

    /// Runs until `end` or until everything is done. Reconnects whenever a connection is lost.
    fn run_to(&mut self, end: Instant) -> Result<(), String> {
        loop {
            let (client, server) = (self.pair.client, self.pair.server);
            let rest = end - self.pair.simulation.now();
            let stop = self.pair.simulation.run_for(rest, |simulation| {
                Pair::is_complete(simulation, client, server) || is_lost(simulation.host(client))
            });
            match stop {
                Stop::Violation => return Err(self.first_violation()),
                Stop::TimeUp => return Ok(()),
                Stop::Silence => return Err(format!("nothing will ever happen again: {}", self.state())),
                Stop::Done if Pair::is_complete(&self.pair.simulation, client, server) => return Ok(()),
                Stop::Done => self.connect_again(end)?,
            }
        }
    }

    fn connect_again(&mut self, end: Instant) -> Result<(), String> {
        let host = self.pair.simulation.host(self.pair.client);
        let error = last_application(host).and_then(Application::closed).cloned();
        let may_be_lost = match &error {
            // A half-open connection of the server may expire before the client's first sealed packet arrives.
            Some(ConnectionError::HandshakeTimedOut { .. }) => self.is_bad_lately(),
            Some(ConnectionError::Reset) => self.is_bad_lately() || self.may_be_reset,
            Some(ConnectionError::TimedOut) => self.may_miss_a_reset(),
            Some(ConnectionError::ClosedLocally) => self.was_closed,
            Some(ConnectionError::ClosedByPeer(close)) => self.was_closed && close.code == MIDDLE_CODE,
            _ => false,
        };
        if !may_be_lost {
            return Err(format!("the connection is lost: {error:?}; {}", self.state()));
        }
        let pause = RETRY_PAUSE.min(end - self.pair.simulation.now());
        if self.pair.simulation.run_for(pause, |_| false) == Stop::Violation {
            return Err(self.first_violation());
        }
        self.was_closed = false;
        self.connect()
    }

    /// A reset token is valid for one address of the client. If the client moves while the server has no state for it,
    /// or only another path is left, it gets no reset.
    fn may_miss_a_reset(&self) -> bool {
        (self.moves > 0 || !self.plan.further.is_empty()) && self.may_be_reset
    }

    /// Returns whether the network had faults within the last handshake time-out.
    fn is_bad_lately(&self) -> bool {
        let handshake = self.pair.transport.handshake_timeout + Duration::from_secs(2);
        self.healed_at.is_none_or(|healed| self.pair.simulation.now() < healed + handshake)
    }

    fn is_complete(&self) -> bool {
        Pair::is_complete(&self.pair.simulation, self.pair.client, self.pair.server)
    }

    fn close(&mut self) -> Result<(), String> {
        let server_closes = self.plan.closer == Role::Server;
        let (closing, other) = if server_closes {
            (self.pair.server, self.pair.client)
        } else {
            (self.pair.client, self.pair.server)
        };
        if (self.moves > 0 || self.path_changes > 0) && server_closes {
            // A server learns an idle client's new address from its next keep-alive.
            let wait = self.pair.transport.keep_alive.unwrap_or_default() + Duration::from_secs(2);
            if self.pair.simulation.run_for(wait, |_| false) == Stop::Violation {
                return Err(self.first_violation());
            }
        }
        self.pair.simulation.close(closing, CLOSE_CODE, "done");
        // Three probe intervals, which a full queue extends, and half-open connections that were not needed.
        let measured = [closing, other].map(|host| self.pair.simulation.host(host).stats().rtt.smoothed);
        // What they measured before the path changed still counts, but a wrong value must not excuse itself.
        let measured = measured.map(|time| time.min(LONG_ROUND_TRIP));
        let round_trip = measured.into_iter().fold(self.round_trip(), Duration::max);
        let mut limit = Duration::from_secs(10) + 20 * round_trip + 10 * self.queueing_time();
        let closes = self.plan.count(|happening| matches!(happening, Happening::Close(_)));
        if closes > 0 || self.attempts > 1 {
            // The CLOSE of an earlier connection may have been lost, or its client gave it up silently.
            limit += self.plan.server.idle_timeout;
        }
        let (client, server) = (self.pair.client, self.pair.server);
        let stop = self.pair.simulation.run_for(limit, |simulation| {
            [client, server].iter().all(|host| simulation.host(*host).endpoint().connections() == 0)
        });
        match stop {
            Stop::Violation => return Err(self.first_violation()),
            Stop::Done => {}
            _ => return Err(format!("connections left {limit:.1?} after the end: {}", self.state())),
        }
        let ends = [closing, other].map(|host| {
            last_application(self.pair.simulation.host(host))
                .and_then(|application| application.closed().cloned())
        });
        match ends {
            // An earlier close was still in progress, so either side may have closed first.
            [Some(_), Some(_)] if self.was_closed => Ok(()),
            [Some(ConnectionError::ClosedLocally), Some(ConnectionError::ClosedByPeer(close))]
                if close.code == CLOSE_CODE && close.by_application && close.reason == "done" =>
            {
                Ok(())
            }
            other => Err(format!("the ends are {other:?}")),
        }
    }

    /// Returns the longest round trip of all paths.
    fn round_trip(&self) -> Duration {
        self.longest(|config| config.delay + config.jitter)
    }

    /// Returns how long a packet waits at most in the full queues of both directions of a path.
    fn queueing_time(&self) -> Duration {
        self.longest(|config| match config.queue {
            QueueLimit::Packets(packets) => config.rate.time_to_send(packets * FULL_PACKET_BYTES),
            QueueLimit::Bytes(bytes) => config.rate.time_to_send(bytes),
            QueueLimit::Unlimited => Duration::ZERO,
        })
    }

    /// Returns the largest sum of `time` over both directions of a link.
    fn longest(&self, time: impl Fn(&LinkConfig) -> Duration) -> Duration {
        let links = self.pair.links.iter().map(|&link| self.pair.simulation.link(link));
        let both = [Direction::Forward, Direction::Backward];
        links.map(|link| both.iter().map(|&way| time(link.way(way).config())).sum()).max().unwrap_or_default()
    }

    /// Returns how long a healed network may take. This is the sum of:
    /// - the pauses of the script,
    /// - the time of the content at a tenth of the slower direction's rate, or at ten packets of a symbol per round trip
    ///   if that is slower (at one with Vegas on a path that became longer or varies, which it takes for a queue),
    /// - the remainder of time-outs that have grown in a blackout.
    fn liveness_limit(&self) -> Duration {
        let script = &self.plan.script;
        let links = self.pair.links.iter().map(|&link| self.pair.simulation.link(link));
        let ways = links.flat_map(|link| [Direction::Forward, Direction::Backward].map(|way| link.way(way)));
        let rate = ways.map(|way: &Way| way.config().rate).min().unwrap_or_default();
        let symbol = self.plan.client.symbol_size_max.min(self.plan.server.symbol_size_max).min(1_000);
        let packets = u32::try_from(script.size() / u64::from(symbol) + script.streams().count() as u64)
            .unwrap_or(u32::MAX);
        let transfer = 10 * rate.time_to_send(script.size());
        let is_vegas = [TCP_NC, TCP_NC_EOT, TCP_NC_PB].contains(&self.plan.client.profile);
        let is_longer = self.plan.networks().any(|network| !network.delays.is_empty());
        let varies = self.longest(|config| config.jitter) > self.round_trip() / VARIES;
        let in_a_round = if is_vegas && (is_longer || varies) { 1 } else { 10 };
        let windows = self.round_trip() * packets / in_a_round;
        // With small limits: one window per round trip, and streams one after the other.
        let rounds =
            u32::try_from(8 * script.size() / self.plan.bytes_a_round_trip().max(1)).unwrap_or(u32::MAX);
        let limited = self.round_trip() * rounds + self.time_in_turn();
        let silence =
            if self.may_miss_a_reset() { 2 * self.plan.server.idle_timeout } else { Duration::ZERO };
        silence
            + Duration::from_secs(60)
            + 100 * self.round_trip()
            + script.own_time()
            + transfer.max(windows).max(limited)
    }

    /// Returns the time for the streams if the number of open streams is limited.
    fn time_in_turn(&self) -> Duration {
        let most = self.plan.client.streams.min(self.plan.server.streams);
        let streams = self.plan.script.streams().count() as u64;
        if streams <= most {
            return Duration::ZERO;
        }
        let each = self.plan.script.streams().map(|plan| plan.request.own_time() + plan.response.own_time());
        each.sum::<Duration>() + self.round_trip() * u32::try_from(10 * streams).unwrap_or(u32::MAX)
    }

    fn first_violation(&self) -> String {
        self.pair.simulation.violations().next().cloned().unwrap_or_default()
    }

    /// Returns how often a path of the client was opened or closed.
    pub(super) fn path_events(&self) -> u64 {
        let host = self.pair.simulation.host(self.pair.client);
        let all = host.retired().iter().chain(host.peers().map(|peer| &peer.application));
        all.map(Application::path_events).sum()
    }

    /// Describes the state of both hosts for messages.
    fn state(&self) -> String {
        let mut text = String::new();
        for id in [self.pair.client, self.pair.server] {
            let host = self.pair.simulation.host(id);
            let application = last_application(host).map(Application::unfinished).unwrap_or_default();
            let timeout = host.newest().and_then(|peer| peer.connection.poll_timeout());
            let timeout = timeout.map(|(time, kind)| (time - self.pair.simulation.now(), kind));
            text.push_str(&format!(
                "\n  {}: {application}\n    next {timeout:?}, {:?}",
                host.name(),
                host.stats()
            ));
            for path in host.newest().map(|peer| peer.connection.paths()).unwrap_or_default() {
                text.push_str(&format!("\n    {path:?}"));
            }
        }
        text
    }
}

fn pair(seed: u64, plan: &Plan) -> Pair {
    let (path, limits) = (&plan.network.path, [&plan.client, &plan.server]);
    if !plan.further.is_empty() {
        let paths: Vec<PathConfig> = plan.networks().map(|network| network.path.clone()).collect();
        return Pair::several(seed, &paths, limits, &plan.script);
    }
    let make = if plan.network.is_routed { Pair::routed } else { Pair::unequal };
    make(seed, path, limits, &plan.script)
}

fn schedule(network: &NetworkPlan, start: Instant, direction: Direction) -> Schedule {
    let mut schedule = Schedule::default();
    for (from, length, ways) in &network.blackouts {
        if ways[direction as usize] {
            schedule = schedule.with_blackout(start + *from, *length);
        }
    }
    for (at, rate) in &network.rates {
        schedule = schedule.with(start + *at, Change::Rate(*rate));
    }
    for (at, delay) in &network.delays {
        schedule = schedule.with(start + *at, Change::Delay(*delay));
    }
    schedule
}

/// Returns the application of the newest connection, retired or not. Established connections take precedence: if a
/// client moves during the handshake, the server's response to its old address leaves a half-open connection.
fn last_application(host: &Host) -> Option<&Application> {
    let all = host.retired().iter().chain(host.peers().map(|peer| &peer.application));
    all.max_by_key(|application| application.name().map(|name| name.number))
}

/// Returns whether the client has no connection left.
fn is_lost(host: &Host) -> bool {
    host.peers().next().is_none()
}
