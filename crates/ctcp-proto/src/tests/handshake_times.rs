//! How long a handshake takes on bad paths.

use core::time::Duration;

use ctcp_base::Probability;
use ctcp_netem::{LinkConfig, LossModel};

use super::pair::Pair;
use crate::TransportConfig;

const RTT: Duration = Duration::from_millis(50);

/// The times of handshakes with this loss in each direction, over seeds, in ascending order.
fn times(loss: f64, seeds: u64) -> Vec<Duration> {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a share"));
    let link = LinkConfig { delay: RTT / 2, loss, ..LinkConfig::default() };
    let mut times: Vec<_> = (0..seeds)
        .map(|seed| {
            let mut pair = Pair::new(link.clone(), TransportConfig::default(), seed);
            let begin = pair.now;
            pair.connect(TransportConfig::default());
            assert!(pair.run_until(RTT * 200, |pair| pair.client_connection().is_connected()), "seed {seed}");
            pair.now - begin
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn a_handshake_takes_one_round_trip_and_rarely_much_more_with_loss() {
    for (loss, most) in [(0.0, RTT), (0.1, RTT * 2), (0.2, RTT * 3)] {
        let times = times(loss, 1_000);
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!("loss {loss}: median {:?}, 95 % {:?}, 99 % {:?}", at(50), at(95), at(99));
        assert_eq!(at(50), RTT, "loss {loss}");
        assert!(at(95) <= most, "loss {loss}: {:?}", at(95));
    }
}
