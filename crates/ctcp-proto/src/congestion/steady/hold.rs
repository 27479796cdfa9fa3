//! Keeps the queue at its target: grows below it, backs off above it, and detects that backing off has no effect.

use core::time::Duration;

use super::effect::Effect;
use super::seconds_ratio;

/// Number of consecutive back-offs after which another flow must be causing the queue, and if the last one had no effect.
const BACK_OFFS_MAX: u32 = 4;
const BACK_OFFS_UNDECIDED: u32 = 8;

/// Maximum growth per round trip as a fraction of the window.
const GROWTH_MAX: f64 = 1.0 / 8.0;

/// Near the target the growth is one packet, or this times the root of a small window. So many small flows grow slowly, and the smallest
/// catch up.
const GROWTH_LEAST: f64 = 0.25;

/// While the queue stays near the target, the growth doubles each time after so many round trips, up to this fraction of the window: a queue
/// that does not grow with the window is noise.
const NEAR_ROUNDS: u32 = 4;
const GROWTH_NEAR_MAX: f64 = 1.0 / 32.0;
const DOUBLINGS_MAX: u32 = 16;

/// After so many round trips with a short queue, the link has room.
const ROOM_ROUNDS: u32 = 4;

/// After the breaker tripped, this fraction of the way back to the second fraction of what the link delivered lately is regained per round trip.
const RETURN: f64 = 1.0 / 8.0;
const RETURN_TO: f64 = 0.8;

/// If the breaker reduced a large window, back-offs leave at least so many packets. A smaller window would starve a flow for seconds alongside
/// another that fills a long queue, since it takes several long round trips to find out.
const LEAST: f64 = 4.0;

/// Measurements of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The empty path, the queue beyond it, and the target queue.
    pub(super) base: Duration,
    pub(super) queue: Duration,
    pub(super) target: Duration,
    /// More is lost than the path loses by itself.
    pub(super) is_lossy: bool,
    /// The fraction of packets lost lately, and in calm moments.
    pub(super) loss: f64,
    pub(super) calm_loss: f64,
    /// Packets that arrived per second.
    pub(super) rate: f64,
    /// Packets per round trip that the link delivered in one of the last round trips.
    pub(super) reach: f64,
    /// The path's delay varies by itself.
    pub(super) is_restless: bool,
    /// Others, or further paths of this connection, may fill the queue (`Steady::may_be_shared`). It then does not react to this flow.
    pub(super) is_shared: bool,
    /// The application sent less than the window allows, so arrivals do not follow the window.
    pub(super) is_app_limited: bool,
}

/// The action after a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// No change.
    Stay,
    /// Multiply the window by this factor.
    BackOff(f64),
    /// The queue did not react at all or was noise, so the path is longer by it. Carries the window from before the back-offs, which is restored
    /// at least.
    PathIsLonger(f64),
    /// The queue persists despite all back-offs, so another flow causes it. Restores the window from before them.
    QueueIsNotOurs(f64),
}

/// The state of holding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    growth: f64,
    /// The last change is not visible yet: it takes a round trip to act and one to be measured.
    is_settling: bool,
    is_learning: bool,
    back_offs: u32,
    effect: Effect,
    /// Consecutive round trips with a queue near the target, and with one shorter than half of that.
    near: u32,
    short: u32,
    /// The breaker tripped, so the window may be far smaller than what the link delivers.
    has_tripped: bool,
}

impl Hold {
    /// Starts with a queue that has been measured.
    pub(super) fn new() -> Self {
        Self {
            growth: 1.0,
            is_settling: false,
            is_learning: false,
            back_offs: 0,
            effect: Effect::default(),
            near: 0,
            short: 0,
            has_tripped: false,
        }
    }

    /// Starts after slow start, with a new window.
    pub(super) fn after_slow_start() -> Self {
        Self { is_settling: true, is_learning: true, ..Self::new() }
    }

    /// Starts after the breaker tripped.
    pub(super) fn after_trip() -> Self {
        Self { has_tripped: true, ..Self::new() }
    }

    /// The state after the breaker reduced a window of `tokens`.
    pub(super) fn on_trip(self, tokens: f64) -> Self {
        Self { effect: self.effect.on_trip(tokens, self.back_offs), ..Self::after_trip() }
    }

