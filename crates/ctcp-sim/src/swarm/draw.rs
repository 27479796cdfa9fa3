//! Draws a plan from a seed.

use core::time::Duration;

use ctcp_base::{Prng, Probability, Rate};
use ctcp_baselines::{SPARSE_PROFILE, TCP_NC, TCP_NC_EOT, TCP_NC_PB};
use ctcp_netem::{LinkConfig, LossModel, LossPlace, PathConfig, QueueLimit};
use ctcp_proto::{PathMode, Profile, Role, Suite, TransportConfig};

use super::plan::{Happening, NetworkPlan, PathHappening, Plan, bytes_a_round_trip};
use crate::application::script::{End, FlowPlan, MessagePlan, Pace, Script, StreamPlan};

/// The maximum content of a run in bytes, to keep the swarm fast.
const SIZE_MAX: u64 = 3_000_000;

/// The maximum content of a run as time on the link. At 0.3 Mbit/s a run would otherwise take too long.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(40);

/// The maximum content of a run in round trips, for small windows.
const ROUND_TRIPS_MAX: u64 = 100;

/// Blackouts end before the idle time-out of 30 s can end the connection.
const BLACKOUT_MAX_MILLIS: u64 = 6_000;

/// The order must not change, so that a seed always gives the same plan.
const PROFILES: [Profile; 7] =
    [Profile::DEFAULT, Profile::CTCP, TCP_NC, TCP_NC_EOT, TCP_NC_PB, SPARSE_PROFILE, Profile::TCP];

impl Plan {
    /// Returns the plan of `seed`.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let prng = Prng::new(seed).fork("plan");
        let mut draw = Draw(prng.fork("plan"));
        let profile = PROFILES[draw.below(PROFILES.len() as u64) as usize];
        let heals_after = Duration::from_millis(draw.spread(500, 20_000));
        let mut network = Draw(prng.fork("network")).network(heals_after);
        Draw(prng.fork("places")).places(&mut network);
        let mut limits = Draw(prng.fork("limits"));
        let (mut client, server) = (limits.limits(), limits.limits());
        client.profile = profile;
        let slowest = network.path.forward.rate.min(network.path.backward.rate);
        let slowest = network.rates.iter().map(|(_, rate)| *rate).fold(slowest, Rate::min);
        let window = bytes_a_round_trip(&client).min(bytes_a_round_trip(&server));
        let size_max = SIZE_MAX.min(slowest.bytes_in(TRANSFER_TIME_MAX)).min(ROUND_TRIPS_MAX * window);
        let mut script = Draw(prng.fork("script")).script(size_max, heals_after);
        script.messages = Draw(prng.fork("messages")).messages(slowest);
        Self {
            network,
            further: Vec::new(),
            happenings: Draw(prng.fork("happenings")).happenings(heals_after),
            script,
            client,
            server,
            heals_after,
            dead: None,
            is_noisy: draw.one_in(4),
            closer: if draw.one_in(4) { Role::Server } else { Role::Client },
        }
    }
}

impl Plan {
    /// Returns the plan of `seed` with one to three further paths that come and go. What [`Self::draw`] draws stays, except
    /// for the profiles of TCP/NC, which has no paths: its source counts symbols, not packets.
    #[must_use]
    pub fn draw_paths(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        if [TCP_NC, TCP_NC_EOT, TCP_NC_PB].contains(&plan.client.profile) {
            plan.client.profile = Profile::DEFAULT;
        }
        let prng = Prng::new(seed).fork("paths");
        let mut draw = Draw(prng.fork("paths"));
        let count = 1 + draw.below(3) as usize;
        for number in 1..=count {
            let mut network = Draw(prng.fork(&format!("network {number}"))).network(plan.heals_after);
            Draw(prng.fork(&format!("places {number}"))).places(&mut network);
            plan.further.push(network);
        }
        if draw.one_in(4) {
            plan.server.paths = 1 + draw.below(4) as u8;
        }
        for path in 0..=count {
            let mut draw = Draw(prng.fork(&format!("happenings {path}")));
            plan.happenings.extend(draw.path_happenings(path, plan.heals_after));
        }
        plan.happenings.sort_by_key(|(at, _)| *at);
        // Either side may be one that knows no connection ids for paths.
        plan.client.path_ids = !seed.is_multiple_of(4);
        plan.server.path_ids = seed % 8 < 6;
        let others = [PathMode::Backup, PathMode::Redundant, PathMode::Independent];
        if let Some(mode) = others.get(Draw(prng.fork("mode")).below(6) as usize) {
            plan.client.path_mode = *mode;
        }
        let mut dead = Draw(prng.fork("dead"));
        plan.dead = dead.one_in(4).then(|| 1 + dead.below(count as u64) as usize);
        plan
    }
}

