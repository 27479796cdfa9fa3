//! CTCP, Eq. 6: how AIMD flows share a link.
//!
//! At each network back-off event the throughput of flow i is multiplied by `beta_i` and then grows by `alpha / T_i^2` packets
//! per second, each second. Taking means of Eq. 4, with back-offs independent of throughputs,
//! `E[s_i] = alpha_i~ E[T] / (1 - E[beta_i~])` with `alpha_i~ = alpha / T_i^2`, and `E[T]` is the same for all flows.

/// A flow in the model of Eq. 6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// `alpha`: packets by which the window grows per round trip.
    pub increase: f64,
    /// `T_i`: the round-trip propagation delay, in seconds.
    pub round_trip: f64,
    /// `E[beta_i~]`: the mean back-off over all network back-off events, below 1. See [`mean_backoff`].
    pub backoff: f64,
}

impl Flow {
    /// Returns `alpha_i~ / (1 - E[beta_i~])`: the throughput, up to a factor common to all flows.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.increase / (self.round_trip * self.round_trip) / (1.0 - self.backoff)
    }
}

/// Returns the shares of the flows in the sum of all throughputs.
#[must_use]
pub fn shares(flows: &[Flow]) -> Vec<f64> {
    let sum: f64 = flows.iter().map(Flow::weight).sum();
    flows.iter().map(|flow| flow.weight() / sum).collect()
}

/// Returns `gamma_i`: the probability that a flow of `window` packets per round trip loses none of them and therefore
/// does not back off at a network back-off event.
#[must_use]
pub fn spared(loss: f64, window: f64) -> f64 {
    (1.0 - loss).powf(window)
}

/// Returns `E[beta_i~]` of a flow that is spared with probability `spared` and otherwise backs off by `backoff`.
#[must_use]
pub fn mean_backoff(spared: f64, backoff: f64) -> f64 {
    spared + (1.0 - spared) * backoff
}

/// Returns the windows of flows that halve at their own losses. Each flow loses one of `losses`, above 0 and below 1,
/// of its packets. The windows add up to `total` packets.
///
/// This is Eq. 6 with [`spared`] as a fixed point. `E[T]`, which the flows have in common, follows from the total.
#[must_use]
pub fn windows_under_loss(losses: &[f64], total: f64) -> Vec<f64> {
    // w (1 - gamma(w)) is the same for all flows and grows with w.
    let backoffs = |loss: f64, window: f64| window * (1.0 - spared(loss, window));
    let windows = |common: f64| -> Vec<f64> {
        losses.iter().map(|&loss| root(total, |window| backoffs(loss, window) - common)).collect()
    };
    let common = root(total, |common| windows(common).iter().sum::<f64>() - total);
    windows(common)
}

/// Returns the zero of an increasing function between 0 and `most`.
fn root(most: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns Eq. 3 when the queue overflows: `T / (T + queue / rate)`, for a queue of `queue` packets in front of a link
/// of `rate` packets per second.
#[must_use]
pub fn backoff_at_overflow(round_trip: f64, queue: f64, rate: f64) -> f64 {
    round_trip / (round_trip + queue / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: Flow = Flow { increase: 1.0, round_trip: 0.025, backoff: 0.5 };

    // Requirement: C12
    #[test]
    fn shares_are_inversely_proportional_to_the_square_of_the_round_trip() {
        assert_eq!(shares(&[TCP, TCP]), [0.5, 0.5]);
        let far = Flow { round_trip: 0.05, ..TCP };
        let found = shares(&[TCP, far]);
        assert!((found[0] - 0.8).abs() < 1e-12 && (found[1] - 0.2).abs() < 1e-12, "{found:?}");
    }

    // Requirement: C12
    #[test]
    fn an_adaptive_back_off_equals_one_half_for_a_queue_of_one_bandwidth_delay_product() {
        // 25 Mbit/s of 1500 bytes, 25 ms: 52 packets in flight.
        let rate = 25e6 / 12_000.0;
        let full = backoff_at_overflow(0.025, rate * 0.025, rate);
        assert!((full - 0.5).abs() < 1e-12);
        // With a quarter of the queue it is 1/1.25 = 0.8, and the fixed flow gets 2 (1 - 0.8) = 0.4 of the adaptive
        // one's share.
        let adaptive = Flow { backoff: backoff_at_overflow(0.025, rate * 0.025 / 4.0, rate), ..TCP };
        let ratio = TCP.weight() / adaptive.weight();
        assert!((ratio - 2.0 * (1.0 - 0.8)).abs() < 1e-12, "{ratio}");
    }

    // Requirement: C12
    #[test]
    fn windows_follow_the_square_root_of_the_ratio_of_small_losses() {
        let found = windows_under_loss(&[0.000_1, 0.000_4], 30.0);
        assert!((found[0] - 20.0).abs() < 0.02 && (found[1] - 10.0).abs() < 0.02, "{found:?}");
        let equal = windows_under_loss(&[0.01; 2], 50.0);
        assert!((equal[0] - 25.0).abs() < 1e-6 && (equal[1] - 25.0).abs() < 1e-6, "{equal:?}");
    }

    // Requirement: C12
    #[test]
    fn more_loss_makes_a_smaller_share() {
        // 10 packets per round trip: 0.99^10 = 0.904382, so E[beta] = 0.952191; 0.98^10 = 0.817073, so 0.908536.
        let lossy = [0.01, 0.02].map(|loss| Flow { backoff: mean_backoff(spared(loss, 10.0), 0.5), ..TCP });
        assert!((lossy[0].backoff - 0.952_191).abs() < 1e-6 && (lossy[1].backoff - 0.908_536).abs() < 1e-6);
        // (1 - 0.908536) / (1 - 0.952191) = 1.91312 times the share.
        let found = shares(&lossy);
        assert!((found[0] / found[1] - 1.913_1).abs() < 1e-3, "{found:?}");
    }
}
