//! Utilisation over loss, rate, round trip, queue and noise, as tables that are read before they are changed.
//!
//! A cell is `utilisation / mean queue in ms / packets sent for one that could arrive`.

use core::fmt::Write;

use super::*;

const LOSSES: [f64; 6] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3];

fn row(algorithm: Algorithm, conditions: Conditions, losses: &[f64], seconds: u64) -> String {
    let controller = algorithm.controller(DATAGRAM);
    let mut row = format!(
        "{:6} {:3} Mbit/s {:3} ms queue {:4} noise {} ms",
        controller.name(),
        conditions.megabits,
        conditions.rtt.as_millis(),
        conditions.queue,
        conditions.noise.as_millis(),
    );
    for &loss in losses {
        let outcome = alone(algorithm.controller(DATAGRAM), Conditions { loss, ..conditions }, seconds);
        write!(
            row,
            "  {:.2}/{:.0}/{:.1}",
            outcome.utilisation,
            outcome.queueing.as_secs_f64() * 1e3,
            outcome.cost,
        )
        .expect("a string takes all");
    }
    row
}

fn check(actual: &str, snapshot: &str) {
    assert!(actual == snapshot, "the table changed; it is now:\n{actual}");
}

#[test]
fn the_quick_table_is_as_reviewed() {
    let mut table = String::new();
    for algorithm in [Algorithm::CTCP, Algorithm::RENO, Algorithm::DEFAULT] {
        for (megabits, rtt, queue, noise) in [
            (25, 20, 1.0, 0),
            (25, 20, 1.0, 1_000),
            (25, 20, 0.25, 0),
            (5, 100, 1.0, 0),
            (25, 10, 1.0, 1_000),
        ] {
            let conditions = Conditions::new(megabits, rtt, queue, 0.0).with_noise(noise);
            table += &row(algorithm, conditions, &[0.0, 0.05, 0.2], 4);
            table.push('\n');
        }
    }
    check(&table, include_str!("snapshots/quick.txt"));
}

#[test]
#[ignore = "648 runs: two minutes with optimisation"]
fn the_whole_table_is_as_reviewed() {
    let mut table = String::new();
    for algorithm in [Algorithm::CTCP, Algorithm::RENO, Algorithm::DEFAULT] {
        for noise in [0, 1_000] {
            for megabits in [5, 25, 100] {
                for rtt in [10, 20, 100] {
                    for queue in [0.25, 1.0] {
                        let conditions = Conditions::new(megabits, rtt, queue, 0.0).with_noise(noise);
                        table += &row(algorithm, conditions, &LOSSES, 10);
                        table.push('\n');
                    }
                }
            }
        }
    }
    check(&table, include_str!("snapshots/whole.txt"));
}
