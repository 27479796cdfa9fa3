//! Many flows of one kind on one link, for a minute.

use core::fmt;
use core::time::Duration;

use ctcp_proto::TransportConfig;
use ctcp_repro::control::bottleneck;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::measure::{goodput_share, jain};
use ctcp_sim::network::FlowConfig;
use ctcp_sim::topology::Chain;

/// When flows start and whether they continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// All start at once.
    Together,
    /// Starts are spread over five seconds.
    Spread,
    /// A third of them ends after a third of the time, and as many start at once five seconds later.
    Restarts,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    pub(super) flows: usize,
    megabits: u64,
    rtt: Duration,
    /// In bandwidth-delay products; at least ten packets.
    queue: f64,
    loss: f64,
    course: Course,
}

/// Every cell.
pub(super) fn cells() -> Vec<Crowd> {
    let mut cells = Vec::new();
    for flows in [1, 5, 20, 50, 200] {
        for megabits in [10, 25, 100] {
            for rtt in [5, 20, 100] {
                for queue in [0.5, 1.0, 4.0] {
                    for loss in [0.0, 0.05] {
                        for course in [Course::Together, Course::Spread, Course::Restarts] {
                            let rtt = Duration::from_millis(rtt);
                            cells.push(Crowd { flows, megabits, rtt, queue, loss, course });
                        }
                    }
                }
            }
        }
    }
    cells
}

impl fmt::Display for Crowd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, megabits, rtt, queue, loss, course } = self;
        write!(
            formatter,
            "/{flows} flows {megabits} Mbit/s {} ms queue {queue} loss {loss} {course:?}",
            rtt.as_millis()
        )
    }
}

/// The results of a crowd.
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    /// As a share of the link's rate.
    goodput: f64,
    /// The share of packets that the queue dropped, of those that reached it.
    dropped: f64,
    lost: f64,
    sent_per_byte: f64,
    jain: f64,
    /// The smallest goodput of the flows that ran all the time, relative to an equal share.
    least: f64,
}

impl Crowd {
    pub(super) fn run(&self, transport: &TransportConfig, time: Duration) -> Got {
        let path = bottleneck(self.megabits, self.rtt, self.queue, self.loss);
        let mut chain = Chain::dumbbell(1, &path);
        let rate = path.forward.rate;
        let third = time / 3;
        let fair = rate.bytes_in(third) / self.flows as u64;
        let mut whole = Vec::new();
        for number in 0..self.flows {
            let start = match self.course {
                Course::Together => Duration::ZERO,
                Course::Spread | Course::Restarts => {
                    Duration::from_secs(5) * number as u32 / self.flows as u32
                }
            };
            if self.course == Course::Restarts && number % 3 == 2 {
                let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, fair * 9 / 10)]);
                chain.flow(FlowConfig::new(script, transport).starting_after(start));
                let again = FlowConfig::new(Script::endless(), transport);
                chain.flow(again.starting_after(third + Duration::from_secs(5)));
            } else {
                let config = FlowConfig::new(Script::endless(), transport).starting_after(start);
                whole.push(chain.flow(config));
            }
        }
        let mut network = chain.build();
        network.simulation.set_scrutiny(ctcp_sim::Scrutiny::LIGHT);
        network.run_for(time);
        let all: Vec<f64> = (0..network.flows().len()).map(|flow| network.bytes_read(flow) as f64).collect();
        let whole: Vec<f64> = whole.iter().map(|&flow| all[flow]).collect();
        let total: f64 = all.iter().sum();
        let hop = network.hops()[0];
        let link = network.simulation.link(hop).way(Direction::Forward).stats();
        let mean = whole.iter().sum::<f64>() / whole.len() as f64;
        Got {
            goodput: goodput_share(total as u64, time, rate),
            dropped: link.dropped as f64 / (link.offered - link.lost).max(1) as f64,
            lost: link.lost as f64 / link.offered.max(1) as f64,
            sent_per_byte: link.bytes_offered as f64 / total.max(1.0),
            jain: jain(&whole),
            least: whole.iter().copied().fold(f64::INFINITY, f64::min) / mean,
        }
    }
}

impl Got {
    /// Returns the checks that fail, compared with as many Reno flows.
    pub(super) fn judge(&self, reno: &Self) -> Vec<String> {
        let most = 1.08 / ((1.0 - self.lost) * (1.0 - self.dropped));
        let checks = [
            (self.dropped <= (1.3 * reno.dropped).max(0.002), "DROPS"),
            (self.sent_per_byte <= most, "BYTES"),
            (self.goodput >= 0.85 * 0.957, "GOODPUT"),
            (self.goodput >= reno.goodput - 0.005, "BELOW RENO"),
            (self.jain >= 0.9, "JAIN"),
        ];
        checks.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what.to_owned()).collect()
    }
}

impl fmt::Display for Got {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "goodput {:.3} dropped {:.4} bytes {:.3} jain {:.3} least {:.2}",
            self.goodput, self.dropped, self.sent_per_byte, self.jain, self.least
        )
    }
}
