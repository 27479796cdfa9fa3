//! Traffic sources. In all of them the client sends and the server reads, like sender and receiver in the papers'
//! figures. For a download, exchange the roles with [`StreamPlan::download`].

use core::time::Duration;

use ctcp_base::{Prng, Probability, Rate};

use super::script::{FlowPlan, Pace, Script, StreamPlan};

impl Script {
    /// A file of `size` bytes.
    #[must_use]
    pub fn bulk(size: u64) -> Self {
        Self::of_client(vec![one_way(Duration::ZERO, FlowPlan::of(size))])
    }

    /// An endless file, as from the papers' FTP sources. It is never complete.
    #[must_use]
    pub fn endless() -> Self {
        Self::bulk(u64::MAX)
    }

    /// Sends `packet` bytes at equal intervals for a time of `lasting`. If the send buffer is full, the source waits
    /// for room and does not catch up.
    #[must_use]
    pub fn constant_rate(rate: Rate, packet: u64, lasting: Duration) -> Self {
        Self::of_client(vec![one_way(Duration::ZERO, paced(rate, packet, lasting))])
    }

    /// Sends `count` requests, each `think` after the response to the previous one.
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

    /// Bursts at a constant rate, in packets of the given size, separated by silence, for about `lasting`.
    ///
    /// The lengths of bursts and silences follow geometric distributions with the given means, in steps of a hundredth
    /// of the mean. This is the discrete form of the exponential distribution.
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
            // Advance by at least a step, even if both means are zero.
            at += (on + geometric(prng, mean_off)).max(Duration::from_micros(1));
        }
        Self::of_client(bursts)
    }
}

/// A stream in which only the client sends.
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
    fn a_constant_rate_consists_of_packets_with_pauses() {
        let script = Script::constant_rate(Rate::from_megabits_per_second(1), 1_000, Duration::from_secs(2));
        assert_eq!(script.size(), 250_000);
        assert_eq!(script.own_time(), Duration::from_secs(2));
    }

    #[test]
    fn sizes_of_endless_sources_saturate() {
        let mut script = Script::endless();
        script.client.extend(Script::endless().client);
        assert_eq!(script.size(), u64::MAX);
    }

    #[test]
    fn bursts_and_silences_have_the_configured_means() {
        let rate = Rate::from_megabits_per_second(8);
        let means = [Duration::from_millis(200), Duration::from_millis(300)];
        let lasting = Duration::from_secs(2_000);
        let script = Script::on_off(&mut Prng::new(3), (rate, 1_000), means, lasting);
        let bursts = script.client.len() as f64;
        // 4,000 pairs of 500 ms. Their mean has a standard deviation of about 1.2 %.
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
