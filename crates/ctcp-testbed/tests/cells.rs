//! Several networks at once. These tests need root, and print a line if they are skipped.
#![cfg(target_os = "linux")]

use core::time::Duration;

use ctcp_netem::LinkConfig;
use ctcp_repro::{Axis, Outcome, Plot, Scale, Settings};
use ctcp_testbed::network::Network;
use ctcp_testbed::plan::{NetworkPlan, PathPlan, WayPlan};
use ctcp_testbed::testbed::Testbed;
use ctcp_testbed::{Stop, TestbedError};

/// A perfect path, identified by its seed.
fn place(cell: &u64) -> (String, NetworkPlan) {
    let way = || WayPlan::new(LinkConfig::default());
    (format!("cell {cell}"), NetworkPlan::new(*cell, [PathPlan { forward: way(), backward: way() }]))
}

/// Measures five cells at once; `None`, after printing the reason, if no network can be created.
#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
fn measure(
    testbed: &mut Testbed<'_>,
    measure: impl Fn(&Network, &u64) -> Result<u64, TestbedError> + Sync,
) -> Option<Result<Vec<(u64, u64)>, TestbedError>> {
    match testbed.measure_all(5, (0..5).collect(), place, measure) {
        Err(TestbedError::Missing(what)) => {
            eprintln!("SKIP: {what}");
            None
        }
        found => Some(found),
    }
}

fn testbed() -> Testbed<'static> {
    Testbed::new(Settings { quick: true, ..Settings::default() }, "ctcp".into(), Stop::default(), |_| ())
}

#[test]
fn every_cell_has_its_own_network_and_its_place_in_the_order_and_the_record() {
    let mut testbed = testbed();
    let Some(found) = measure(&mut testbed, |network, cell| Ok(100 * network.plan.seed + cell)) else {
        return;
    };
    assert_eq!(found, Ok((0..5).map(|cell| (cell, 101 * cell)).collect()));
    let axis = |label| Axis { label, scale: Scale::Linear };
    let plot = Plot { title: "t", x: axis("x"), y: axis("y"), hidden: &[], dots: &[] };
    let record = testbed.finish(&mut Outcome::new(plot, 1));
    let labels: Vec<&str> = record.runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["cell 0", "cell 1", "cell 2", "cell 3", "cell 4"]);
    assert!(record.runs.iter().all(|run| run.attempts == 1));
}

#[test]
fn a_failed_cell_stops_the_others_and_is_named() {
    let found = measure(&mut testbed(), |network, cell| {
        if *cell == 1 {
            return Err(TestbedError::failed("alas"));
        }
        // Longer than any test, so this ends only through the stop flag.
        network.stop.sleep(Duration::from_secs(3_600)).map(|()| *cell)
    });
    let Some(found) = found else { return };
    assert_eq!(found, Err(TestbedError::failed("cell 1: alas")));
}
