//! What the controllers do on a modelled link, and what all of them keep whatever happens.

use core::time::Duration;

use super::model::{Conditions, DATAGRAM, Model, jain};
use super::*;

mod invariants;
mod letter;
mod marks;
mod rate_based;
mod steady_changes;
mod steady_shares;
mod table;

/// Algorithm 2 with the same growth always: what laboratories compare with.
const CTCP_CONSTANT_ALPHA: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 6,
    name: "ctcp-constant-alpha",
    make: |datagram_size| Box::new(Ctcp::with_constant_alpha(datagram_size)),
    answers_to_marks: true,
    is_punctual: true,
    needs_symbols: false,
});

fn secs(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

/// A path of 20 ms with some queue.
fn rtt(queue_millis: u64) -> RttView {
    let (base, now) = (Duration::from_millis(20), Duration::from_millis(20 + queue_millis));
    RttView {
        latest: now,
        smoothed: now,
        variance: base / 10,
        minimum: base,
        minimum_ever: base,
        standing: now,
    }
}

/// An acknowledgement over such a path.
fn acked(number: u64, largest_sent: u64, queue_millis: u64) -> Acked {
    Acked {
        now: Instant::from_millis(number),
        number: PacketNumber(number),
        sent_time: Instant::ZERO,
        sample: None,
        size: DATAGRAM,
        in_flight: 10,
        largest_sent: PacketNumber(largest_sent),
        rtt: rtt(queue_millis),
        loss_average: 0.0,
        is_app_limited: false,
        delivery_rate: None,
        ecn_ce: false,
    }
}

/// What one flow makes of a link.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Packets that arrived, as a share of what the link carries.
    utilisation: f64,
    /// Mean time a packet waits in the queue.
    queueing: Duration,
    /// Packets sent for one that the random loss would let through: 1 unless the queue overflows.
    cost: f64,
}

/// Runs one flow for `seconds` behind two of start.
fn alone(controller: Box<dyn Controller>, conditions: Conditions, seconds: u64) -> Outcome {
    let mut model = Model::new(conditions, 1).flow(controller, Instant::ZERO);
    model.run(secs(2));
    model.queueing();
    let measured = model.run(secs(2 + seconds))[0];
    Outcome {
        utilisation: measured.arrived as f64 / conditions.packets_in(Duration::from_secs(seconds)),
        queueing: model.queueing(),
        cost: measured.sent as f64 * (1.0 - conditions.loss) / measured.arrived.max(1) as f64,
    }
}

fn default_alone(conditions: Conditions, seconds: u64) -> Outcome {
    alone(Algorithm::DEFAULT.controller(DATAGRAM), conditions, seconds)
}

/// The link of the paper's Fig. 3a: 25 Mbit/s, 20 ms, a queue of one bandwidth-delay product.
fn papers_link(loss: f64) -> Conditions {
    Conditions::new(25, 20, 1.0, loss)
}

#[test]
fn the_default_fills_the_papers_link_at_any_loss_and_with_noisy_clocks() {
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2, 0.3] {
        for noise in [0, 1_000] {
            let outcome = default_alone(papers_link(loss).with_noise(noise), 8);
            assert!(outcome.utilisation > 0.97, "loss {loss}, noise {noise}: {outcome:?}");
            assert!(outcome.queueing < Duration::from_millis(7), "loss {loss}, noise {noise}: {outcome:?}");
            assert!(outcome.cost < 1.02, "loss {loss}, noise {noise}: {outcome:?}");
        }
    }
}

#[test]
fn the_paper_keeps_its_promise_at_one_percent_and_tcp_does_not() {
    let ctcp = alone(Algorithm::CTCP.controller(DATAGRAM), papers_link(0.01), 20);
    assert!(ctcp.utilisation > 0.96, "{ctcp:?}");
    let reno = alone(Algorithm::RENO.controller(DATAGRAM), papers_link(0.01), 20);
    assert!((0.15..0.35).contains(&reno.utilisation), "{reno:?}");
}

#[test]
fn noise_starves_neither_the_papers_rule_nor_the_default() {
    let noisy = Conditions::new(100, 20, 1.0, 0.05).with_noise(1_000);
    let ctcp = alone(Algorithm::CTCP.controller(DATAGRAM), noisy, 5);
    let default = default_alone(noisy, 5);
    assert!(ctcp.utilisation > 0.85 && default.utilisation > 0.97, "{ctcp:?} {default:?}");
}

#[test]
fn loss_that_is_our_own_overflow_is_not_compensated() {
    for conditions in [
        Conditions::new(100, 10, 0.25, 0.0),
        Conditions::new(25, 20, 0.25, 0.05),
        Conditions::new(25, 20, 0.08, 0.0),
    ] {
        let outcome = default_alone(conditions, 8);
        assert!(outcome.cost < 1.15 && outcome.utilisation > 0.97, "{conditions:?}: {outcome:?}");
    }
}

#[test]
fn the_queue_stays_small_for_minutes_and_is_not_taken_for_the_path() {
    let mut model =
        Model::new(papers_link(0.0), 1).flow(Algorithm::DEFAULT.controller(DATAGRAM), Instant::ZERO);
    model.run(secs(50));
    model.queueing();
    let measured = model.run(secs(60))[0];
    assert!(model.queueing() < Duration::from_millis(4), "{:?}", model.queueing());
    assert!(model.rtt(0).minimum < Duration::from_millis(21), "{:?}", model.rtt(0));
    assert!(measured.arrived as f64 > 0.98 * model.conditions.packets_in(Duration::from_secs(10)));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let conditions = papers_link(0.05).with_noise(1_000);
        let mut model =
            Model::new(conditions, 7).flow(Algorithm::DEFAULT.controller(DATAGRAM), Instant::ZERO);
        let measured = model.run(secs(2))[0];
        (measured.sent, measured.arrived, model.controller(0).window().to_bits(), model.rtt(0))
    };
    assert_eq!(run(), run());
}
