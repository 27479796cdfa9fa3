//! Changes of a link over time: a script that is part of a scenario.

use core::time::Duration;
use std::collections::VecDeque;

use ctcp_base::{Instant, Rate};

use crate::{Link, LinkConfig, LossModel, Packet, QueueLimit};

/// A change of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Everything at once; see [`Link::set_config`].
    Config(LinkConfig),
    /// The rate; see [`Link::set_rate`].
    Rate(Rate),
    /// The limit of the queue. Packets in the queue stay there.
    Queue(QueueLimit),
    /// The loss; see [`Link::set_loss`].
    Loss(LossModel),
    /// The one-way delay, for packets that arrive from then on.
    Delay(Duration),
    /// A blackout begins (true) or ends (false).
    Down(bool),
}

/// Changes ordered by time. Changes at the same instant keep the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    changes: VecDeque<(Instant, Change)>,
    /// The time after which each change repeats; never zero.
    period: Option<Duration>,
}

impl Schedule {
    /// A schedule of the given changes, in any order.
    #[must_use]
    pub fn new(changes: impl IntoIterator<Item = (Instant, Change)>) -> Self {
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|(at, _)| *at);
        Self { changes: changes.into(), period: None }
    }

    /// The same schedule with one more change.
    #[must_use]
    pub fn with(mut self, at: Instant, change: Change) -> Self {
        let place = self.changes.partition_point(|(other, _)| *other <= at);
        self.changes.insert(place, (at, change));
        self
    }

    /// The same schedule with a blackout of the duration `lasting` from `from` on.
    #[must_use]
    pub fn with_blackout(self, from: Instant, lasting: Duration) -> Self {
        self.with(from, Change::Down(true)).with(from + lasting, Change::Down(false))
    }

    /// The same schedule, repeated: every change happens again after `period`. If the period is shorter than the schedule, repetitions
    /// overlap. A period of zero changes nothing.
    #[must_use]
    pub fn repeating(self, period: Duration) -> Self {
        Self { period: (!period.is_zero()).then_some(period), ..self }
    }

    /// The time of the next change.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.changes.front().map(|(at, _)| *at)
    }

    /// The next change due at or before `now`, with its own instant.
    pub fn poll_change(&mut self, now: Instant) -> Option<(Instant, Change)> {
        if self.poll_timeout()? > now {
            return None;
        }
        let (at, change) = self.changes.pop_front()?;
        if let Some(period) = self.period {
            let again = at + period;
            let place = self.changes.partition_point(|(other, _)| *other <= again);
            self.changes.insert(place, (again, change.clone()));
        }
        Some((at, change))
    }

    /// Applies all changes due at or before `now` to `link`, each at its own instant. A late call has the same effect as a punctual one
    /// if no packet arrived in between.
    pub fn apply_due<P: Packet>(&mut self, now: Instant, link: &mut Link<P>) {
        while let Some((at, change)) = self.poll_change(now) {
            link.apply(at, change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Prng;

    #[test]
    fn changes_are_applied_in_the_order_of_time() {
        let mut schedule = Schedule::new([
            (Instant::from_secs(3), Change::Down(false)),
            (Instant::from_secs(1), Change::Rate(Rate::from_megabits_per_second(1))),
            (Instant::from_secs(2), Change::Down(true)),
        ]);
        let mut link: Link<Vec<u8>> = Link::new(LinkConfig::default(), Prng::new(1));
        assert_eq!(schedule.poll_timeout(), Some(Instant::from_secs(1)));
        schedule.apply_due(Instant::from_millis(2_500), &mut link);
        assert!(link.is_down());
        assert_eq!(link.config().rate, Rate::from_megabits_per_second(1));
        schedule.apply_due(Instant::from_secs(3), &mut link);
        assert!(!link.is_down());
        assert_eq!(schedule.poll_timeout(), None);
    }

    #[test]
    fn changes_of_one_instant_keep_the_order_in_which_they_were_added() {
        let at = Instant::from_secs(1);
        let mut schedule = Schedule::default()
            .with(at, Change::Delay(Duration::from_millis(1)))
            .with(at, Change::Delay(Duration::from_millis(2)))
            .with(Instant::ZERO, Change::Delay(Duration::from_millis(3)));
        let order: Vec<Change> =
            core::iter::from_fn(|| schedule.poll_change(at).map(|(_, change)| change)).collect();
        assert_eq!(order, [3, 1, 2].map(|millis| Change::Delay(Duration::from_millis(millis))));
    }

    #[test]
    fn what_repeats_happens_again_a_period_later_in_the_same_order() {
        let mut schedule = Schedule::default()
            .with_blackout(Instant::from_millis(1), Duration::from_millis(2))
            .repeating(Duration::from_millis(10));
        let happened: Vec<(u64, bool)> =
            core::iter::from_fn(|| schedule.poll_change(Instant::from_millis(22)))
                .map(|(at, change)| (at.as_nanos() / 1_000_000, change == Change::Down(true)))
                .collect();
        assert_eq!(happened, [(1, true), (3, false), (11, true), (13, false), (21, true)]);
        assert_eq!(schedule.poll_timeout(), Some(Instant::from_millis(23)));
    }

    #[test]
    fn a_blackout_loses_what_is_offered_while_it_lasts() {
        let mut schedule =
            Schedule::default().with_blackout(Instant::from_millis(10), Duration::from_millis(5));
        let mut link = Link::new(LinkConfig::default(), Prng::new(1));
        for millis in 0..20 {
            let now = Instant::from_millis(millis);
            schedule.apply_due(now, &mut link);
            link.handle_packet(now, vec![0_u8]);
            assert_eq!(link.poll_delivery(now).is_some(), !(10..15).contains(&millis), "at {millis} ms");
        }
        assert_eq!(link.stats().lost_while_down, 5);
    }
}
