//! Downloads through relays: how much of the narrowest hop they use, and what they send for it.

use core::time::Duration;

use ctcp_base::Prng;

use super::chain::{Chain, Expected};
use super::several::Conditions;
use crate::code::mischief::{Mischief, Wrong};
use crate::{ConnectionError, HopRepair, RELAYED_PACKET, RELAYED_PAYLOAD, RelayBuffer};

/// The share of a download in a full packet on a hop.
const PAYLOAD: f64 = RELAYED_PAYLOAD as f64 / RELAYED_PACKET as f64;

/// Megabits per second and milliseconds of each hop.
fn hops(losses: &[f64]) -> Vec<Conditions> {
    losses.iter().map(|&loss| Conditions::new(25.0, 20, loss)).collect()
}

/// The share of the payload of two chains of relays, side by side, that a download gets.
fn measure_side_by_side(losses: [f64; 2], repair: HopRepair) -> f64 {
    const BYTES: u64 = 40_000_000;
    let (one, other) = (hops(&losses), hops(&losses));
    let mut chain = Chain::side_by_side(&[&one, &other], repair, 1);
    let time = chain.download(BYTES);
    let share = BYTES as f64 * 8e-6 / time.as_secs_f64() / 50.0 / PAYLOAD;
    println!("{repair:?}, two chains, losses {losses:?}: {share:.3} of the payload's share");
    share
}

/// The share of the narrowest hop's payload that a download gets, and bytes sent on the last hop for each useful byte that arrives.
fn measure(losses: &[f64], repair: HopRepair) -> (f64, f64) {
    const BYTES: u64 = 20_000_000;
    let mut chain = Chain::new(&hops(losses), repair, 1);
    let before = chain.sent_down(0);
    let time = chain.download(BYTES);
    let share = BYTES as f64 * 8e-6 / time.as_secs_f64() / 25.0 / PAYLOAD;
    let sent = (chain.sent_down(0) - before) as f64 / BYTES as f64 * (1.0 - losses[0]);
    println!(
        "{repair:?}, losses {losses:?}: {share:.3} of the payload's share, {sent:.3} bytes per byte times 1-p"
    );
    (share, sent)
}

// Requirement: N5
#[test]
fn relays_that_recode_use_nearly_all_of_the_narrowest_hop() {
    for losses in [&[0.0, 0.0][..], &[0.1, 0.1], &[0.2, 0.2], &[0.05, 0.1, 0.2]] {
        let (share, sent) = measure(losses, HopRepair::Combinations);
        assert!(share > 0.94 && sent < 1.12, "{share} {sent}");
    }
}

#[test]
fn relays_that_repeat_lost_symbols_work_as_well() {
    for losses in [&[0.1, 0.1][..], &[0.05, 0.1, 0.2]] {
        let (share, sent) = measure(losses, HopRepair::Repetitions);
        assert!(share > 0.85 && sent < 1.15, "{share} {sent}");
    }
}

#[test]
fn a_relay_holds_a_bounded_number_of_symbols_however_slow_the_next_hop_is() {
    let hops = [Conditions::new(1.0, 20, 0.1), Conditions::new(100.0, 20, 0.1)];
    let mut chain = Chain::new(&hops, HopRepair::Combinations, 2);
    chain.request(1_000_000);
    let mut most = 0;
    chain.run(Duration::from_secs(8), |chain| {
        most = most.max(chain.buffers[0].iter().map(RelayBuffer::memory).sum());
        false
    });
    assert!(chain.bytes_read() > 500_000, "{}", chain.bytes_read());
    // 512 symbols and two groups of kept ones, of 1,536 bytes each, in one direction, and kept ones in the other.
    assert!((100_000..1_100_000).contains(&most), "{most} bytes");
}

#[test]
fn a_relay_divides_what_is_too_large_for_its_next_hop() {
    for narrow in [0, 1] {
        let size = |hop| if hop == narrow { 1_280 } else { 1_472 };
        let hops = hops(&[0.1, 0.1]);
        let mut chain = Chain::with_datagrams(&[&hops], HopRepair::Combinations, 1, size);
        let time = chain.download(5_000_000);
        let share = 40.0 / time.as_secs_f64() / 25.0;
        println!("hop {narrow} takes 1,280 bytes: {share:.3} of the link");
        assert!(share > 0.5, "{share}");
    }
}

// Requirement: C13
#[test]
fn two_relays_side_by_side_add_up() {
    for losses in [[0.0, 0.0], [0.1, 0.1], [0.2, 0.2]] {
        let share = measure_side_by_side(losses, HopRepair::Combinations);
        assert!(share > 0.9, "{share}");
    }
    measure_side_by_side([0.1, 0.1], HopRepair::Repetitions);
}

