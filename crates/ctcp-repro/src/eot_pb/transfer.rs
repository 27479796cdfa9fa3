//! The network of EOT/PB: a source, a sink, one link, and a file.
//!
//! ```text
//!   source ============== sink        5 Mbit/s, queue of 100 packets; acknowledgements are never lost
//! ```
//!
//! Packets count as 1000 bytes and acknowledgements as 40, regardless of their actual sizes. At most 100 packets are
//! unacknowledged. File sizes are counted in symbols, each standing for a packet of 1000 bytes. The time of a file runs
//! from the first packet of the handshake until the sink has read the whole file.

use core::time::Duration;
use std::sync::Arc;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::{TCP_NC, TCP_NC_PB, WINDOW_EOT_ESTIMATED, end_of_transmission, pseudo_block};
use ctcp_netem::{Charge, LinkConfig, LossModel, LossPlace, PathConfig, QueueLimit};
use ctcp_proto::{Catalogue, Profile, Ratio, Redundancy, TransportConfig};
use ctcp_sim::application::script::Script;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;
use ctcp_sim::{Scrutiny, Stop};

use crate::changes::Changes;
use crate::theory::adjusted_redundancy::adjusted_redundancy;

/// The success rate S of R_a.
const SUCCESS: f64 = 0.9;
/// Bytes per symbol, as small as possible, because its size is not part of the simulation.
const SYMBOL: u16 = 256;
/// More than the longest file, so that only the protocol limits the source.
const CREDIT: u64 = 1 << 40;
/// A time limit longer than any transfer.
const LIMIT: Duration = Duration::from_secs(10_000_000);

/// The three algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Nc,
    Eot,
    Pb,
}

/// The redundancy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factor {
    /// 1/(1-p).
    Theoretical,
    /// R_a for the packets of the file.
    Adjusted,
    /// R_a for this number of packets, another reading of t.
    AdjustedTo(u64),
}

/// The transfer of a file, independent of the scheme.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) packets: u64,
    pub(super) loss: f64,
    pub(super) factor: Factor,
    /// Rate of the link in Mbit/s.
    pub(super) megabits: u64,
    /// One-way delay in milliseconds.
    pub(super) delay: u64,
    /// Whether packets are lost after the queue, having used the link.
    pub(super) is_lost_behind: bool,
    /// Whether the sink acknowledges every arrival and a time-out retransmits everything, as in TCP/NC.
    pub(super) is_as_tcp_nc: bool,
    /// Whether coding is symbolic: combinations have no coefficients and are innovative whenever they can be.
    pub(super) is_symbolic: bool,
    /// Whether N_lp is the source's own estimate (section V).
    pub(super) is_estimated: bool,
    pub(super) seed: u64,
}

impl Transfer {
    /// Creates a transfer as in most of the paper's simulations, with R_a and 50 ms.
    pub(super) fn new(packets: u64, loss: f64, seed: u64) -> Self {
        Self {
            packets,
            loss,
            factor: Factor::Adjusted,
            megabits: 5,
            delay: 50,
            is_lost_behind: true,
            is_as_tcp_nc: false,
            is_symbolic: true,
            is_estimated: false,
            seed,
        }
    }

    /// Returns the transfer over a changed link. The one-way delay is half of the round-trip time, in whole
    /// milliseconds.
    pub(super) fn changed_by(self, changes: Changes) -> Self {
        Self {
            megabits: changes.megabits.unwrap_or(self.megabits),
            delay: changes.rtt_millis.map_or(self.delay, |millis| millis / 2),
            ..self
        }
    }

    /// Returns R.
    fn redundancy(&self) -> f64 {
        match self.factor {
            Factor::Theoretical => 1.0 / (1.0 - self.loss),
            Factor::Adjusted => adjusted_redundancy(self.packets, self.loss, SUCCESS),
            Factor::AdjustedTo(packets) => adjusted_redundancy(packets, self.loss, SUCCESS),
        }
    }

