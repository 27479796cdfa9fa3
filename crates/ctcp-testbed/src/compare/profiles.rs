//! Network profiles that were published for another multipath program, as facts, with its results on them.
//!
//! Source: the report of 2026-06-18 on reordering of datagrams in the repository mp0rta/mqvpn (folder `docs/report`):
//! section 3.3 for the profiles, tables of sections 4.1 and 4.3 for the results. It measures a transfer of 20 MiB by
//! QUIC with BBR inside the tunnel, the median of three.
//!
//! The report shapes both directions of a path with the same line of netem, and leaves netem's limit at its default of
//! 1,000 packets, which holds the packets that are delayed as well as those that wait. Ours differs in three ways:
//!
//! - Rates and the limit of 1,000 packets are divided by [`DIVISOR`], since our emulator cannot follow 300 Mbit/s. Times
//!   and the size of the transfer are not, so it takes longer. Its first part, divided in the same way, takes about as
//!   long as the report's transfer.
//! - netem's normally distributed delay is a uniform one here, with the same standard deviation, and with the same mean
//!   where that needs no negative delay.
//! - A link's own queue holds what the limit leaves after the delayed packets. If that is next to nothing, the rate is
//!   what the limit allows.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{FULL_PACKET_BYTES, LinkConfig, LossModel, PathConfig, QueueLimit};
use serde::Serialize;

/// What rates and queues are divided by.
pub(super) const DIVISOR: u64 = 4;

/// The sizes of transfers in MiB: the report's divided by [`DIVISOR`], and the report's own.
pub(super) const TRANSFERS: [u64; 2] = [20 / DIVISOR, 20];

/// The packets that netem holds by default, divided.
const LIMIT: u64 = 1_000 / DIVISOR;

/// The least that a queue holds besides the delayed packets.
const QUEUE_MIN: u64 = LIMIT / 10;

/// A path of a profile, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Side {
    megabits: u64,
    /// The delay one way.
    delay_ms: u64,
    /// The standard deviation of the delay.
    deviation_ms: u64,
    loss: f64,
}

/// Results of the report in Mbit/s, on its own rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Published {
    /// Each path alone.
    single: [f64; 2],
    /// The best setting with the scheduler that balances by weight.
    best_wlb: f64,
    /// The best setting with the scheduler that prefers the least round-trip time.
    best_minrtt: f64,
}

/// A profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Profile {
    pub(super) name: &'static str,
    sides: [Side; 2],
    published: Published,
}

const fn side(megabits: u64, delay_ms: u64, deviation_ms: u64, loss: f64) -> Side {
    Side { megabits, delay_ms, deviation_ms, loss }
}

const fn profile(
    name: &'static str,
    sides: [Side; 2],
    single: [f64; 2],
    best_wlb: f64,
    best_minrtt: f64,
) -> Profile {
    Profile { name, sides, published: Published { single, best_wlb, best_minrtt } }
}

/// The first path of most profiles.
const USUAL: Side = side(50, 20, 0, 0.0);

/// All profiles, in the order of the report.
#[rustfmt::skip]
pub(super) const PROFILES: [Profile; 16] = [
    //       name            Mbit/s, ms, deviation, loss; twice                     each alone     wlb   minrtt
    profile("baseline",     [USUAL, USUAL],                                        [40.6, 40.3],  73.9,  42.5),
    profile("rtt_40",       [USUAL, side(50, 40, 0, 0.0)],                         [40.5, 37.9],  49.0,  40.6),
    profile("rtt_70",       [USUAL, side(50, 70, 0, 0.0)],                         [40.6, 33.7],  36.5,  40.2),
    profile("rtt_120",      [USUAL, side(50, 120, 0, 0.0)],                        [40.7, 27.5],  28.2,  40.6),
    profile("rtt_320",      [USUAL, side(50, 320, 0, 0.0)],                        [40.3, 9.2],   40.1,  38.9),
    profile("jit_5",        [side(50, 20, 5, 0.0); 2],                             [38.3, 38.8],  61.4,  46.5),
    profile("jit_20",       [side(50, 20, 20, 0.0); 2],                            [17.4, 11.0],  37.6,  35.6),
    profile("loss_05",      [side(50, 20, 0, 0.005); 2],                           [29.6, 32.2],  70.7,  39.6),
    profile("loss_2",       [side(50, 20, 0, 0.02); 2],                            [16.1, 16.3],  29.0,  16.4),
    profile("bw_4to1",      [USUAL, side(12, 20, 0, 0.0)],                         [40.6, 10.3],  26.1,  39.9),
    profile("bw_10to1",     [side(100, 20, 0, 0.0), side(10, 20, 0, 0.0)],         [74.2, 8.6],   21.0,  70.1),
    profile("dual_lte",     [side(40, 30, 5, 0.005), side(25, 45, 8, 0.005)],      [29.6, 18.8],  21.8,  29.6),
    profile("fiber_lte",    [side(300, 8, 0, 0.0), side(30, 40, 8, 0.005)],        [212.4, 22.0], 77.3, 212.3),
    profile("lte_starlink", [side(40, 35, 8, 0.0), side(100, 50, 25, 0.01)],       [29.6, 8.9],   17.1,  27.2),
    profile("lte_geo",      [side(40, 35, 0, 0.0), side(20, 320, 20, 0.005)],      [31.7, 6.0],   31.1,  31.5),
    profile("congested",    [side(20, 50, 20, 0.02), side(15, 60, 25, 0.02)],      [6.4, 5.7],     5.7,   6.4),
];