// Requirement: C13
#[test]
fn a_relay_that_falls_silent_stalls_a_download_for_two_round_trips() {
    for hop in [0, 1] {
        let (one, other) = (hops(&[0.05, 0.05]), hops(&[0.05, 0.05]));
        let mut chain = Chain::side_by_side(&[&one, &other], HopRepair::Combinations, 1);
        chain.request(100_000_000);
        chain.run(Duration::from_secs(2), |_| false);
        chain.cut(hop);
        let stall = chain.longest_stall(Duration::from_secs(3));
        let before = chain.bytes_read();
        chain.run(Duration::from_secs(4), |_| false);
        let megabits = (chain.bytes_read() - before) as f64 * 8e-6 / 4.0;
        println!("hop {hop} cut: {stall:?}, then {megabits:.1} Mbit/s");
        assert!(stall.in_order < Duration::from_millis(2 * 40 + 200) && megabits > 0.85 * 25.0 * PAYLOAD);
        assert!(stall.any < Duration::from_millis(2 * 40));
    }
}

/// The things that a relay does wrong, how often, and in which direction.
fn mischief(seed: u64) -> (Mischief, usize, Vec<Wrong>) {
    let mut prng = Prng::new(seed);
    let mut bytes = [0; 8];
    prng.fill(&mut bytes);
    let chosen = Wrong::ALL.into_iter().enumerate().filter(|(place, _)| bytes[0] >> place & 1 == 1);
    let wrongs: Vec<Wrong> = chosen.map(|(_, wrong)| wrong).collect();
    let rate = if bytes[1] < 128 { 1 + bytes[2] % 8 } else { bytes[2] };
    (Mischief::new(wrongs.clone(), rate, prng), usize::from(bytes[3] % 4 > 0), wrongs)
}

/// What arrives is what was sent, whatever a relay does, and the other relay carries it when that one is found out.
#[test]
fn a_relay_that_misbehaves_changes_nothing_and_is_named() {
    const BYTES: u64 = 6_000_000;
    let mut found = 0;
    for seed in 0..32 {
        let (good, bad) = (hops(&[0.03, 0.03]), hops(&[0.03, 0.03]));
        let mut chain = Chain::side_by_side(&[&bad, &good], HopRepair::Combinations, seed);
        let (mischief, direction, wrongs) = mischief(seed);
        chain.request(BYTES);
        chain.run(Duration::from_millis(500), |_| false);
        chain.buffers[0][direction].misbehave(mischief);
        let stall = chain.longest_stall(Duration::from_secs(8));
        println!("seed {seed}, {wrongs:?} in direction {direction}: {stall:?}, {:?}", chain.errors.first());
        assert!(
            chain.is_whole() && stall.in_order < Duration::from_millis(300),
            "{} bytes",
            chain.bytes_read()
        );
        assert!(stall.any < Duration::from_millis(2 * 40), "{stall:?}");
        let is_named = |error: &ConnectionError| error.to_string().contains("are forged");
        found += u32::from(chain.errors.iter().any(is_named));
    }
    assert!(found > 8, "{found} relays were found out");
}

#[test]
fn without_another_way_a_relay_that_misbehaves_is_an_error() {
    for seed in 0..16 {
        let mut chain = Chain::new(&hops(&[0.03, 0.03]), HopRepair::Combinations, seed);
        let (mischief, direction, _) = mischief(seed);
        chain.request(3_000_000);
        chain.buffers[0][direction].misbehave(mischief);
        chain.run(Duration::from_secs(30), |chain| chain.is_whole() || !chain.errors.is_empty());
        println!("seed {seed}: whole {}, {:?}", chain.is_whole(), chain.errors.first());
        assert!(chain.is_whole() || !chain.errors.is_empty(), "{} bytes", chain.bytes_read());
    }
}

/// A relay that answers in the place of the server does not have its key.
#[test]
fn a_relay_cannot_answer_for_the_server() {
    let error = Chain::refusal(&hops(&[0.0, 0.0]), Expected::AnotherServer);
    println!("{error:?}");
    assert_eq!(error, Some(ConnectionError::HandshakeTimedOut { rejected: true }));
}

/// The server takes datagrams from the relay, but admits its clients itself.
#[test]
fn a_relay_cannot_let_in_strangers() {
    let error = Chain::refusal(&hops(&[0.0, 0.0]), Expected::ServerThatListsOthers);
    println!("{error:?}");
    assert!(matches!(error, Some(ConnectionError::Refused { code: 1, .. })), "{error:?}");
}
