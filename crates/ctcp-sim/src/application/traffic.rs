//! Sources of traffic. In all of them the client sends and the server reads, as sender and receiver in the papers' figures do;
//! for a download exchange the roles with [`StreamPlan::download`].

use core::time::Duration;

use ctcp_base::{Prng, Probability, Rate};

use super::script::{FlowPlan, Pace, Script, StreamPlan};

impl Script {
    /// A file of `size` bytes.
    #[must_use]
    pub fn bulk(size: u64) -> Self {
        Self::of_client(vec![one_way(Duration::ZERO, FlowPlan::of(size))])
    }

    /// A file without an end, as of the papers' FTP sources: it is never complete.
    #[must_use]
    pub fn endless() -> Self {
        Self::bulk(u64::MAX)
    }

    /// `packet` bytes at equal intervals for `lasting`. A source that finds the send buffer full waits for room and makes up
    /// for nothing.
    #[must_use]
    pub fn constant_rate(rate: Rate, packet: u64, lasting: Duration) -> Self {
        Self::of_client(vec![one_way(Duration::ZERO, paced(rate, packet, lasting))])
    }

    /// `count` requests, each answered before the next is made, which is `think` later.
    #[must_use]
    pub fn requests(count: usize, request: u64, response: u64, think: Duration) -> Self {
        let plan = StreamPlan {
            start: think,
            request: FlowPlan::of(request),
            response: FlowPlan::of(response),
            in_turn: true,
        };
        Self { in_sequence: true, ..Self::of_client(vec![plan; count]) }
    }

    /// Bursts at a constant rate, in packets of that many bytes, with silence between them, for about `lasting`. The lengths of
    /// both follow geometric distributions with these means, the discrete form of the exponential one, in hundredths of the mean.
    #[must_use]
    pub fn on_off(
        prng: &mut Prng,
        (rate, packet): (Rate, u64),
        [mean_on, mean_off]: [Duration; 2],
        lasting: Duration,
    ) -> Self {
        let mut bursts = Vec::new();
        let mut at = Duration::ZERO;
        while at < lasting {
            let on = geometric(prng, mean_on);
            bursts.push(one_way(at, paced(rate, packet, on)));
            // At least a step forward, whatever the means are.
            at += (on + geometric(prng, mean_off)).max(Duration::from_micros(1));
        }
        Self::of_client(bursts)
    }
}

/// From the client alone.
fn one_way(start: Duration, request: FlowPlan) -> StreamPlan {
    StreamPlan { start, request, response: FlowPlan::of(0), in_turn: false }
}

fn paced(rate: Rate, packet: u64, lasting: Duration) -> FlowPlan {
    let packet = packet.max(1);
    let writing = Pace { chunk: packet, pause: rate.time_to_send(packet) };
    FlowPlan { writing, ..FlowPlan::of(rate.bytes_in(lasting)) }
}

fn geometric(prng: &mut Prng, mean: Duration) -> Duration {
    let step = Probability::new(0.01).expect("a hundredth is a probability");
    let mut steps = 1;
    while !prng.chance(step) {
        steps += 1;
    }
    mean / 100 * steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_packets_with_pauses_and_takes_its_time() {
        let script = Script::constant_rate(Rate::from_megabits_per_second(1), 1_000, Duration::from_secs(2));
        assert_eq!(script.size(), 250_000);
        assert_eq!(script.own_time(), Duration::from_secs(2));
    }

    #[test]
    fn an_endless_source_has_a_size_that_can_be_added_up() {
        let mut script = Script::endless();
        script.client.extend(Script::endless().client);
        assert_eq!(script.size(), u64::MAX);
    }

    #[test]
    fn bursts_and_silences_have_the_means_asked_for() {
        let rate = Rate::from_megabits_per_second(8);
        let means = [Duration::from_millis(200), Duration::from_millis(300)];
        let lasting = Duration::from_secs(2_000);
        let script = Script::on_off(&mut Prng::new(3), (rate, 1_000), means, lasting);
        let bursts = script.client.len() as f64;
        // 4,000 pairs of 500 ms; the mean of so many has a standard deviation of about 1.2 %.
        assert!((bursts / 4_000.0 - 1.0).abs() < 0.05, "{bursts} bursts");
        let busy = script.size() as f64 / 1e6 / 2_000.0;
        assert!((busy / 0.4 - 1.0).abs() < 0.05, "a share of {busy} is busy");
        let starts: Vec<Duration> = script.client.iter().map(|plan| plan.start).collect();
        assert!(starts.is_sorted());
    }

    #[test]
    fn requests_are_made_one_after_the_other() {
        let script = Script::requests(3, 100, 1_000, Duration::from_millis(10));
        assert!(script.in_sequence);
        assert_eq!(script.own_time(), Duration::from_millis(30));
    }
}
