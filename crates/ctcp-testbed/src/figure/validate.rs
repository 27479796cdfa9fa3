//! Checks from outside that the emulator follows its plan: ping, datagrams, and kernel TCP against its formula.
//!
//! What a left-out run would have shown is skipped. The check of the left-out runs fails instead.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_repro::statistics::summary;
use ctcp_repro::theory::padhye;
use ctcp_repro::{Axis, Outcome, Plot, Scale, Want};

use super::Figure;
use crate::bulk::Request;
use crate::emulator::LATENESS_LIMIT;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Ctcp, KernelTcp, Peer};
use crate::plan::{NetworkPlan, PathPlan, bandwidth_delay_packets};
use crate::probe::{Datagrams, ping};
use crate::testbed::{Testbed, download};

pub(super) const FIGURE: Figure = Figure {
    id: "validate",
    paper: "-",
    title: "the emulator itself: round trips, loss, rate, kernel TCP, and how late it is",
    measure,
};

const RATE: Rate = Rate::from_megabits_per_second(25);
const RTT: Duration = Duration::from_millis(20);
/// The rate that the emulator has to sustain.
const BUSY_RATE: Rate = Rate::from_megabits_per_second(100);
/// The payload share of a full kernel TCP packet with time stamps.
const SEGMENT: f64 = 1_448.0 / 1_500.0;
/// The tolerance for a share of lost packets, in standard errors. One run in a thousand exceeds it by chance.
const STANDARD_ERRORS: f64 = 3.3;