    fn path(&self) -> PathConfig {
        let loss = LossModel::Bernoulli(Probability::new(self.loss).expect("a probability"));
        let place = if self.is_lost_behind { LossPlace::BehindQueue } else { LossPlace::BeforeQueue };
        let way = LinkConfig::default()
            .with_rate(Rate::from_megabits_per_second(self.megabits))
            .with_delay(Duration::from_millis(self.delay))
            .with_queue(QueueLimit::Packets(100));
        PathConfig {
            forward: way.clone().with_charge(Charge::every(1_000)).with_loss(loss).with_loss_place(place),
            backward: way.with_charge(Charge::every(40)),
        }
    }

    fn transport(&self, scheme: Scheme) -> TransportConfig {
        let ratio = Ratio::new(self.redundancy()).expect("R is at least 1");
        let redundancy = match scheme {
            Scheme::Nc => Redundancy::fixed(ratio),
            Scheme::Eot => end_of_transmission(ratio),
            Scheme::Pb => pseudo_block(ratio),
        };
        // The profile determines the behaviour of sink and source.
        let profile = if self.is_as_tcp_nc { TCP_NC } else { TCP_NC_PB };
        TransportConfig {
            profile: Profile { redundancy, ..profile },
            congestion_window_max: 100,
            symbol_size_max: SYMBOL,
            symbol_window: 65_536,
            coding_window: if self.is_symbolic { 65_536 } else { 16_384 },
            catalogue: self.catalogue(),
            connection_credit: CREDIT,
            connection_credit_max: CREDIT,
            stream_credit: CREDIT,
            stream_credit_max: CREDIT,
            idle_timeout: Duration::from_secs(36_000),
            handshake_timeout: Duration::from_secs(600),
            keep_alive: None,
            ..TransportConfig::default()
        }
    }

    fn catalogue(&self) -> Arc<Catalogue> {
        let simulated = ctcp_baselines::simulated();
        if self.is_estimated {
            Arc::new(Arc::unwrap_or_clone(simulated).replacing_code(WINDOW_EOT_ESTIMATED))
        } else {
            simulated
        }
    }

    /// Runs the transfer to the end, with time series if `width` is given.
    pub(super) fn run(&self, scheme: Scheme, width: Option<Duration>) -> Network {
        let size = bytes_of(self.packets);
        let mut chain = Chain::dumbbell(self.seed, &self.path());
        let flow = FlowConfig::new(Script::bulk(size), &self.transport(scheme));
        chain.flow(if self.is_symbolic { flow.symbolic() } else { flow });
        let mut network = chain.build();
        network.simulation.set_scrutiny(Scrutiny::LIGHT);
        if let Some(width) = width {
            network.keep_series(width);
        }
        network.run_for(Duration::ZERO);
        let stop = network.simulation.run_for(LIMIT, |simulation| simulation.ledger().total_read() == size);
        assert_eq!(stop, Stop::Done, "{scheme:?} {self:?}");
        assert_eq!(network.receiver_stats(0).symbols_decoded, self.packets, "{scheme:?} {self:?}");
        network
    }

    /// Returns the duration in seconds and the number of events.
    pub(super) fn time(&self, scheme: Scheme) -> (f64, u64) {
        let network = self.run(scheme, None);
        let time = network.simulation.now() - ctcp_sim::Simulation::START;
        (time.as_secs_f64(), network.simulation.events())
    }
}

/// Returns the bytes of a file that takes this many symbols. Each symbol has a length of two bytes and a stream frame
/// with an offset of 0, 1, 2, 4 or 8 bytes.
fn bytes_of(packets: u64) -> u64 {
    (0..packets).fold(0, |offset, _| {
        let number = match offset {
            0 => 0,
            1..0x40 => 1,
            0x40..0x4000 => 2,
            0x4000..0x4000_0000 => 4,
            _ => 8,
        };
        offset + u64::from(SYMBOL) - 4 - number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eot_completes_no_later_than_nc() {
        for seed in 0..3 {
            let transfer = Transfer::new(300, 0.1, seed);
            let (nc, eot) = (transfer.run(Scheme::Nc, None), transfer.run(Scheme::Eot, None));
            // `run` has checked the number of packets decoded.
            assert!(eot.simulation.now() <= nc.simulation.now());
        }
    }

    #[test]
    fn offsets_beyond_2_to_the_30_bytes_take_more_of_each_packet() {
        assert_eq!([1, 2, 3].map(bytes_of), [252, 252 + 250, 252 + 2 * 250]);
        assert!(bytes_of(5_000_000) < 5_000_000 * 248);
    }
}
