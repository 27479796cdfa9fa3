//! The wireless paths of section 7 and of the slides, in one table for the simulator and for a testbed. Some
//! parameters are printed in the papers; the others are chosen here.
//!
//! - **Hotspots** (Fig. 11). Printed: mean loss, mean RTT, and the time of 50 MB. Chosen here, based on the times of a
//!   kernel's TCP Cubic (Linux 6.18) on the testbed: the rate, the loss pattern, and whether others use the channel at
//!   times. The queue is a bandwidth-delay product. At c and d losses come in bursts of two packets on average. At a
//!   and b other stations leave almost no capacity for 2.4 s of each 6.4 s. Cubic is within 20 % of the printed time at
//!   these four. At e losses are independent, and the rate is one at which coding gives the printed ratio. Cubic is
//!   three times faster there than printed. Turns that correct this make profile `ctcp` slower than printed:
//!   `docs/results/measured.md`. The printed mean RTT is taken as that of the path without queue and turns.
//! - **Microwave oven** (Fig. 9). Printed: the period of 20 ms, the pulse of 9 ms, the PHY rates, and that a frame is
//!   damaged if its airtime overlaps a pulse. So a packet is lost if its last bit leaves during a pulse, or after one
//!   by less than its airtime. Chosen here: 802.11's airtime of a frame of 1500 bytes, an RTT of 10 ms, no
//!   retransmission by the card, no other loss.
//! - **Hidden terminal** (Fig. 10). Printed: 11 Mbit/s, frames of 1445 bytes at exponential intervals. Chosen here: the
//!   same as for the microwave oven.
//! - **Hotel** (slides). Printed: 26.5 Mbit/s and 5 % loss. Chosen here: the RTT, at which a kernel's Cubic gets about
//!   the printed 1.31 Mbit/s.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, LossPlace, PathConfig, QueueLimit, Trace};

/// A path of which the papers print some parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WirelessPath {
    /// Rate of IP packets in kbit/s.
    pub kilobits: u64,
    /// Round-trip time without queueing.
    pub rtt_micros: u64,
    /// Loss of data packets.
    pub loss: WirelessLoss,
    /// Queue limit in packets.
    pub queue: u64,
    /// When other stations use the channel; `None` if they never do.
    pub turns: Option<Turns>,
}

/// A channel that other stations use at times: from `ours_millis` to the end of each period they leave 50 kbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// The part of each period in which the channel is ours, from its beginning.
    pub ours_millis: u64,
    /// The length of a period.
    pub period_millis: u64,
}

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WirelessLoss {
    /// Independent loss with this probability, on the air.
    Independent(f64),
    /// Independent loss before the queue, where a lost packet uses no link time: a router configured to drop packets.
    Dropped(f64),
    /// Loss on the air with this probability, in bursts of this mean length in packets.
    Bursts(f64, f64),
    /// Pulses of a microwave oven, with the airtime of a packet in microseconds.
    Oven(u64),
    /// Collisions with a hidden terminal.
    HiddenTerminal {
        /// The mean rate of the hidden terminal in kbit/s.
        kilobits: u64,
        /// The airtime of a packet of the link in microseconds.
        airtime_micros: u64,
    },
}

/// A hotspot of Fig. 11, and the printed times of 50 MB in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hotspot {
    /// The letter in the figure.
    pub name: &'static str,
    /// The model of its path.
    pub path: WirelessPath,
    /// The printed time with standard TCP.
    pub tcp_seconds: f64,
    /// The printed time with CTCP.
    pub ctcp_seconds: f64,
}

/// The five hotspots of Fig. 11.
pub const HOTSPOTS: [Hotspot; 5] = [
    hotspot("a", single(4_250, 54_210, 0.0428).in_turns(4_000, 6_400), [807.0, 313.0]),
    hotspot("b", single(3_750, 73_510, 0.0525).in_turns(4_000, 6_400), [1_151.0, 388.0]),
    hotspot("c", bursty(1_250, 106_310, 0.0465), [753.0, 676.0]),
    hotspot("d", bursty(2_500, 50_390, 0.0456), [391.0, 292.0]),
    hotspot("e", single(1_750, 208_940, 0.0216), [3_042.0, 1_093.0]),
];