const PINGS_LOST: &str = "pings lost";
/// The checks of round trips, and the share of them that each is about.
const PING_TIMES: [(&str, f64); 2] = [("ping, median, ms", 0.5), ("ping, 99th percentile, ms", 0.99)];

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let seeds = testbed.settings.seeds_or(3, 1);
    testbed.expect_runs(5 + 2 * seeds as usize);
    let plot = Plot {
        title: "How late packets were at 100 Mbit/s",
        x: Axis { label: "share of packets that were less late", scale: Scale::Percent },
        y: Axis { label: "late by (ms)", scale: Scale::Linear },
        hidden: &["round trip (ms)", "share lost", "rate of the link", "goodput / link rate"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    round_trips(testbed, &mut outcome)?;
    datagrams(testbed, &mut outcome)?;
    kernel_tcp(testbed, &mut outcome, seeds)?;
    lateness(testbed, &mut outcome, "kernel TCP", &KernelTcp::CUBIC)?;
    // The second path is the probe's.
    lateness(testbed, &mut outcome, "our proxies", &Ctcp::FIRST_PATH)?;
    outcome.notes = vec![
        "a whole way's error is seen by datagrams on a path without other traffic, through the same emulator: it has the sockets' and the threads' own delays in it",
        "TCP Reno is expected at sqrt(1.5/p) packets of 1448 bytes a round trip (Mathis et al., 1997)",
    ];
    Ok(outcome)
}

fn plan(seed: u64, rate: Rate, loss: f64, paths: usize) -> NetworkPlan {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    let path = PathPlan::new(PathConfig::new(rate, RTT, loss).with_lossless_return());
    NetworkPlan::new(seed, vec![path; paths])
}

fn round_trips(testbed: &mut Testbed<'_>, outcome: &mut Outcome) -> Result<(), TestbedError> {
    let count = if testbed.settings.quick { 100 } else { 1_000 };
    let pings = |network: &Network| ping(network, count, Duration::from_millis(5));
    let found = testbed.measure("ping", &plan(1, RATE, 0.0, 1), pings)?;
    let Some(found) = found else {
        outcome.skip(PINGS_LOST);
        PING_TIMES.into_iter().for_each(|(name, _)| outcome.skip(name));
        return Ok(());
    };
    let millis = sorted(found.iter().map(|round_trip| round_trip.as_secs_f64() * 1e3));
    // The round-trip time and twice the time of a packet of 84 bytes at the link's rate.
    let wanted = RTT.as_secs_f64() * 1e3 + 2.0 * 84.0 * 8.0 / RATE.as_bits_per_second() as f64 * 1e3;
    // A round trip passes the emulator twice.
    let limit = 2.0 * LATENESS_LIMIT.as_secs_f64() * 1e3;
    outcome.exact("round trip (ms)", 0.5, percentile(&millis, 0.5));
    outcome.exact("round trip (ms)", 0.99, percentile(&millis, 0.99));
    outcome.check(PINGS_LOST, Want::AtMost(0.0), f64::from(count) - found.len() as f64);
    for (name, share) in PING_TIMES {
        let want = Want::Within { of: wanted, margin: limit };
        outcome.check(name, want, percentile(&millis, share));
    }
    Ok(())
}

fn datagrams(testbed: &mut Testbed<'_>, outcome: &mut Outcome) -> Result<(), TestbedError> {
    let time = Duration::from_secs(if testbed.settings.quick { 3 } else { 20 });
    for (share, loss) in [(0.8, 0.05), (1.5, 0.0)] {
        let rate = Rate::from_bits_per_second((RATE.as_bits_per_second() as f64 * share) as u64);
        let flow = Datagrams { path: 0, packet_bytes: 1_500, rate, time };
        let label = format!("datagrams at {share} of the link, loss {loss}");
        let name = if loss > 0.0 {
            "datagrams lost at 5 %, standard errors from it"
        } else {
            "datagrams through a full link / its rate"
        };
        let found = testbed.measure(&label, &plan(2, RATE, loss, 1), |network| flow.run(network))?;
        let Some(found) = found else {
            outcome.skip(name);
            continue;
        };
        if loss > 0.0 {
            let error = (loss * (1.0 - loss) / found.sent.max(1) as f64).sqrt();
            outcome.exact("share lost", loss, found.loss());
            let want = Want::Within { of: 0.0, margin: STANDARD_ERRORS };
            outcome.check(name, want, (found.loss() - loss) / error);
        } else {
            // From the time when the queue is certainly full.
            let got = found.rate_between(Duration::from_secs(1), time) / RATE.as_bits_per_second() as f64;
            outcome.exact("rate of the link", share, got);
            let want = Want::Within { of: 1.0, margin: 0.005 };
            outcome.check(name, want, got);
        }
    }
    Ok(())
}

fn kernel_tcp(testbed: &mut Testbed<'_>, outcome: &mut Outcome, seeds: u32) -> Result<(), TestbedError> {
    let time = Duration::from_secs(if testbed.settings.quick { 10 } else { 30 });
    for (peer, loss) in [(KernelTcp::RENO, 0.01), (KernelTcp::CUBIC, 0.0)] {
        let mut shares = Vec::new();
        for seed in 0..u64::from(seeds) {
            let request = Request { bytes: None, time };
            if let Some(measured) = testbed.download(&peer, &plan(seed, RATE, loss, 1), request)? {
                shares.push(measured.transfer.goodput() / RATE.as_bits_per_second() as f64);
            }
        }
        let name =
            if loss > 0.0 { "kernel Reno at 1 %, against sqrt(1.5/p)" } else { "kernel Cubic without loss" };
        if shares.is_empty() {
            outcome.skip(name);
            continue;
        }
        let found = summary(&shares).mean;
        outcome.point(&format!("{}, goodput / link rate", peer.name()), loss, &summary(&shares));
        if loss > 0.0 {
            if testbed.settings.quick {
                // A short run has few losses, so it may be off by a fifth.
                outcome.skip(name);
                continue;
            }
            let model = padhye::efficiency(loss, bandwidth_delay_packets(RATE, RTT)) * SEGMENT;
            outcome.check(name, Want::Within { of: 1.0, margin: 0.15 }, found / model);
        } else {
            outcome.check(name, Want::AtLeast(0.93), found);
        }
    }
    Ok(())
}

/// The lateness of the emulator and of datagrams during a download that keeps both ends busy.
fn lateness(
    testbed: &mut Testbed<'_>,
    outcome: &mut Outcome,
    name: &str,
    peer: &dyn Peer,
) -> Result<(), TestbedError> {
    let time = Duration::from_secs(if testbed.settings.quick { 5 } else { 20 });
    let probe =
        Datagrams { path: 1, packet_bytes: 100, rate: Rate::from_bits_per_second(100 * 8 * 500), time };
    let plan = plan(3, BUSY_RATE, 0.0, 2);
    let found = testbed.measure(&format!("lateness under {name}"), &plan, |network| {
        std::thread::scope(|scope| {
            let arrivals = scope.spawn(|| probe.run(network));
            let measured = download(network, peer, Request { bytes: None, time });
            let arrivals = arrivals.join().expect("a probe does not panic");
            Ok((measured?, arrivals?, network.report().lateness))
        })
    })?;
    let Some((measured, arrivals, late)) = found else {
        outcome.check(format!("lateness under {name}, 99th percentile, ms"), Want::AtMost(0.3), f64::NAN);
        return Ok(());
    };
    let expected = RTT / 2 + BUSY_RATE.time_to_send(probe.packet_bytes as u64);
    let errors = sorted(arrivals.delays().map(|delay| (delay.as_secs_f64() - expected.as_secs_f64()) * 1e3));
    for (share, emulator) in
        [(0.5, late.p50_ms), (0.99, late.p99_ms), (0.999, late.p999_ms), (1.0, late.max_ms)]
    {
        outcome.exact(&format!("deliveries, {name}"), share, emulator);
        outcome.exact(&format!("a whole way, {name}"), share, percentile(&errors, share));
    }
    let goodput = measured.transfer.goodput() / BUSY_RATE.as_bits_per_second() as f64;
    outcome.exact(&format!("{name} at 100 Mbit/s, goodput / link rate"), 0.0, goodput);
    outcome.check(format!("lateness under {name}, 99th percentile, ms"), Want::AtMost(0.3), late.p99_ms);
    let error = percentile(&errors, 0.99);
    outcome.check(format!("a whole way's error under {name}, 99th percentile, ms"), Want::AtMost(0.3), error);
    Ok(())
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A percentile of sorted values, or NaN if there are none.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_value_that_so_many_do_not_exceed() {
        let values = sorted([3.0, 1.0, 2.0, 4.0].into_iter());
        assert_eq!([0.25, 0.5, 0.99, 1.0].map(|share| percentile(&values, share)), [1.0, 2.0, 4.0, 4.0]);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