/// Draws all parts of a plan.
struct Draw(Prng);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Draws from `low` to `high`, with the same probability for every octave.
    fn spread(&mut self, low: u64, high: u64) -> u64 {
        let octaves = u64::from((high / low.max(1)).max(1).ilog2()) + 1;
        let start = low << self.below(octaves);
        (start + self.below(start.max(1))).clamp(low, high)
    }

    fn probability(&mut self, high: f64) -> Probability {
        Probability::new(self.0.unit() * high).unwrap_or(Probability::ZERO)
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_micros(self.below(bound * 1_000))
    }

    fn network(&mut self, heals_after: Duration) -> NetworkPlan {
        let whole = u64::try_from(heals_after.as_millis()).unwrap_or(u64::MAX);
        let forward = self.way();
        let backward =
            if self.one_in(3) { self.way() } else { LinkConfig { loss: self.loss(), ..forward.clone() } };
        let blackouts = self.some(3, |draw| {
            let length = draw.spread(50, BLACKOUT_MAX_MILLIS);
            let ways = [[true, true], [true, false], [false, true]][draw.below(3) as usize];
            (draw.millis(whole), Duration::from_millis(length), ways)
        });
        let rates = self.some(6, |draw| (draw.millis(whole), draw.rate()));
        let delays = self.some(6, |draw| (draw.millis(whole), draw.delay()));
        let mtu = self.one_in(5).then(|| 1_200 + self.below(300) as usize);
        let mischief = self.one_in(4).then(|| self.probability(0.5));
        let path = PathConfig { forward, backward };
        NetworkPlan { path, is_routed: false, mischief, mtu, blackouts, rates, delays }
    }

    /// Draws where the server is and where packets are lost.
    fn places(&mut self, network: &mut NetworkPlan) {
        network.is_routed = self.one_in(4);
        for way in [&mut network.path.forward, &mut network.path.backward] {
            if self.one_in(4) {
                way.loss_place = LossPlace::BehindQueue;
            }
        }
    }

    fn happenings(&mut self, heals_after: Duration) -> Vec<(Duration, Happening)> {
        let whole = u64::try_from(heals_after.as_millis()).unwrap_or(u64::MAX);
        let mut all =
            self.some(4, |draw| (draw.millis(whole), Happening::Move { changes_host: draw.one_in(2) }));
        all.extend(self.some(10, |draw| (draw.millis(whole), Happening::Restart)));
        all.extend(self.some(10, |draw| {
            let closer = if draw.one_in(2) { Role::Client } else { Role::Server };
            (draw.millis(whole), Happening::Close(closer))
        }));
        all.sort_by_key(|(at, _)| *at);
        all
    }

    /// Draws what happens to a path. It leaves for at most as long as a blackout lasts. Path 0 changes its port and its
    /// address by [`Happening::Move`].
    fn path_happenings(&mut self, path: usize, heals_after: Duration) -> Vec<(Duration, Happening)> {
        let whole = u64::try_from(heals_after.as_millis()).unwrap_or(u64::MAX);
        let mut all = Vec::new();
        let mut add = |at: Duration, what| all.push((at.min(heals_after), Happening::Path(path, what)));
        for (at, length) in self.some(2, |draw| (draw.millis(whole), draw.spread(10, BLACKOUT_MAX_MILLIS))) {
            let is_elsewhere = path > 0 && self.one_in(3);
            let back = if is_elsewhere { PathHappening::ReturnElsewhere } else { PathHappening::Return };
            add(at, PathHappening::Leave);
            add(at + Duration::from_millis(length), back);
        }
        for at in self.some(4, |draw| draw.millis(whole)) {
            add(at, PathHappening::Abandon);
        }
        for at in self.some(3, |draw| draw.millis(whole)) {
            if path > 0 {
                add(at, PathHappening::Rebind);
            }
        }
        all
    }

    /// Draws the limits of one side, mostly the defaults.
    fn limits(&mut self) -> TransportConfig {
        let keep_alive = Some(Duration::from_secs(1 + self.below(10)));
        let mut limits = TransportConfig { keep_alive, ..TransportConfig::default() };
        if self.one_in(2) {
            return limits;
        }
        limits.symbol_size_max = if self.one_in(4) { self.spread(256, 16_384) } else { 1_428 } as u16;
        limits.symbol_window = self.spread(16, 8_192) as u32;
        limits.block_size = self.spread(1, 512) as u16;
        limits.blocks = self.spread(1, 64) as u16;
        limits.stream_credit = self.spread(2_000, 2 << 20);
        limits.stream_credit_max = limits.stream_credit * (1 + self.0.below(8));
        limits.connection_credit = self.spread(4_000, 16 << 20);
        limits.connection_credit_max = limits.connection_credit * (1 + self.0.below(8));
        limits.streams = self.spread(1, 4_096);
        limits.datagram_size_max = 1_200 + self.below(300) as u16;
        if self.one_in(2) {
            limits.suites = vec![Suite::ChaCha20Poly1305, Suite::Aes256Gcm];
        }
        limits
    }

    /// Draws one to three values with the probability `1 / one_in`, and none otherwise.
    fn some<T>(&mut self, one_in: u64, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        if !self.one_in(one_in) {
            return Vec::new();
        }
        let count = self.below(3) + 1;
        (0..count).map(|_| one(self)).collect()
    }

    fn rate(&mut self) -> Rate {
        Rate::from_bits_per_second(self.spread(300_000, 200_000_000))
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(self.spread(100, 300_000))
    }

    fn way(&mut self) -> LinkConfig {
        let (rate, delay) = (self.rate(), self.delay());
        let jitter = if self.one_in(3) { self.millis(50) } else { Duration::ZERO };
        let products = [0.1, 0.5, 1.0, 1.0, 2.0, 5.0][self.below(6) as usize];
        let queue = match QueueLimit::bandwidth_delay_products(products, rate, 2 * delay) {
            // At least what a window needs, and at most what the model can hold.
            QueueLimit::Packets(packets) => QueueLimit::Packets(packets.clamp(4, 2_000)),
            other => other,
        };
        let mut way = LinkConfig { rate, delay, jitter, queue, loss: self.loss(), ..LinkConfig::default() };
        if self.one_in(3) {
            way.reorder = self.probability(0.2);
            way.reorder_extra = self.millis(60);
        }
        if self.one_in(4) {
            way.duplicate = self.probability(0.2);
        }
        if self.one_in(4) {
            way.corrupt = self.probability(0.1);
        }
        way
    }

    fn loss(&mut self) -> LossModel {
        match self.below(6) {
            0 => LossModel::None,
            1 | 2 => LossModel::Bernoulli(self.probability(0.4)),
            3 => LossModel::Bernoulli(self.probability(0.05)),
            4 => {
                let burst = 1.0 + self.below(20) as f64;
                LossModel::bursts(self.probability(0.4), burst).unwrap_or(LossModel::None)
            }
            _ => {
                let period = Duration::from_millis(self.spread(10, 1_000));
                let on = period.mul_f64(0.4 * self.0.unit());
                LossModel::OnOff { period, on, loss: self.probability(1.0) }
            }
        }
    }

    fn script(&mut self, size_max: u64, heals_after: Duration) -> Script {
        let total = self.spread(1_000.min(size_max), size_max);
        let count = [1, 1, 2, 5, 20, 100][self.below(6) as usize];
        let each = (total / count).max(1);
        let whole = u64::try_from(heals_after.as_millis()).unwrap_or(u64::MAX);
        let mut script = Script::default();
        for _ in 0..count {
            let size = if self.one_in(4) { self.below(each + 1) } else { each };
            let start = if self.one_in(2) { Duration::ZERO } else { self.millis(whole) };
            let plan = self.stream(start, size);
            if self.one_in(5) { script.server.push(plan) } else { script.client.push(plan) }
        }
        script.client.sort_by_key(|plan| plan.start);
        script.server.sort_by_key(|plan| plan.start);
        script
    }

    /// Draws messages for every third network, at most a twentieth of its slowest rate.
    fn messages(&mut self, slowest: Rate) -> Option<MessagePlan> {
        if !self.one_in(3) {
            return None;
        }
        let sizes: Vec<usize> = (0..=self.below(3)).map(|_| self.spread(1, 20_000) as usize).collect();
        let largest = sizes.iter().max().copied().unwrap_or(1) as u64;
        let interval = 20 * slowest.time_to_send(largest + 100).max(Duration::from_micros(100));
        let deadline = Duration::from_millis(self.spread(1, 3_000));
        Some(MessagePlan { count: self.spread(1, 500) as u32, sizes, interval, deadline })
    }

    fn stream(&mut self, start: Duration, size: u64) -> StreamPlan {
        let mut plan = match self.below(4) {
            0 | 1 => StreamPlan::download(start, size),
            2 => StreamPlan::upload(start, size),
            _ => StreamPlan {
                start,
                request: FlowPlan::of(size / 2),
                response: FlowPlan::of(size / 2),
                in_turn: false,
            },
        };
        self.temper(&mut plan.request);
        self.temper(&mut plan.response);
        plan
    }

    /// Sometimes makes a direction slow, or ends it early.
    fn temper(&mut self, flow: &mut FlowPlan) {
        if self.one_in(8) {
            flow.writing = self.pace(flow.size);
        }
        if self.one_in(6) {
            flow.reading = self.pace(flow.size);
        }
        match self.below(16) {
            0 => {
                flow.size = self.below(flow.size + 1);
                flow.end = End::Reset(self.below(1_000));
            }
            1 => flow.stop = Some((self.below(flow.size + 1), self.below(1_000))),
            2 => flow.end = End::Finish(self.millis(2_000)),
            _ => {}
        }
    }

    /// Draws at most forty pauses of at most 200 ms.
    fn pace(&mut self, size: u64) -> Pace {
        let pauses = self.below(40) + 1;
        Pace { chunk: (size / pauses).max(1), pause: self.millis(200) }
    }
}
