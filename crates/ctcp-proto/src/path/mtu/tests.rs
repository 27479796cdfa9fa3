use super::*;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;

/// Runs the search on a path that carries `mtu`, and additionally loses every `every`-th probe. Returns the sizes probed.
fn search(mtu: &mut MtuDiscovery, now: Instant, path: u64, every: u64) -> Vec<u64> {
    let mut probes = Vec::new();
    while let Some(size) = mtu.poll_probe(now) {
        probes.push(size);
        assert!(probes.len() < 200, "the search ends");
        mtu.on_probe_sent(size);
        assert_eq!(mtu.poll_probe(now), None, "one probe at a time");
        let is_dropped = every > 0 && (probes.len() as u64).is_multiple_of(every);
        if size <= path && !is_dropped { mtu.on_probe_acked(now, size) } else { mtu.on_probe_lost(now, size) }
    }
    probes
}

#[test]
fn an_ethernet_path_is_found_with_one_probe() {
    let mut mtu = MtuDiscovery::new(NOW, ETHERNET_V4);
    assert_eq!(search(&mut mtu, NOW, ETHERNET_V4, 0), [1472]);
    assert_eq!(mtu.current(), 1472);
    assert_eq!(mtu.next_timeout(), None, "there is nothing above the ceiling");
}

#[test]
fn a_smaller_size_is_found_by_common_sizes_and_then_by_bisection() {
    let mut mtu = MtuDiscovery::new(NOW, 9_000);
    let probes = search(&mut mtu, NOW, ETHERNET_V6, 0);
    assert_eq!(&probes[..7], [9_000, 9_000, 9_000, 1_472, 1_472, 1_472, 1_452]);
    assert!((ETHERNET_V6 - STEP..=ETHERNET_V6).contains(&mtu.current()), "{}", mtu.current());
    assert_eq!(mtu.next_timeout(), Some(NOW + RAISE_INTERVAL));
}

#[test]
fn a_probe_is_too_big_only_after_its_third_loss() {
    let mut mtu = MtuDiscovery::new(NOW, ETHERNET_V4);
    for _ in 0..2 {
        let size = mtu.poll_probe(NOW).expect("a probe");
        mtu.on_probe_sent(size);
        mtu.on_probe_lost(NOW, size);
    }
    assert_eq!(search(&mut mtu, NOW, ETHERNET_V4, 0), [1472]);
}

#[test]
fn a_settled_search_tries_again_after_ten_minutes() {
    let mut mtu = MtuDiscovery::new(NOW, ETHERNET_V4);
    search(&mut mtu, NOW, 1_300, 0);
    let small = mtu.current();
    assert_eq!(mtu.poll_probe(NOW + RAISE_INTERVAL / 2), None);
    search(&mut mtu, NOW + RAISE_INTERVAL, ETHERNET_V4, 0);
    assert!(small <= 1_300 && mtu.current() == ETHERNET_V4);
}

#[test]
fn the_raise_timer_ends_when_it_is_handled_even_without_a_probe() {
    let mut mtu = MtuDiscovery::new(NOW, ETHERNET_V4);
    search(&mut mtu, NOW, 1_300, 0);
    let raise_at = mtu.next_timeout().expect("larger sizes are tried again");
    mtu.on_timeout(raise_at);
    assert_eq!(mtu.next_timeout(), None);
    assert_eq!(mtu.poll_probe(raise_at + RAISE_INTERVAL), Some(ETHERNET_V4));
}

#[test]
fn a_refused_size_needs_no_probe() {
    let mut mtu = MtuDiscovery::new(NOW, ETHERNET_V4);
    mtu.on_too_big(NOW, 1_472);
    assert_eq!(mtu.poll_probe(NOW), Some(1_452));
}

fn suspicious() -> MtuDiscovery {
    let mut mtu = MtuDiscovery::new(NOW, ETHERNET_V4);
    search(&mut mtu, NOW, ETHERNET_V4, 0);
    for _ in 0..SUSPICIOUS_LOSSES {
        mtu.on_packet_lost(1_472);
    }
    mtu
}

