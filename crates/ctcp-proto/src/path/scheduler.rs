//! Which path sends what: each symbol goes where it is useful when it arrives.
//!
//! ```text
//!   validated paths, ranked by the round trip of a packet sent now (in profile `low-latency` by how late it may be); those to avoid last
//!
//!   first   everything: control, repairs, new symbols, and latency-sensitive data (messages, small writes)
//!   others  new symbols, as long as the better paths could not deliver all that waits before one would arrive here (as in ECF, Lim et al.
//!           2017); repairs unless the better ones can surely send them in time; only copies while a slow path adds next to nothing
//!   to avoid  PINGs only
//! ```
//!
//! Latency-sensitive data takes another path if the losses of the first one come in bursts and another one delivers sooner even after a loss:
//! no repair that is sent ahead covers a burst, and what is sent behind it waits for a repair after feedback.
//!
//! In [`PathMode::Backup`] the preference goes before the round trip, and all others are avoided. In [`PathMode::Redundant`] the others
//! send copies of latency-sensitive data before anything else, and the symbols themselves while the first path cannot send.
//!
//! A block lacks degrees of freedom, whatever path they come from, so nothing is ever moved from one path to another.

use core::time::Duration;

use ctcp_base::Instant;

use super::{Path, PathMode, Paths};
use crate::code::{Prospect, Prospects, Situation};
use crate::congestion::Phase;
use crate::id::PathId;

/// The most paths of a connection at a time.
pub(crate) const PATHS_MAX: usize = 8;

/// As many queued bytes as this count as a transfer without end: the application has filled half of its buffer and will go on.
const ENDLESS: usize = crate::stream::SEND_BUFFER_MAX / 2;

/// The share of repairs that a better path could send in time and that are left to it. A repair that comes late delays a whole block, and
/// more of them may soon be needed; one too many costs a packet.
const LEFT_TO_BETTER: f64 = 0.125;

/// A path is left out, or carries copies only, if it adds less than this share of all, and takes so many times as long as the best one. If it
/// takes so long, reports go ahead of its acknowledgements.
const LITTLE: f64 = 0.025;
const SLOW: u32 = 2;

/// A path that is left out sends copies in the last part of each such time, so that it can show what it has become.
const TRIAL_EVERY: Duration = Duration::from_secs(60);
const TRIAL: Duration = Duration::from_secs(2);

/// Latency-sensitive data is late on a path if this many times the share of losses that come in bursts is no longer small.
const BURSTS_MATTER: f64 = 5.0;

/// How long a burst delays what comes next, in round trips: until it is noticed and repaired.
const BURST_DELAY: f64 = 1.5;

/// Messages and small writes leave the first path only for one that takes less than this share of its time.
const SOONER: f64 = 0.8;

/// A path that would take longer to deliver what is in flight is as bad as one that takes so long.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// What is of use on a path other than the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing: better paths are earlier.
    Nothing,
    /// Copies of symbols that better paths send. They show what the path is capable of, and nothing waits for them.
    Copies,
    /// New symbols and repairs.
    Symbols,
}

/// The validated paths, best first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranking {
    ids: [PathId; PATHS_MAX],
    length: usize,
    urgent: Option<PathId>,
}

impl Ranking {
    pub(crate) fn new(now: Instant, paths: &Paths) -> Self {
        let mut ranking = Self { ids: [PathId(0); PATHS_MAX], length: 0, urgent: None };
        for path in paths.iter().filter(|path| path.is_validated()).take(PATHS_MAX) {
            ranking.ids[ranking.length] = path.id;
            ranking.length += 1;
        }
        ranking.ids[..ranking.length].sort_by_key(|&id| rank(now, paths.mode(), &paths[id]));
        ranking.urgent = ranking.choose_urgent(now, paths);
        ranking
    }