/// The Sheraton in Needham, with 5 % loss caused by a router.
pub const HOTEL: WirelessPath = with_queue_of_one_bdp(26_500, 33_000, WirelessLoss::Dropped(0.05));

/// The links of Fig. 9, by PHY rate. The text names 8 Mbit/s, which 802.11 does not have; 9 is meant.
///
/// Airtime: 192 us of preamble at 5.5 and 11 Mbit/s, and 26 us with the signal extension at the others, then 1536
/// bytes, at the others in symbols of 4 us. Before the packet there are the DIFS and the mean of the first backoff,
/// after it SIFS and acknowledgement: 618 us at 5.5 and 11, 140 to 156 us at the others. The transport's
/// acknowledgements do not compete for the channel.
pub const OVEN: [Phy; 8] = [
    Phy { kilobits: 5_500, airtime_micros: 2_426, cycle_micros: 3_044 },
    Phy { kilobits: 9_000, airtime_micros: 1_394, cycle_micros: 1_550 },
    Phy { kilobits: 11_000, airtime_micros: 1_309, cycle_micros: 1_927 },
    Phy { kilobits: 18_000, airtime_micros: 710, cycle_micros: 854 },
    Phy { kilobits: 24_000, airtime_micros: 542, cycle_micros: 682 },
    Phy { kilobits: 36_000, airtime_micros: 370, cycle_micros: 510 },
    Phy { kilobits: 48_000, airtime_micros: 286, cycle_micros: 426 },
    Phy { kilobits: 54_000, airtime_micros: 254, cycle_micros: 394 },
];

/// The link of Fig. 10 without the hidden terminal.
pub const HIDDEN_TERMINAL: Phy = OVEN[2];

/// How 802.11 sends packets of 1500 bytes at one of its rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// The PHY rate in kbit/s.
    pub kilobits: u64,
    /// The airtime of a packet.
    pub airtime_micros: u64,
    /// The time from one packet to the next.
    pub cycle_micros: u64,
}

impl Phy {
    /// Returns the path next to a microwave oven.
    #[must_use]
    pub const fn beside_oven(self) -> WirelessPath {
        self.with_loss(WirelessLoss::Oven(self.airtime_micros))
    }

    /// Returns the path next to a hidden terminal of this mean rate.
    #[must_use]
    pub const fn beside_terminal(self, kilobits: u64) -> WirelessPath {
        let airtime_micros = self.airtime_micros;
        self.with_loss(WirelessLoss::HiddenTerminal { kilobits, airtime_micros })
    }

    const fn with_loss(self, loss: WirelessLoss) -> WirelessPath {
        // Bits per packet divided by the microseconds of a cycle.
        let kilobits = 12_000_000 / self.cycle_micros;
        WirelessPath { kilobits, rtt_micros: WLAN_RTT_MICROS, loss, queue: WLAN_QUEUE, turns: None }
    }
}

const fn hotspot(name: &'static str, path: WirelessPath, [tcp_seconds, ctcp_seconds]: [f64; 2]) -> Hotspot {
    Hotspot { name, path, tcp_seconds, ctcp_seconds }
}

/// A hotspot with independent loss.
const fn single(kilobits: u64, rtt_micros: u64, loss: f64) -> WirelessPath {
    with_queue_of_one_bdp(kilobits, rtt_micros, WirelessLoss::Independent(loss))
}

/// A hotspot with loss bursts of two packets on average.
const fn bursty(kilobits: u64, rtt_micros: u64, loss: f64) -> WirelessPath {
    with_queue_of_one_bdp(kilobits, rtt_micros, WirelessLoss::Bursts(loss, 2.0))
}

/// A path with a queue of a bandwidth-delay product, in packets of 1500 bytes.
const fn with_queue_of_one_bdp(kilobits: u64, rtt_micros: u64, loss: WirelessLoss) -> WirelessPath {
    let queue = (kilobits * rtt_micros).div_ceil(12_000_000);
    WirelessPath { kilobits, rtt_micros, loss, queue, turns: None }
}

impl WirelessPath {
    const fn in_turns(self, ours_millis: u64, period_millis: u64) -> Self {
        Self { turns: Some(Turns { ours_millis, period_millis }), ..self }
    }