#[test]
fn a_black_hole_is_detected_if_only_the_base_size_passes() {
    let mut mtu = suspicious();
    assert_eq!(mtu.current(), 1_472, "a suspicion alone changes nothing");
    let probes = search(&mut mtu, NOW, 1_300, 0);
    assert_eq!(&probes[..10], [BASE, 1_472].repeat(5));
    assert!((1_300 - STEP..=1_300).contains(&mtu.current()), "{}", mtu.current());
}

#[test]
fn a_probe_or_any_large_packet_clears_a_suspicion() {
    let mut mtu = suspicious();
    assert_eq!(search(&mut mtu, NOW, ETHERNET_V4, 0), [BASE, 1_472]);
    assert_eq!(mtu.current(), 1_472);
    let mut mtu = suspicious();
    mtu.on_packet_acked(NOW, 1_472);
    assert_eq!((mtu.poll_probe(NOW), mtu.current()), (None, 1_472));
}

/// Answers the probes of a suspicion with `passes` until it is over. Returns whether the size fell.
fn falls(mtu: &mut MtuDiscovery, mut passes: impl FnMut(u64) -> bool) -> bool {
    let before = mtu.current();
    while matches!(mtu.phase, Phase::Suspicious { .. } | Phase::Verifying { .. }) {
        let size = mtu.poll_probe(NOW).expect("a probe");
        mtu.on_probe_sent(size);
        if passes(size) { mtu.on_probe_acked(NOW, size) } else { mtu.on_probe_lost(NOW, size) }
    }
    mtu.current() < before
}

#[test]
fn high_random_loss_is_hardly_ever_taken_for_a_black_hole() {
    for loss in [0.2, 0.4, 0.6, 0.8] {
        let mut prng = ctcp_base::Prng::new(1);
        let falls = (0..10_000).filter(|_| falls(&mut suspicious(), |_| prng.unit() >= loss)).count();
        assert!(falls < 60, "{falls} of 10000 at {loss}");
    }
}

#[test]
fn a_black_hole_on_a_lossy_path_is_also_detected() {
    let mut prng = ctcp_base::Prng::new(1);
    assert!((0..100).all(|_| falls(&mut suspicious(), |size| size <= 1_300 && prng.unit() >= 0.3)));
}

#[test]
fn an_outage_is_not_taken_for_a_black_hole() {
    let mut mtu = suspicious();
    for _ in 0..20 {
        assert_eq!(mtu.poll_probe(NOW), Some(BASE));
        mtu.on_probe_sent(BASE);
        mtu.on_probe_lost(NOW, BASE);
    }
    assert_eq!(mtu.current(), 1_472);
}

#[test]
fn losses_with_arrivals_between_raise_no_suspicion() {
    let mut mtu = MtuDiscovery::new(NOW, ETHERNET_V4);
    search(&mut mtu, NOW, ETHERNET_V4, 0);
    for round in 0..1_000 {
        if round % u64::from(SUSPICIOUS_LOSSES) == 0 {
            mtu.on_packet_acked(NOW, 1_472);
        } else {
            mtu.on_packet_lost(1_472);
        }
    }
    assert_eq!(mtu.poll_probe(NOW), None);
}

proptest! {
    #[test]
    fn the_search_ends_close_to_the_size_of_the_path(
        path in BASE..10_000u64,
        ceiling in 0u64..10_000,
        every in prop_oneof![Just(0u64), 2u64..10],
    ) {
        let mut mtu = MtuDiscovery::new(NOW, ceiling);
        search(&mut mtu, NOW, path, every);
        let best = path.min(ceiling.max(BASE));
        prop_assert!(mtu.current() <= best && mtu.current() + STEP > best, "{} of {}", mtu.current(), best);
    }
}
