use super::*;
use core::time::Duration;
use ctcp_base::Instant;

/// Sends symbols in a steady stream, each with the repairs that are owed. Returns the repairs.
fn stream(protection: &mut Protection, symbols: u64, loss_every: u64) -> u64 {
    let mut repairs = 0;
    for index in 0..symbols {
        let now = Instant::from_micros(3_200 * index);
        protection.on_symbol(&Situation { now, ..Situation::BULK });
        while protection.is_owed(false) {
            protection.on_repair(false);
            repairs += 1;
        }
        protection.on_fate(loss_every > 0 && index % loss_every == 0);
    }
    repairs
}

fn share(loss: f64) -> f64 {
    Protection { loss, ..Protection::new(Redundancy::FROM_LOSS) }.share()
}

#[test]
fn a_clean_path_gets_less_than_one_repair_in_a_hundred() {
    let repairs = stream(&mut Protection::new(Redundancy::FROM_LOSS), 10_000, 0);
    assert!((1..100).contains(&repairs), "{repairs}");
    assert_eq!(share(0.0), 0.0);
}

#[test]
fn repairs_keep_within_the_budget() {
    for (every, loss) in [(100, 0.01), (20, 0.05), (10, 0.1), (4, 0.25)] {
        let mut protection = Protection::new(Redundancy::FROM_LOSS);
        let repairs = stream(&mut protection, 10_000, every) as f64 / 10_000.0;
        assert!(repairs <= PACKETS_PER_SYMBOL / (1.0 - loss) - 1.0 + 0.01, "loss {loss}: {repairs}");
        assert!(repairs >= loss / (1.0 - loss) + 0.3, "loss {loss}: {repairs}");
    }
}

#[test]
fn the_share_follows_the_loss() {
    let shares = [0.001, 0.003, 0.01, 0.05, 0.2].map(share);
    assert!(shares.is_sorted(), "{shares:?}");
    assert!(shares[0] < 0.2 && shares[4] > 0.6, "{shares:?}");
}

#[test]
fn a_repair_gives_nothing_to_symbols_sent_after_it() {
    let mut protection = Protection { loss: 0.05, ..Protection::new(Redundancy::FROM_LOSS) };
    (0..4).for_each(|_| protection.on_repair(false));
    let mut sent = 0;
    while !protection.is_owed(false) {
        protection.on_symbol(&Situation::BULK);
        sent += 1;
    }
    assert!((3..16).contains(&sent), "{sent}");
}

#[test]
fn a_repair_for_a_deficit_protects_no_other_symbol() {
    let mut protection = Protection::new(Redundancy::FROM_LOSS);
    (0..3).for_each(|_| protection.on_symbol(&Situation::BULK));
    assert!(protection.is_owed(false));
    protection.on_repair(true);
    assert!(protection.is_owed(false));
}

#[test]
fn a_thin_flow_may_repair_every_message() {
    let mut protection = Protection { loss: 0.05, ..Protection::new(Redundancy::FROM_LOSS) };
    for index in 0..100 {
        let now = Instant::ZERO + Duration::from_millis(100) * index;
        protection.on_symbol(&Situation { now, ..Situation::BULK });
        assert!(protection.is_owed(true), "{index}");
        protection.on_repair(false);
    }
}

#[test]
fn a_deficit_gets_more_than_it_lacks_if_packets_are_lost() {
    let needed = |loss: f64, dispersion: f64, missing: u64| {
        let protection = Protection { loss, ..Protection::new(Redundancy::FROM_LOSS) };
        let margin = protection.margin(dispersion);
        (0..).find(|&sent| !margin.is_short(sent, missing)).expect("finite")
    };
    assert_eq!(needed(0.0, 1.0, 1), 1);
    assert_eq!(needed(0.01, 1.0, 1), 2);
    assert_eq!(needed(0.1, 1.0, 1), 3);
    assert!(needed(0.05, 4.7, 3) > needed(0.05, 1.0, 3));
}
