//! Descriptions of networks, which figures also print.
//!
//! *Forward* is from the server's namespace to the client's, the direction of a download's data; *backward* is the
//! direction of its requests and acknowledgements. Rates and queues count whole IP packets.
//!
//! ```
//! use core::time::Duration;
//! use ctcp_base::{Probability, Rate};
//! use ctcp_netem::{LossModel, PathConfig};
//! use ctcp_testbed::plan::{NetworkPlan, PathPlan};
//!
//! let loss = LossModel::Bernoulli(Probability::new(0.05).unwrap());
//! let path = PathConfig::new(Rate::from_megabits_per_second(25), Duration::from_millis(20), loss);
//! let plan = NetworkPlan::new(7, [PathPlan::new(path.with_lossless_return())]);
//! assert!(plan.to_string().starts_with("seed 7; forward 25 Mbit/s, 10 ms, queue 42 packets, loss 5 %"));
//! ```

use core::fmt;
use core::time::Duration;

use ctcp_base::{Instant, Rate};
use ctcp_netem::{FULL_PACKET_BYTES, Hop, LinkConfig, LossModel, LossPlace, PathConfig, QueueLimit, Trace};

/// The maximum number of paths of a network.
pub const PATHS_MAX: usize = 5;

/// One direction of a path: consecutive links.
#[derive(Clone, Debug, PartialEq)]
pub struct WayPlan {
    /// Packets enter the first one; each may change over time according to its trace.
    pub hops: Vec<(LinkConfig, Option<Trace>)>,
}

/// A path between the two namespaces, with its own addresses at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPlan {
    /// The direction from the server to the client.
    pub forward: WayPlan,
    /// The direction from the client to the server.
    pub backward: WayPlan,
}

/// Everything between the two namespaces.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPlan {
    /// The paths, from one to [`PATHS_MAX`].
    pub paths: Vec<PathPlan>,
    /// Links that the packets of all paths go through after their own, such as a common bottleneck.
    pub shared: Option<PathPlan>,
    /// The seed of all randomness. The outcome also depends on what is sent when.
    pub seed: u64,
}

impl WayPlan {
    /// One link. Packets are read with their headers, so no overhead is added.
    #[must_use]
    pub fn new(link: LinkConfig) -> Self {
        Self { hops: vec![(link.with_overhead(0), None)] }
    }

    /// Appends another link.
    #[must_use]
    pub fn then(mut self, link: LinkConfig) -> Self {
        self.hops.push((link.with_overhead(0), None));
        self
    }

    /// Lets the last link change according to `trace`, counted from the start of the network.
    ///
    /// # Panics
    /// Panics if the way has no hop.
    #[must_use]
    pub fn changing(mut self, trace: Trace) -> Self {
        self.hops.last_mut().expect("a way has a hop").1 = Some(trace);
        self
    }

    pub(crate) fn build(&self) -> impl Iterator<Item = Hop> {
        self.hops.iter().map(|(link, trace)| Hop {
            link: link.clone(),
            schedule: trace.as_ref().map(|trace| trace.schedule(Instant::ZERO)).unwrap_or_default(),
        })
    }
}

impl PathPlan {
    /// One link each way. [`PathConfig::new`] creates them as the papers describe theirs.
    #[must_use]
    pub fn new(path: PathConfig) -> Self {
        Self { forward: WayPlan::new(path.forward), backward: WayPlan::new(path.backward) }
    }

    /// Adds another hop on the client's side.
    #[must_use]
    pub fn then(self, path: PathConfig) -> Self {
        let backward = WayPlan::new(path.backward);
        let hops = [backward.hops, self.backward.hops].concat();
        Self { forward: self.forward.then(path.forward), backward: WayPlan { hops } }
    }
}

impl NetworkPlan {
    /// A network of these paths.
    ///
    /// # Panics
    /// Panics without a path, or with more than [`PATHS_MAX`].
    #[must_use]
    pub fn new(seed: u64, paths: impl IntoIterator<Item = PathPlan>) -> Self {
        let paths: Vec<PathPlan> = paths.into_iter().collect();
        assert!((1..=PATHS_MAX).contains(&paths.len()), "a network has 1 to {PATHS_MAX} paths");
        Self { paths, shared: None, seed }
    }

    /// Leads the packets of all paths through common links, after their own.
    #[must_use]
    pub fn through(self, shared: PathPlan) -> Self {
        Self { shared: Some(shared), ..self }
    }
}

impl fmt::Display for NetworkPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seed {}", self.seed)?;
        for path in &self.paths {
            write!(formatter, "; forward {}; backward {}", path.forward, path.backward)?;
        }
        if let Some(shared) = &self.shared {
            write!(
                formatter,
                "; all paths through: forward {}; backward {}",
                shared.forward, shared.backward
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for WayPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (link, trace)) in self.hops.iter().enumerate() {
            if index > 0 {
                formatter.write_str(", then ")?;
            }
            write_link(formatter, link)?;
            if trace.is_some() {
                formatter.write_str(", changing by a trace")?;
            }
        }
        Ok(())
    }
}

