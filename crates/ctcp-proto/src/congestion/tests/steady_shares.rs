//! The default beside its like and beside TCP.

use super::*;

/// The shares of the link that two flows get between the 15th second and the last; the second begins at the fifth.
fn pair(first: Algorithm, second: Algorithm, conditions: Conditions, seconds: u64) -> [f64; 2] {
    let mut model = Model::new(conditions, 1)
        .flow(first.controller(DATAGRAM), Instant::ZERO)
        .flow(second.controller(DATAGRAM), secs(5));
    model.run(secs(15));
    let measured = model.run(secs(15 + seconds));
    let all = conditions.packets_in(Duration::from_secs(seconds));
    [measured[0].arrived as f64 / all, measured[1].arrived as f64 / all]
}

#[test]
fn two_flows_share_equally_whichever_came_first() {
    for conditions in [
        papers_link(0.0),
        papers_link(0.05),
        papers_link(0.0).with_noise(1_000),
        Conditions::new(25, 20, 0.25, 0.0),
        Conditions::new(10, 25, 1.0, 0.0),
    ] {
        let [one, two] = pair(Algorithm::DEFAULT, Algorithm::DEFAULT, conditions, 20);
        let index = jain(&[(one * 1e6) as u64, (two * 1e6) as u64]);
        assert!(index > 0.97 && one + two > 0.97, "{conditions:?}: {one:.3} {two:.3}");
    }
}

#[test]
fn five_flows_share_equally() {
    let mut model = Model::new(papers_link(0.02), 1);
    for index in 0..5 {
        model = model.flow(Algorithm::DEFAULT.controller(DATAGRAM), secs(index));
    }
    model.run(secs(10));
    let shares: Vec<u64> = model.run(secs(40)).iter().map(|flow| flow.arrived).collect();
    assert!(jain(&shares) > 0.93, "{shares:?}");
}

#[test]
fn beside_reno_on_a_clean_link_each_gets_about_half() {
    for queue in [1.0, 2.0] {
        for megabits in [10, 25] {
            let conditions = Conditions::new(megabits, 25, queue, 0.0);
            for (first, second) in
                [(Algorithm::RENO, Algorithm::DEFAULT), (Algorithm::DEFAULT, Algorithm::RENO)]
            {
                let shares = pair(first, second, conditions, 40);
                assert!(shares.iter().all(|&share| share > 0.38), "{first:?} {conditions:?}: {shares:?}");
            }
        }
    }
}

#[test]
fn on_a_lossy_link_reno_gets_what_it_gets_beside_another_reno() {
    // Padhye: what random loss leaves to Reno does not depend on its neighbour.
    for loss in [0.01, 0.05] {
        let [beside_itself, _] = pair(Algorithm::RENO, Algorithm::RENO, papers_link(loss), 30);
        let [beside_us, ours] = pair(Algorithm::RENO, Algorithm::DEFAULT, papers_link(loss), 30);
        assert!(beside_us > 0.75 * beside_itself, "loss {loss}: {beside_us} against {beside_itself}");
        assert!(beside_us + ours > 0.97, "loss {loss}: {beside_us} {ours}");
    }
}
