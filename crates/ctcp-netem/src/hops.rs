//! Links in a row, each with its own changes over time: one direction of a path with several hops.
//!
//! ```text
//!   packet -> [ link 0 ] -> [ link 1 ] -> ... -> packet
//! ```
//!
//! A packet enters the next link at the instant at which it was due, so late calls give the same deliveries as punctual ones. In real
//! time, the lateness of hops does not accumulate.

use ctcp_base::{Instant, Prng};

use crate::{Change, Link, LinkConfig, LinkStats, Packet, Schedule};

/// A link and how it changes.
#[derive(Clone, Debug, Default)]
pub struct Hop {
    /// Its initial configuration.
    pub link: LinkConfig,
    /// Its changes.
    pub schedule: Schedule,
}

/// Links in a row for packets of type `P`.
#[derive(Clone, Debug)]
pub struct Hops<P> {
    hops: Vec<(Link<P>, Schedule)>,
}

impl<P: Packet> Hops<P> {
    /// Creates idle links. Each one draws from its own branch of `prng`.
    ///
    /// # Panics
    /// Panics without a hop.
    #[must_use]
    pub fn new(hops: impl IntoIterator<Item = Hop>, prng: &Prng) -> Self {
        let links = hops.into_iter().enumerate();
        let hops: Vec<_> = links
            .map(|(index, hop)| (Link::new(hop.link, prng.fork(&format!("hop {index}"))), hop.schedule))
            .collect();
        assert!(!hops.is_empty(), "a direction has at least one hop");
        Self { hops }
    }

    /// Handles a packet that arrives at the first link at `now`.
    pub fn handle_packet(&mut self, now: Instant, packet: P) {
        let (link, schedule) = &mut self.hops[0];
        schedule.apply_due(now, link);
        link.handle_packet(now, packet);
    }

    /// The next packet that leaves the last link at or before `now`, with the instant at which it was due.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<(Instant, P)> {
        loop {
            let due = self.poll_timeout().filter(|due| *due <= now)?;
            if let Some(packet) = self.step(due) {
                return Some((due, packet));
            }
        }
    }

    /// The time of the next event: a delivery by any link, or a change.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.hops
            .iter()
            .flat_map(|(link, schedule)| [link.poll_timeout(), schedule.poll_timeout()])
            .flatten()
            .min()
    }

    /// Applies a change to each link, in addition to its schedule.
    pub fn apply(&mut self, now: Instant, change: &Change) {
        for (link, _) in &mut self.hops {
            link.apply(now, change.clone());
        }
    }

    /// The counters of each link.
    pub fn stats(&self) -> impl Iterator<Item = LinkStats> {
        self.hops.iter().map(|(link, _)| link.stats())
    }

    /// Applies all changes at the instant `due` and moves the packets of that instant, up to the first one that leaves the last link.
    fn step(&mut self, due: Instant) -> Option<P> {
        for (link, schedule) in &mut self.hops {
            schedule.apply_due(due, link);
        }
        for index in 0..self.hops.len() {
            while let Some(packet) = self.hops[index].0.poll_delivery(due) {
                match self.hops.get_mut(index + 1) {
                    Some((next, _)) => next.handle_packet(due, packet),
                    None => return Some(packet),
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::QueueLimit;
    use ctcp_base::Rate;

    fn hop(megabits: u64, delay_millis: u64) -> Hop {
        let link = LinkConfig::default()
            .with_overhead(0)
            .with_rate(Rate::from_megabits_per_second(megabits))
            .with_delay(Duration::from_millis(delay_millis));
        Hop { link, ..Hop::default() }
    }

    fn deliveries(hops: &mut Hops<Vec<u8>>, now: Instant) -> Vec<(u64, u8)> {
        core::iter::from_fn(|| hops.poll_delivery(now))
            .map(|(due, packet)| (due.as_nanos() / 1_000, packet[0]))
            .collect()
    }

    #[test]
    fn the_slowest_link_spaces_the_packets_and_all_delays_add_up() {
        let mut hops = Hops::new([hop(8, 10), hop(4, 5)], &Prng::new(1));
        for name in 0..3 {
            hops.handle_packet(Instant::ZERO, vec![name; 1_000]);
        }
        // 1 ms and 10 ms for the first link; then 2 ms each in a row, and 5 ms.
        let wanted = [(18_000, 0), (20_000, 1), (22_000, 2)];
        assert_eq!(deliveries(&mut hops, Instant::from_secs(1)), wanted);
        assert_eq!(hops.poll_timeout(), None);
        assert_eq!(hops.stats().map(|stats| stats.bytes_offered).collect::<Vec<_>>(), [3_000; 2]);
    }

    #[test]
    fn asked_late_it_delivers_what_it_would_have_delivered_in_time() {
        let limited = |mut hop: Hop| {
            hop.link.queue = QueueLimit::Packets(2);
            hop.schedule = Schedule::default()
                .with(Instant::from_millis(12), Change::Rate(Rate::from_megabits_per_second(2)));
            hop
        };
        let offered = |hops: &mut Hops<Vec<u8>>| {
            (0..8).for_each(|name| {
                hops.handle_packet(Instant::from_millis(u64::from(name) / 4), vec![name; 500]);
            });
        };
        let new = || Hops::new([hop(8, 10), limited(hop(4, 5))], &Prng::new(1));
        let (mut late, mut punctual) = (new(), new());
        offered(&mut late);
        offered(&mut punctual);
        let mut found = Vec::new();
        while let Some(next) = punctual.poll_timeout() {
            found.extend(deliveries(&mut punctual, next));
        }
        assert!(found.len() < 8, "the queue was too short for all");
        assert_eq!(deliveries(&mut late, Instant::from_secs(9)), found);
    }

    #[test]
    #[should_panic(expected = "at least one hop")]
    fn a_direction_without_hops_is_refused() {
        let _ = Hops::<Vec<u8>>::new([], &Prng::new(1));
    }
}