    /// Ignores the next round trip, which belongs to the old window.
    pub(super) fn settle(&mut self) {
        self.is_settling = true;
    }

    /// The delivery rate counts as known, though slow start has just ended.
    pub(super) fn stop_learning(&mut self) {
        self.is_learning = false;
    }

    /// The window was cut for congestion, so the queue is real and the window from before is not restored.
    pub(super) fn on_congestion(&mut self) {
        self.stop_learning();
        self.back_offs = 0;
    }

    /// Returns to slow growth.
    pub(super) fn slow_down(&mut self) {
        self.growth = 1.0;
    }

    /// How many packets the window may grow per round trip.
    pub(super) fn growth(&self) -> f64 {
        self.growth
    }

    /// Whether slow start has just ended, so that the delivery rate may still rise.
    pub(super) fn is_learning(&self) -> bool {
        self.is_learning
    }

    /// Whether the queue has been short for so long that the link must have room.
    pub(super) fn sees_room(&self) -> bool {
        self.short >= ROOM_ROUNDS
    }

    /// A round trip with a window of `tokens` is over.
    pub(super) fn on_round(&mut self, tokens: f64, seen: &Seen) -> Step {
        if self.is_settling {
            self.is_settling = false;
            self.effect.on_settling(seen);
            return Step::Stay;
        }
        self.is_learning = false;
        if seen.queue > seen.target {
            return self.back_off(tokens, seen);
        }
        self.effect.on_short_queue(seen);
        self.back_offs = 0;
        let least = (GROWTH_LEAST * tokens.sqrt()).min(1.0);
        let faster = (self.growth * 2.0).min(tokens * GROWTH_MAX).max(least);
        let faster = faster.max(self.way_back(tokens, seen));
        let is_short = seen.queue < seen.target / 2;
        self.short = if is_short && !seen.is_lossy { self.short.saturating_add(1) } else { 0 };
        self.near = if is_short || seen.is_lossy { 0 } else { self.near.saturating_add(1) };
        let doubled = f64::from(1_u32 << (self.near / NEAR_ROUNDS).min(DOUBLINGS_MAX));
        self.growth = if is_short { faster } else { doubled.min(tokens * GROWTH_NEAR_MAX).max(least) };
        Step::Stay
    }

    /// The growth after the breaker tripped, which halves the window however little too large it was. After other back-offs a quick return
    /// would keep shares unequal.
    fn way_back(&self, tokens: f64, seen: &Seen) -> f64 {
        let is_free = self.has_tripped && !seen.is_lossy;
        if is_free { (RETURN * (RETURN_TO * seen.reach - tokens)).min(tokens * GROWTH_MAX) } else { 0.0 }
    }

