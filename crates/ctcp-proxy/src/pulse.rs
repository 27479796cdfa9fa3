//! Samples of the connection to the server, one per second: its rates, and since when the server is silent.
//!
//! An idle connection is not silent. Silence starts with the sample before a packet was sent that needs an answer, and
//! ends when anything arrives. Without a connection the server is silent since it was lost, or since the first attempt.

use core::time::Duration;
use std::collections::VecDeque;

use tokio::time::Instant;

use crate::coded::PathHealth;

/// The interval of the samples.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Rates are means over this many intervals.
const INTERVALS: usize = 5;

/// One sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    /// The number of the connection and the state of its path; `None` without one.
    pub(crate) connection: Option<(u64, PathHealth)>,
    /// Bytes from targets so far.
    pub(crate) downstream: u64,
    /// Bytes to targets so far.
    pub(crate) upstream: u64,
}

/// The recent samples and their evaluation.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    looks: VecDeque<Look>,
    silent_since: Option<Instant>,
}

impl Pulse {
    /// Adds a sample.
    pub(crate) fn on_look(&mut self, look: Look) {
        let before = self.looks.back();
        let since = before.map_or(look.at, |before| before.at);
        match (before.and_then(|before| before.connection), look.connection) {
            (Some((old, before)), Some((new, now))) if old == new => {
                if now.received != before.received {
                    self.silent_since = None;
                } else if now.sent != before.sent && now.in_flight > 0 {
                    self.silent_since.get_or_insert(since);
                }
            }
            (_, Some(_)) => self.silent_since = None,
            (_, None) => {
                self.silent_since.get_or_insert(since);
            }
        }
        self.looks.push_back(look);
        if self.looks.len() > INTERVALS + 1 {
            self.looks.pop_front();
        }
    }

    /// How long the server has owed an answer.
    pub(crate) fn silent(&self) -> Option<Duration> {
        self.silent_since.map(|since| since.elapsed())
    }

    /// Bits per second from targets and to them.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let (Some(first), Some(last)) = (self.looks.front(), self.looks.back()) else { return (0.0, 0.0) };
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        if seconds <= 0.0 {
            return (0.0, 0.0);
        }
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 * 8.0 / seconds;
        (rate(first.downstream, last.downstream), rate(first.upstream, last.upstream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(sent: u64, received: u64, in_flight: u64) -> Option<(u64, PathHealth)> {
        Some((1, PathHealth { sent, received, in_flight, ..PathHealth::default() }))
    }

    async fn look(pulse: &mut Pulse, connection: Option<(u64, PathHealth)>, downstream: u64) {
        tokio::time::advance(INTERVAL).await;
        pulse.on_look(Look { at: Instant::now(), connection, downstream, upstream: 0 });
    }

    #[tokio::test(start_paused = true)]
    async fn silence_starts_with_a_packet_that_needs_an_answer_and_ends_when_one_arrives() {
        let mut pulse = Pulse::default();
        look(&mut pulse, path(5, 5, 0), 0).await;
        look(&mut pulse, path(6, 5, 0), 0).await; // an acknowledgement needs no answer
        look(&mut pulse, path(6, 5, 0), 0).await;
        assert_eq!(pulse.silent(), None);
        look(&mut pulse, path(7, 5, 1), 0).await;
        look(&mut pulse, path(8, 5, 0), 0).await; // packets that expired are not answered either
        look(&mut pulse, path(8, 5, 0), 0).await;
        assert_eq!(pulse.silent(), Some(Duration::from_secs(3)));
        look(&mut pulse, path(8, 6, 0), 0).await;
        assert_eq!(pulse.silent(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_connection_the_silence_continues_until_there_is_one() {
        let mut pulse = Pulse::default();
        look(&mut pulse, path(5, 5, 0), 0).await;
        look(&mut pulse, path(6, 5, 1), 0).await;
        look(&mut pulse, None, 0).await;
        look(&mut pulse, None, 0).await;
        assert_eq!(pulse.silent(), Some(Duration::from_secs(3)));
        look(&mut pulse, path(1, 1, 0).map(|(_, path)| (2, path)), 0).await;
        assert_eq!(pulse.silent(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn rates_are_those_of_the_last_seconds() {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.rates(), (0.0, 0.0));
        for number in 0..10 {
            look(&mut pulse, None, number * 1_000_000).await;
        }
        assert_eq!(pulse.rates(), (8e6, 0.0));
        for _ in 0..INTERVALS {
            look(&mut pulse, None, 9_000_000).await;
        }
        assert_eq!(pulse.rates(), (0.0, 0.0));
    }
}