    /// Returns how the direction of the data changes over time, if other stations use the channel at times.
    #[must_use]
    pub fn trace(&self) -> Option<Trace> {
        let Turns { ours_millis, period_millis } = self.turns?;
        let ours = self.kilobits;
        let text = format!(
            "0s rate {ours}kbit\n{ours_millis}ms rate {OTHERS_LEAVE_KILOBITS}kbit\n{period_millis}ms repeat"
        );
        Some(Trace::parse(&text).expect("written as traces are"))
    }

    /// Returns both directions for the link model. Acknowledgements are not lost.
    #[must_use]
    pub fn config(&self) -> PathConfig {
        let rate = Rate::from_bits_per_second(1_000 * self.kilobits);
        let path = PathConfig::new(rate, Duration::from_micros(self.rtt_micros), self.loss.model());
        let path = path.with_lossless_return();
        let place = match self.loss {
            WirelessLoss::Dropped(_) => LossPlace::BeforeQueue,
            _ => LossPlace::BehindQueue,
        };
        let forward = path.forward.with_queue(QueueLimit::Packets(self.queue)).with_loss_place(place);
        PathConfig { forward, ..path }
    }
}

impl WirelessLoss {
    fn model(self) -> LossModel {
        let micros = Duration::from_micros;
        match self {
            Self::Independent(loss) | Self::Dropped(loss) => {
                LossModel::Bernoulli(Probability::new(loss).expect("a probability"))
            }
            Self::Bursts(loss, packets) => {
                let mean = Probability::new(loss).expect("a probability");
                LossModel::bursts(mean, packets).expect("possible")
            }
            Self::Oven(airtime) => {
                let on = micros(OVEN_PULSE_MICROS + airtime);
                LossModel::OnOff { period: micros(OVEN_PERIOD_MICROS), on, loss: Probability::ONE }
            }
            Self::HiddenTerminal { kilobits, airtime_micros } => LossModel::Collisions {
                // In microseconds: bits divided by kbit/s are milliseconds.
                interval: micros(1_000 * HIDDEN_BITS / kilobits.max(1)),
                vulnerable: micros(airtime_micros + HIDDEN_AIRTIME_MICROS),
            },
        }
    }
}

/// The capacity that other stations leave while they use the channel.
const OTHERS_LEAVE_KILOBITS: u64 = 50;
/// The oven of Fig. 9.
const OVEN_PERIOD_MICROS: u64 = 20_000;
const OVEN_PULSE_MICROS: u64 = 9_000;
/// The interference of Fig. 10: bits of a packet of 1445 bytes, and its airtime at 11 Mbit/s.
const HIDDEN_BITS: u64 = 8 * 1_445;
const HIDDEN_AIRTIME_MICROS: u64 = 1_269;
/// Parameters of both figures.
const WLAN_RTT_MICROS: u64 = 10_000;
const WLAN_QUEUE: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: C11
    #[test]
    fn a_packet_is_lost_if_its_airtime_overlaps_a_pulse_of_the_oven() {
        let LossModel::OnOff { period, on, loss } = OVEN[0].beside_oven().config().forward.loss else {
            panic!("an oven")
        };
        assert_eq!((period.as_micros(), on.as_micros(), loss), (20_000, 11_426, Probability::ONE));
        // At 1 Mbit/s a packet takes longer than the 11 ms between pulses, so every packet is lost.
        let slow = Phy { kilobits: 1_000, airtime_micros: 12_480, cycle_micros: 13_500 };
        let LossModel::OnOff { period, on, .. } = slow.beside_oven().config().forward.loss else {
            panic!("an oven")
        };
        assert!(on > period);
    }

    // Requirement: C11
    #[test]
    fn the_frames_of_a_hidden_terminal_follow_from_its_rate() {
        let LossModel::Collisions { interval, vulnerable } =
            HIDDEN_TERMINAL.beside_terminal(1_156).config().forward.loss
        else {
            panic!("collisions")
        };
        assert_eq!((interval.as_micros(), vulnerable.as_micros()), (10_000, 2_578));
    }

    #[test]
    fn a_hotspots_queue_is_a_bandwidth_delay_product() {
        let first = HOTSPOTS[0].path;
        assert_eq!(first.queue, 20);
        assert_eq!(first.config().forward.loss_place, LossPlace::BehindQueue);
        assert_eq!(HOTEL.config().forward.loss_place, LossPlace::BeforeQueue);
    }
}