/// A profile as the results have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Facts {
    name: &'static str,
    /// What our rates are divided by.
    divisor: u64,
    /// The report's rates, before division.
    rates_mbps: [u64; 2],
    delays_ms: [u64; 2],
    deviations_ms: [u64; 2],
    losses: [f64; 2],
    /// Our rates, which the shares refer to.
    our_rates_bps: [u64; 2],
    published: Published,
}

impl Profile {
    /// The paths to emulate.
    pub(super) fn paths(&self) -> [PathConfig; 2] {
        self.sides.map(|side| PathConfig::symmetric(side.link()))
    }

    /// The loss of the first path.
    pub(super) fn loss(&self) -> f64 {
        self.sides[0].loss
    }

    /// What results have of it.
    pub(super) fn facts(&self) -> Facts {
        Facts {
            name: self.name,
            divisor: DIVISOR,
            rates_mbps: self.sides.map(|side| side.megabits),
            delays_ms: self.sides.map(|side| side.delay_ms),
            deviations_ms: self.sides.map(|side| side.deviation_ms),
            losses: self.sides.map(|side| side.loss),
            our_rates_bps: self.sides.map(|side| side.rate().as_bits_per_second()),
            published: self.published,
        }
    }
}

impl Side {
    fn link(self) -> LinkConfig {
        let (delay, jitter) = self.uniform();
        let loss = match self.loss {
            0.0 => LossModel::None,
            loss => LossModel::Bernoulli(Probability::new(loss).expect("a probability")),
        };
        let queue = LIMIT.saturating_sub(self.delayed()).max(QUEUE_MIN);
        LinkConfig::default()
            .with_rate(self.rate())
            .with_delay(delay)
            .with_jitter(jitter)
            .with_loss(loss)
            .with_queue(QueueLimit::Packets(queue))
    }

    /// The rate after division: at most what the limit allows, if all its packets are delayed ones.
    fn rate(self) -> Rate {
        let allowed = LIMIT * FULL_PACKET_BYTES * 8 * 1_000 / self.delay_ms;
        Rate::from_bits_per_second((self.megabits * 1_000_000 / DIVISOR).min(allowed))
    }

    /// Full packets that are delayed at once.
    fn delayed(self) -> u64 {
        self.rate().as_bits_per_second() * self.delay_ms / 1_000 / 8 / FULL_PACKET_BYTES
    }

    /// The least delay, and the most that is added: the standard deviation of a uniform distribution is its width
    /// over the square root of 12.
    fn uniform(self) -> (Duration, Duration) {
        let width = Duration::from_millis(self.deviation_ms).mul_f64(12_f64.sqrt());
        (Duration::from_millis(self.delay_ms).saturating_sub(width / 2), width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_keeps_mean_and_deviation_where_it_can() {
        let (least, width) = side(40, 35, 8, 0.0).uniform();
        assert!((least + width / 2).abs_diff(Duration::from_millis(35)) < Duration::from_micros(1));
        assert!((width.as_secs_f64() / 12_f64.sqrt() - 0.008).abs() < 1e-6);
        assert_eq!(USUAL.uniform(), (Duration::from_millis(20), Duration::ZERO));
        assert_eq!(side(50, 20, 20, 0.0).uniform().0, Duration::ZERO, "no delay is negative");
    }

    #[test]
    fn delayed_and_waiting_packets_are_as_many_as_the_limit() {
        let megabits = |side: Side| side.rate().as_bits_per_second() as f64 / 1e6;
        let far = side(50, 320, 0, 0.0);
        assert_eq!((megabits(USUAL), megabits(far)), (12.5, 9.375));
        assert_eq!((USUAL.delayed(), far.delayed()), (20, 250));
        assert_eq!(USUAL.link().queue, QueueLimit::Packets(230));
        assert_eq!(far.link().queue, QueueLimit::Packets(25));
    }
}
