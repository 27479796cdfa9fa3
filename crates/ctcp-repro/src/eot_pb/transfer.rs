//! The network of EOT/PB: a source, a sink, one link, and a file.
//!
//! ```text
//!   source ============== sink        5 Mbit/s, queue of 100 packets; acknowledgements are never lost
//! ```
//!
//! Packets count 1000 bytes and acknowledgements 40, whatever ours have; at most 100 packets are not acknowledged. A file is counted
//! in symbols, a packet of 1000 bytes each. Its time is from the first packet of the handshake, the connection request, until
//! the sink has read all of it.

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
/// Bytes of a symbol, as small as it may be: its size is not what is simulated.
const SYMBOL: u16 = 256;
/// More than the longest file has, so that nothing but the protocol holds the source back.
const CREDIT: u64 = 1 << 40;
/// Longer than any transfer takes.
const LIMIT: Duration = Duration::from_secs(10_000_000);

/// Which of the three algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Nc,
    Eot,
    Pb,
}

/// Which redundancy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factor {
    /// 1/(1-p).
    Theoretical,
    /// R_a of the file.
    Adjusted,
    /// R_a of so many packets, another reading of what t is.
    AdjustedTo(u64),
}

/// A transfer of a file, without the scheme that carries it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) packets: u64,
    pub(super) loss: f64,
    pub(super) factor: Factor,
    /// Rate of the link in Mbit/s.
    pub(super) megabits: u64,
    /// One way, in milliseconds.
    pub(super) delay: u64,
    /// Lost packets have used the link.
    pub(super) is_lost_behind: bool,
    /// The sink acknowledges what tells it nothing new and a time-out sends everything again, as in TCP/NC.
    pub(super) is_as_tcp_nc: bool,
    /// Combinations have no coefficients, and are innovative whenever they can be.
    pub(super) is_symbolic: bool,
    /// N_lp is the source's own estimate (section V).
    pub(super) is_estimated: bool,
    pub(super) seed: u64,
}

impl Transfer {
    /// As in most of the paper's simulations: R_a, 50 ms.
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

    /// The same over another link; half of a round-trip time is the way there, in whole milliseconds.
    pub(super) fn changed_by(self, changes: Changes) -> Self {
        Self {
            megabits: changes.megabits.unwrap_or(self.megabits),
            delay: changes.rtt_millis.map_or(self.delay, |millis| millis / 2),
            ..self
        }
    }

    /// R.
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
        // The profile says which sink and source it is.
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

    /// The file on its way to the end; with figures over time if `width` is given.
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

    /// How long it takes, in seconds, and the work it was.
    pub(super) fn time(&self, scheme: Scheme) -> (f64, u64) {
        let network = self.run(scheme, None);
        let time = network.simulation.now() - ctcp_sim::Simulation::START;
        (time.as_secs_f64(), network.simulation.events())
    }
}

/// Bytes of a file that takes so many symbols: each has a length of two bytes and a frame of a stream, whose offset is
/// of no, 1, 2, 4 or 8 bytes.
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
    fn a_file_has_its_packets_and_nc_and_eot_differ_from_the_last_one_on() {
        for seed in 0..3 {
            let transfer = Transfer::new(300, 0.1, seed);
            let (nc, eot) = (transfer.run(Scheme::Nc, None), transfer.run(Scheme::Eot, None));
            // `run` has compared the packets decoded.
            assert!(eot.simulation.now() <= nc.simulation.now());
        }
    }

    #[test]
    fn beyond_2_to_the_30_bytes_an_offset_takes_more_of_each_packet() {
        assert_eq!([1, 2, 3].map(bytes_of), [252, 252 + 250, 252 + 2 * 250]);
        assert!(bytes_of(5_000_000) < 5_000_000 * 248);
    }
}