    fn choose_urgent(&self, now: Instant, paths: &Paths) -> Option<PathId> {
        let first = self.first()?;
        if self.length == 1 || matches!(paths.mode(), PathMode::Backup | PathMode::Redundant) {
            return Some(first);
        }
        let others = self.iter().skip(1).filter(|&id| !paths[id].is_avoided() && paths[id].has_window());
        let limit = lateness(now, &paths[first]).mul_f64(SOONER);
        let soonest = others.min_by_key(|&id| lateness(now, &paths[id]));
        Some(soonest.filter(|&id| lateness(now, &paths[id]) < limit).unwrap_or(first))
    }

    /// The path for latency-sensitive data.
    pub(crate) fn urgent(&self) -> Option<PathId> {
        self.urgent
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = PathId> {
        let Self { ids, length, .. } = *self;
        ids.into_iter().take(length)
    }

    pub(crate) fn first(&self) -> Option<PathId> {
        self.iter().next()
    }

    /// What is of use on the path `id`, which is not the first, when `queued` bytes of new data wait.
    pub(crate) fn use_of(&self, paths: &Paths, id: PathId, situation: &Situation, queued: usize) -> Use {
        let now = situation.now;
        // Without a need for repairs here, only new data is of use.
        let helps = !situation.prefers_new
            || queued >= ENDLESS
            || queued as f64 > self.sent_meanwhile(now, paths, id, queued);
        if !helps {
            Use::Nothing
        } else if !self.only_costs(now, paths, id) {
            Use::Symbols
        } else if is_tried(now, &paths[id]) {
            Use::Copies
        } else {
            Use::Nothing
        }
    }

    /// Whether a path adds so little that the time for which others wait for its symbols is worth more.
    fn only_costs(&self, now: Instant, paths: &Paths, id: PathId) -> bool {
        let path = &paths[id];
        let Some(first) = self.first().filter(|&first| first != id) else { return false };
        let is_slow = one_way(now, path) > SLOW * one_way(now, &paths[first]);
        is_slow && adds(now, path) < LITTLE * used(now, paths).map(|path| adds(now, path)).sum::<f64>()
    }

    /// Whether better paths can surely send `packets` repairs before one would arrive on the path `id`.
    pub(crate) fn can_repair(&self, now: Instant, paths: &Paths, id: PathId, packets: u64) -> bool {
        let bytes = packets as f64 * paths[id].owed.mtu.current() as f64;
        bytes <= LEFT_TO_BETTER * self.sent_meanwhile(now, paths, id, usize::MAX)
    }

    /// Whether a report on the best path arrives much sooner than on the path `id`.
    pub(crate) fn reports_sooner(&self, now: Instant, paths: &Paths, id: PathId) -> bool {
        let rtt = |id| paths[id].measured.rtt.minimum(now);
        let is_slow = |first| first != id && SLOW * rtt(first) <= rtt(id);
        self.first().is_some_and(is_slow) && !paths[id].is_relayed()
    }

    /// Bytes that the better paths can send and that still arrive before a packet of at most `size` bytes sent now on the path `id`.
    fn sent_meanwhile(&self, now: Instant, paths: &Paths, id: PathId, size: usize) -> f64 {
        let better = || self.iter().take_while(|&other| other != id).map(|other| &paths[other]);
        let Some(first) = better().next() else { return -1.0 };
        let later = expected(now, &paths[id], size).saturating_sub(expected(now, first, size));
        better().map(|path| rate(now, path)).sum::<f64>() * later.as_secs_f64()
    }
}

/// What a path delivers, in bytes per second. Its window may allow more than arrives, in slow start above all.
fn adds(now: Instant, path: &Path) -> f64 {
    let allowed = rate(now, path) * (1.0 - path.loss());
    let delivery = &path.measured.delivery;
    let delivered = match path.admission.controller.phase() {
        Phase::SlowStart => delivery.maximum().unwrap_or(0.0),
        _ => delivery.capacity().unwrap_or(f64::INFINITY),
    };
    allowed.min(delivered)
}

/// Whether a path that adds little may show what it is capable of: in slow start nobody knows.
fn is_tried(now: Instant, path: &Path) -> bool {
    is_trial_time(now, path) || path.admission.controller.phase() == Phase::SlowStart
}

/// Whether a path that is left out, by all or by latency-sensitive data, may show what it has become.
fn is_trial_time(now: Instant, path: &Path) -> bool {
    let age = (now - path.began).as_nanos() % TRIAL_EVERY.as_nanos();
    age >= (TRIAL_EVERY - TRIAL).as_nanos()
}

/// Latency-sensitive data takes the path `urgent` now. Returns whether copies of it show what is lost on the path `id`: on a new one, or on
/// one that was left for a slower path.
pub(crate) fn shows_losses(now: Instant, paths: &Paths, urgent: PathId, id: PathId) -> bool {
    let (path, urgent) = (&paths[id], &paths[urgent]);
    let is_new = now - path.began < TRIAL;
    is_new || is_trial_time(now, path) && arrival(now, path) < arrival(now, urgent)
}

/// How late latency-sensitive data may be on a path: it waits for the repair of a burst, if there are enough of them. A path whose window it
/// fills by itself is no better.
fn lateness(now: Instant, path: &Path) -> Duration {
    let (losses, rtt) = (&path.measured.loss_average, path.measured.rtt.smoothed());
    let in_bursts = BURSTS_MATTER * path.loss() * (losses.dispersion() - 1.0);
    let is_small = path.admission.is_too_small(now);
    arrival(now, path) + rtt.mul_f64(BURST_DELAY * if is_small { 1.0 } else { in_bursts.min(1.0) })
}

/// When a packet counts as arrived: in profile `low-latency` everything is latency-sensitive.
fn expected(now: Instant, path: &Path, size: usize) -> Duration {
    if path.hurries_everything() { lateness(now, path) } else { arrival_of(now, path, size) }
}

/// What all paths carry in a round trip of the slowest one, in packets: a block of so many symbols is complete about when they are
/// acknowledged.
pub(crate) fn window(now: Instant, paths: &Paths) -> f64 {
    let rtt = |path: &Path| path.measured.rtt.smoothed().as_secs_f64().max(1e-6);
    let used = || used(now, paths);
    let slowest = used().map(rtt).fold(0.0, f64::max);
    let window = |path: &Path| path.admission.controller.window();
    if paths.len() == 1 {
        return window(paths.main());
    }
    used().map(|path| window(path) * slowest / rtt(path)).sum::<f64>().max(window(paths.main()))
}

/// What packets in flight on each path are worth for what is sent now on the path `id`.
pub(crate) fn prospects(now: Instant, paths: &Paths, id: PathId) -> Prospects {
    let mut prospects = Prospects::NONE;
    if paths.len() == 1 {
        return prospects;
    }
    let arrival_here = arrival(now, &paths[id]);
    for path in paths.iter() {
        let late = arrival(now, path).saturating_sub(arrival_here);
        let overtaken = if path.is_avoided() { Instant::ZERO } else { now.saturating_back(late) };
        prospects.push(Prospect { path: path.id, loss: path.loss(), counted: path.counted(), overtaken });
    }
    prospects
}

/// The loss average of what is being sent: of all paths, each by its rate. It is right for what is sent next;
/// each block knows the paths of what it has in flight. That of `path` if nothing else is known.
pub(crate) fn loss(now: Instant, paths: &Paths, path: &Path) -> f64 {
    if paths.len() == 1 {
        return path.loss();
    }
    let used = || used(now, paths);
    let total: f64 = used().map(|path| rate(now, path)).sum();
    if total > 0.0 {
        used().map(|path| rate(now, path) * path.loss()).sum::<f64>() / total
    } else {
        path.loss()
    }
}

fn rank(now: Instant, mode: PathMode, path: &Path) -> (bool, u8, Duration) {
    let preference = if mode == PathMode::Backup { path.preference } else { 0 };
    let time = match mode {
        // The order of backups does not change with what is in flight.
        PathMode::Backup => path.measured.rtt.smoothed(),
        PathMode::Aggregate | PathMode::Independent if path.hurries_everything() => lateness(now, path),
        _ => round_trip(now, path),
    };
    (path.is_avoided(), preference, time)
}

/// The paths that carry data.
pub(crate) fn used(now: Instant, paths: &Paths) -> impl Iterator<Item = &Path> {
    let best = (paths.mode() == PathMode::Backup).then(|| Ranking::new(now, paths).first()).flatten();
    let usable = paths.iter().filter(|path| path.is_usable());
    usable.filter(move |path| best.is_none_or(|best| path.id == best))
}

/// Tells the controllers of paths that may share a bottleneck to take one share of it together, in proportion to their rates.
///
/// A queue that is not theirs means that others compete with them. Paths that see one at the same time may share its bottleneck. A path
/// whose queue is empty meanwhile does not, so that its share does not count. This needs no test of correlation (RFC 8382), which takes
/// seconds to be certain, and errs only on the side of others.
pub(crate) fn share_bottlenecks(now: Instant, paths: &mut Paths) {
    if paths.len() == 1 || paths.mode() == PathMode::Independent {
        return;
    }
    let competes = |path: &Path| path.is_usable() && path.admission.controller.is_competing(now);
    let total: f64 = paths.iter().filter(|path| competes(path)).map(|path| rate(now, path)).sum();
    for path in paths.iter_mut() {
        let share = if competes(path) && total > 0.0 { rate(now, path) / total } else { 1.0 };
        path.admission.set_share(Some(share));
    }
}

/// The round trip of a packet sent now: what is in flight leaves first. Where it is not known how fast, the queue of a path with little in
/// flight has drained since it was measured.
fn round_trip(now: Instant, path: &Path) -> Duration {
    round_trip_of(now, path, usize::MAX)
}

/// That of a packet of at most `size` bytes.
fn round_trip_of(now: Instant, path: &Path, size: usize) -> Duration {
    let rtt = &path.measured.rtt;
    let minimum = rtt.minimum(now);
    let full = 2.0 * path.sent.packets_in_flight() as f64 / path.admission.controller.window().max(1.0);
    let Some(capacity) = path.measured.delivery.capacity() else {
        let smoothed = rtt.smoothed();
        return smoothed - smoothed.saturating_sub(minimum).mul_f64(1.0 - full.min(1.0));
    };
    let size = path.owed.mtu.current().min(u64::try_from(size).unwrap_or(u64::MAX));
    let arriving = (path.sent.bytes_in_flight() + size) as f64 * (1.0 - path.loss());
    let drained = minimum.max(Duration::from_secs_f64(arriving / capacity.max(1.0)).min(DRAIN_MAX));
    // The path may have become slower since.
    if full < 1.0 { drained } else { drained.max(rtt.standing(now)) }
}

fn one_way(now: Instant, path: &Path) -> Duration {
    round_trip(now, path) / 2
}

/// How long a packet takes that is sent now: half of the empty round trip, and the queue, which is in its direction.
fn arrival(now: Instant, path: &Path) -> Duration {
    arrival_of(now, path, usize::MAX)
}

/// That of a packet of at most `size` bytes.
fn arrival_of(now: Instant, path: &Path, size: usize) -> Duration {
    let rtt = &path.measured.rtt;
    let empty = rtt.minimum(now).min(rtt.smoothed());
    round_trip_of(now, path, size) - empty / 2
}

/// What congestion control allows, in bytes per second.
fn rate(now: Instant, path: &Path) -> f64 {
    let window = path.admission.controller.window() * path.owed.mtu.current() as f64;
    window / round_trip(now, path).as_secs_f64().max(1e-6)
}