fn write_link(formatter: &mut fmt::Formatter<'_>, link: &LinkConfig) -> fmt::Result {
    match link.rate.as_bits_per_second() {
        0 => formatter.write_str("no rate limit")?,
        bits => write!(formatter, "{} Mbit/s", bits as f64 / 1e6)?,
    }
    write!(formatter, ", {}", Millis(link.delay))?;
    if !link.jitter.is_zero() {
        write!(formatter, " and up to {} more", Millis(link.jitter))?;
    }
    match link.queue {
        QueueLimit::Unlimited => {}
        QueueLimit::Packets(packets) => write!(formatter, ", queue {packets} packets")?,
        QueueLimit::Bytes(bytes) => write!(formatter, ", queue {bytes} bytes")?,
    }
    if link.loss == LossModel::None {
        return Ok(());
    }
    match link.loss_place {
        LossPlace::BeforeQueue => write!(formatter, ", {}", Loss(&link.loss)),
        LossPlace::BehindQueue => write!(formatter, ", {} behind the queue", Loss(&link.loss)),
    }
}

struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ms", (self.0.as_secs_f64() * 1e6).round() / 1e3)
    }
}

struct Loss<'a>(&'a LossModel);

impl fmt::Display for Loss<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share * 1e6).round() / 1e4;
        match self.0 {
            LossModel::None => formatter.write_str("no loss"),
            LossModel::Bernoulli(loss) => write!(formatter, "loss {} %", percent(loss.as_f64())),
            LossModel::GilbertElliott(chain) => {
                let length = 1.0 / chain.to_good.as_f64();
                let mean = percent(chain.mean());
                write!(formatter, "loss {mean} % in bursts of {} packets", (length * 10.0).round() / 10.0)
            }
            LossModel::OnOff { period, on, loss } => write!(
                formatter,
                "loss {} % for {} of every {}",
                percent(loss.as_f64()),
                Millis(*on),
                Millis(*period)
            ),
            LossModel::Collisions { interval, vulnerable } => write!(
                formatter,
                "collisions with frames every {} (Poisson), vulnerable for {}",
                Millis(*interval),
                Millis(*vulnerable)
            ),
            LossModel::Steps { step, losses, .. } => {
                write!(formatter, "loss by {} steps of {}", losses.len(), Millis(*step))
            }
            LossModel::Pattern(lost) => {
                write!(formatter, "{} scripted losses", lost.iter().filter(|lost| **lost).count())
            }
        }
    }
}

/// Packets of 1500 bytes in a round trip at a rate: the window that fills the path.
#[must_use]
pub fn bandwidth_delay_packets(rate: Rate, rtt: Duration) -> f64 {
    rate.as_bits_per_second() as f64 * rtt.as_secs_f64() / 8.0 / FULL_PACKET_BYTES as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Probability;

    fn link(megabits: u64) -> LinkConfig {
        LinkConfig::default()
            .with_rate(Rate::from_megabits_per_second(megabits))
            .with_delay(Duration::from_micros(7_500))
    }

    #[test]
    fn a_plan_describes_all_settings_of_its_links() {
        let half = Probability::new(0.5).expect("a probability");
        let on_off =
            LossModel::OnOff { period: Duration::from_millis(20), on: Duration::from_millis(9), loss: half };
        let bursts =
            LossModel::bursts(Probability::new(0.03).expect("a probability"), 3.0).expect("possible");
        let forward = WayPlan::new(link(8).with_loss(on_off).with_loss_place(LossPlace::BehindQueue))
            .then(link(3).with_jitter(Duration::from_millis(2)).with_loss(bursts))
            .changing(Trace::parse("1s down").expect("a trace"));
        let plan = NetworkPlan::new(3, [PathPlan { forward, backward: WayPlan::new(LinkConfig::default()) }]);
        assert_eq!(
            plan.to_string(),
            "seed 3; forward 8 Mbit/s, 7.5 ms, loss 50 % for 9 ms of every 20 ms behind the queue, \
             then 3 Mbit/s, 7.5 ms and up to 2 ms more, loss 3 % in bursts of 3 packets, changing by a trace; \
             backward no rate limit, 0 ms"
        );
    }

    #[test]
    fn the_second_hop_is_the_last_one_forward_and_the_first_one_backward() {
        let path = |megabits| PathConfig::symmetric(link(megabits));
        let plan = PathPlan::new(path(1)).then(path(2));
        let rates = |way: &WayPlan| -> Vec<u64> {
            way.hops.iter().map(|(link, _)| link.rate.as_bits_per_second() / 1_000_000).collect()
        };
        assert_eq!((rates(&plan.forward), rates(&plan.backward)), (vec![1, 2], vec![2, 1]));
        assert!(plan.forward.hops.iter().all(|(link, _)| link.overhead == 0));
    }

    #[test]
    fn a_plan_describes_the_links_that_its_paths_share() {
        let own = || PathPlan::new(PathConfig::symmetric(LinkConfig::default()));
        let plan = NetworkPlan::new(3, [own()]).through(PathPlan::new(PathConfig::symmetric(link(8))));
        let shared = "; all paths through: forward 8 Mbit/s, 7.5 ms; backward 8 Mbit/s, 7.5 ms";
        assert!(plan.to_string().ends_with(shared), "{plan}");
    }

    #[test]
    #[should_panic(expected = "1 to 5 paths")]
    fn a_network_without_paths_is_refused() {
        let _ = NetworkPlan::new(1, []);
    }
}