    /// Performs the paper's back-off, leaving half of the target, or concludes that backing off has no effect.
    fn back_off(&mut self, tokens: f64, seen: &Seen) -> Step {
        if self.back_offs == 0 {
            self.effect.begin(tokens, seen);
        } else {
            self.effect.on_queue(tokens, seen, self.back_offs == 1);
        }
        let before = self.effect.tokens_before();
        if self.effect.is_longer_path(tokens, seen) {
            return Step::PathIsLonger(before);
        }
        if self.effect.awaits_confirmation() {
            return Step::Stay;
        }
        let most = if self.effect.is_undecided(tokens, seen) { BACK_OFFS_UNDECIDED } else { BACK_OFFS_MAX };
        if self.back_offs >= most {
            return Step::QueueIsNotOurs(before);
        }
        self.back_offs += 1;
        self.near = 0;
        self.short = 0;
        // The first back-off may still answer the queue from before the trip.
        self.has_tripped &= self.back_offs == 1;
        self.growth = 1.0;
        self.is_settling = true;
        let beta = seconds_ratio(seen.base + seen.target / 2, seen.base + seen.queue);
        let least = if self.effect.has_tripped() { (LEAST / tokens).min(1.0) } else { 0.0 };
        Step::BackOff(beta.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(20);
    const TARGET: Duration = Duration::from_millis(2);

    fn seen(queue: Duration) -> Seen {
        Seen {
            base: BASE,
            queue,
            target: TARGET,
            is_lossy: false,
            loss: 0.0,
            calm_loss: 0.0,
            rate: 2_000.0,
            reach: 0.0,
            is_restless: false,
            is_shared: false,
            is_app_limited: false,
        }
    }

    /// The same with what arrives per second with a window of `tokens`, if nothing is lost.
    fn seen_with(tokens: f64, queue: Duration) -> Seen {
        Seen { rate: tokens / (BASE + queue).as_secs_f64(), ..seen(queue) }
    }

    /// The steps for queues of these milliseconds, skipping every second one while settling.
    fn steps(queues: &[u64]) -> Vec<Step> {
        let mut hold = Hold::new();
        let mut tokens = 40.0;
        let mut steps = Vec::new();
        for &queue in queues {
            let queue = Duration::from_millis(queue);
            let step = hold.on_round(tokens, &seen_with(tokens, queue));
            if let Step::BackOff(beta) = step {
                tokens *= beta;
                let next = hold.on_round(tokens, &seen_with(tokens, queue));
                assert_eq!(next, Step::Stay);
            }
            steps.push(step);
        }
        steps
    }

    #[test]
    fn growth_doubles_while_the_queue_is_low_up_to_an_eighth_and_falls_back_near_the_target() {
        let mut hold = Hold::new();
        let growth: Vec<f64> = [0, 0, 0, 0, 0, 1_500, 0]
            .into_iter()
            .map(|micros| {
                hold.on_round(40.0, &seen(Duration::from_micros(micros)));
                hold.growth()
            })
            .collect();
        assert_eq!(growth, [2.0, 4.0, 5.0, 5.0, 5.0, 1.0, 2.0]);
    }

    #[test]
    fn what_the_link_delivered_lately_is_soon_regained_after_a_trip() {
        let growth = |mut hold: Hold, is_lossy| {
            let seen = Seen { reach: 125.0, is_lossy, ..seen(Duration::ZERO) };
            hold.on_round(60.0, &seen);
            hold.growth()
        };
        assert_eq!(growth(Hold::new(), false), 2.0);
        assert_eq!(growth(Hold::after_trip(), false), 5.0);
        assert_eq!(growth(Hold::after_trip(), true), 2.0, "too much is still lost");
    }

    #[test]
    fn a_queue_that_stays_short_for_four_round_trips_shows_room() {
        let mut hold = Hold::new();
        let rooms: Vec<bool> = [0, 0, 0, 0, 2, 0]
            .into_iter()
            .map(|millis| {
                hold.on_round(40.0, &seen(Duration::from_millis(millis)));
                hold.sees_room()
            })
            .collect();
        assert_eq!(rooms, [false, false, false, true, false, false]);
    }

    #[test]
    fn near_the_target_growth_doubles_every_fourth_round_trip_unless_packets_are_lost() {
        let growth = |is_lossy| {
            let mut hold = Hold::new();
            [(); 12].map(|()| {
                hold.on_round(256.0, &Seen { is_lossy, ..seen(TARGET) });
                hold.growth()
            })
        };
        assert_eq!(growth(false), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0, 8.0]);
        assert_eq!(growth(true), [1.0; 12]);
    }

    /// The step after one back-off from 100 to 70 packets, at which the rate changes from 1000 to `rate` packets per second.
    fn step_at_rate(rate: f64, is_restless: bool, is_lossy: bool) -> Step {
        let mut hold = Hold::new();
        let loss = if is_lossy { 0.1 } else { 0.0 };
        let seen =
            |queue, rate| Seen { rate, is_restless, is_lossy, loss, ..seen(Duration::from_millis(queue)) };
        assert_eq!(hold.on_round(100.0, &seen(1, 1_000.0)), Step::Stay);
        assert!(matches!(hold.on_round(100.0, &seen(10, 1_000.0)), Step::BackOff(_)));
        assert_eq!(hold.on_round(70.0, &seen(10, 1_000.0)), Step::Stay, "not visible yet");
        hold.on_round(70.0, &seen(6, rate))
    }

    #[test]
    fn a_queue_is_noise_if_a_smaller_window_makes_less_arrive() {
        assert_eq!(step_at_rate(720.0, true, false), Step::PathIsLonger(100.0));
        assert!(matches!(step_at_rate(950.0, true, false), Step::BackOff(_)), "the link stays busy");
        assert!(matches!(step_at_rate(720.0, false, false), Step::BackOff(_)), "there is no noise");
        assert!(matches!(step_at_rate(720.0, true, true), Step::BackOff(_)), "the queue overflows");
    }

    #[test]
    fn a_back_off_leaves_half_of_the_target_and_is_measured_before_the_next() {
        let steps = steps(&[10, 1]);
        assert!(matches!(steps[0], Step::BackOff(beta) if (beta - 21.0 / 30.0).abs() < 1e-12), "{steps:?}");
        assert_eq!(steps[1], Step::Stay);
    }

    #[test]
    fn a_queue_that_reacts_but_persists_is_caused_by_another_flow() {
        let steps = steps(&[20, 10, 20, 10, 20]);
        assert!(steps[..4].iter().all(|step| matches!(step, Step::BackOff(_))));
        assert_eq!(steps[4], Step::QueueIsNotOurs(40.0));
    }

    /// Checks that four back-offs follow while this is seen, and then the conclusion that another flow causes the queue.
    fn assert_caused_by_another_flow(seen: &Seen) {
        let mut hold = Hold::new();
        let steps: Vec<Step> =
            (0..20).map(|_| hold.on_round(40.0, seen)).filter(|step| *step != Step::Stay).take(5).collect();
        assert!(steps[..4].iter().all(|step| matches!(step, Step::BackOff(_))), "{steps:?}");
        assert_eq!(steps[4], Step::QueueIsNotOurs(40.0));
    }

    #[test]
    fn a_queue_that_drops_packets_without_reacting_is_caused_by_another_flow() {
        assert_caused_by_another_flow(&Seen { is_lossy: true, loss: 0.1, ..seen(Duration::from_millis(20)) });
    }

    #[test]
    fn after_competing_a_queue_that_does_not_react_is_caused_by_another_flow() {
        assert_caused_by_another_flow(&Seen { is_shared: true, ..seen(Duration::from_millis(20)) });
    }

    /// The least window and the conclusion in a queue that does not react, from `hold` with `tokens` packets on.
    fn conclusion(mut hold: Hold, mut tokens: f64) -> (f64, Step) {
        for _ in 0..40 {
            match hold.on_round(tokens, &seen_with(tokens, Duration::from_millis(60))) {
                Step::Stay => {}
                Step::BackOff(beta) => tokens *= beta,
                step => return (tokens, step),
            }
        }
        panic!("no conclusion");
    }

    #[test]
    fn a_queue_that_lasts_since_the_breaker_tripped_is_caused_by_another_flow_and_back_offs_leave_some_packets()
     {
        assert_eq!(conclusion(Hold::new().on_trip(64.0), 32.0), (4.0, Step::QueueIsNotOurs(32.0)));
        assert_eq!(
            conclusion(Hold::new().on_trip(64.0).on_trip(32.0), 16.0),
            (4.0, Step::QueueIsNotOurs(16.0))
        );
        let (least, step) = conclusion(Hold::new().on_trip(31.0), 16.0);
        assert!(least < 2.0 && step == Step::PathIsLonger(16.0), "a small window: {least} {step:?}");
        let mut hold = Hold::new().on_trip(64.0);
        assert_eq!(hold.on_round(32.0, &seen(Duration::ZERO)), Step::Stay);
        assert_eq!(conclusion(hold, 32.0).1, Step::PathIsLonger(32.0), "it came later");
    }

    #[test]
    fn a_trip_during_the_back_offs_of_a_large_window_counts_as_one_of_it() {
        let mut hold = Hold::new();
        assert!(matches!(hold.on_round(40.0, &seen(Duration::from_millis(20))), Step::BackOff(_)));
        assert_eq!(conclusion(hold.on_trip(20.0), 10.0).1, Step::QueueIsNotOurs(10.0));
    }

    #[test]
    fn small_windows_grow_little_near_the_target_and_the_smallest_relatively_most() {
        let growth = |tokens: f64| {
            let mut hold = Hold::new();
            hold.on_round(tokens, &seen(TARGET));
            hold.growth()
        };
        assert_eq!([growth(40.0), growth(4.0), growth(0.25)], [1.0, 0.5, 0.125]);
    }

    #[test]
    fn a_path_that_becomes_longer_between_back_offs_is_detected() {
        let steps = steps(&[3, 3, 12, 20, 20, 20]);
        assert!(steps[..5].iter().all(|step| matches!(step, Step::BackOff(_))), "{steps:?}");
        assert_eq!(steps[5], Step::PathIsLonger(40.0));
    }

    #[test]
    fn a_queue_that_hardly_reacts_to_two_back_offs_is_a_longer_path() {
        let steps = steps(&[20, 19, 20]);
        assert!(steps[..2].iter().all(|step| matches!(step, Step::BackOff(_))));
        assert_eq!(steps[2], Step::PathIsLonger(40.0));
    }

    #[test]
    fn small_back_offs_do_not_show_that_the_path_is_longer_until_they_add_up() {
        let steps = steps(&[3, 3, 3, 3]);
        assert!(
            steps[..3].iter().all(|step| matches!(step, Step::BackOff(beta) if *beta > 0.9)),
            "{steps:?}"
        );
        assert_eq!(steps[3], Step::PathIsLonger(40.0));
    }

    /// The round trips after the first back-off until the path counts as longer, if at most eight. The window before it is `tokens`, the
    /// loss rises from 0.02 to `loss`, and what arrives is what is sent.
    fn rounds_until_longer(tokens: f64, loss: f64, is_shared: bool) -> Option<usize> {
        let queued =
            Seen { loss, calm_loss: 0.02, is_lossy: true, is_shared, ..seen(Duration::from_millis(20)) };
        rounds_at_rate(tokens, &queued, |window| window / 0.04)
    }

    /// The same if this is seen, and so much arrives with a window.
    fn rounds_at_rate(tokens: f64, queued: &Seen, rate: impl Fn(f64) -> f64) -> Option<usize> {
        let mut hold = Hold::new();
        let before = Seen { loss: 0.02, calm_loss: 0.02, rate: tokens / 0.02, ..seen(Duration::ZERO) };
        assert_eq!(hold.on_round(tokens, &before), Step::Stay);
        let mut window = tokens;
        let mut step = || {
            let step = hold.on_round(window, &Seen { rate: rate(window), ..*queued });
            if let Step::BackOff(beta) = step {
                window *= beta;
            }
            step
        };
        assert!(matches!(step(), Step::BackOff(_)));
        (1..9).find(|_| step() == Step::PathIsLonger(tokens))
    }

    #[test]
    fn a_queue_that_appears_in_the_middle_of_a_round_trip_is_compared_when_it_is_seen_in_full() {
        let mut hold = Hold::new();
        let mut step =
            |tokens, millis| hold.on_round(tokens, &seen_with(tokens, Duration::from_millis(millis)));
        assert!(matches!(step(64.0, 10), Step::BackOff(_)));
        assert_eq!(step(40.0, 20), Step::Stay, "settling");
        assert_eq!(step(40.0, 20), Step::Stay, "to be confirmed");
        assert!(matches!(step(40.0, 18), Step::BackOff(_)), "it moved by a tenth");
    }

    #[test]
    fn the_same_queue_after_one_large_back_off_is_a_longer_path_unless_loss_came_with_it() {
        assert_eq!(rounds_until_longer(64.0, 0.025, false), Some(3));
        assert_eq!(rounds_until_longer(64.0, 0.04, false), Some(4), "after two back-offs");
        assert_eq!(rounds_until_longer(64.0, 0.06, false), None, "it may overflow");
        assert_eq!(rounds_until_longer(64.0, 0.025, true), None, "others fill it");
        assert_eq!(rounds_until_longer(31.0, 0.025, false), None, "there may be many flows");
    }

    #[test]
    fn the_same_queue_is_a_queue_if_as_much_arrives_with_a_smaller_window() {
        let queued = Seen { loss: 0.02, calm_loss: 0.02, ..seen(Duration::from_millis(20)) };
        assert_eq!(rounds_at_rate(64.0, &queued, |window| window / 0.04), Some(3));
        assert_eq!(rounds_at_rate(64.0, &queued, |_| 1_600.0), None);
    }
}
