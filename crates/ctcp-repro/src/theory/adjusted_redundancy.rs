//! EOT/PB, R_a: the redundancy at which a file is received without feedback with a given probability.
//!
//! The listing of the paper's algorithm (its Fig. 1) is missing from the text. Its purpose is stated: "to achieve a
//! transmission success rate S", 90 %. So this is the smallest R with
//!
//! ```text
//!   P[Binomial(ceil(R t), 1 - p) >= t] >= S        t: packets of the file
//! ```
//!
//! The number of losses before the t-th success has a negative binomial distribution. Its terms are summed from the
//! first one on, each computed from the previous one. They are computed as logarithms, because the first is as small as
//! 0.7^10000000.

/// Returns R_a. `packets` is at least 1, `loss` is from 0 to below 1, and `success` is below 1.
#[must_use]
pub fn adjusted_redundancy(packets: u64, loss: f64, success: f64) -> f64 {
    let t = packets as f64;
    let (mut term, mut reached, mut losses) = (t * (1.0 - loss).ln(), 0.0, 0.0);
    loop {
        reached += term.exp();
        if reached >= success {
            return (t + losses) / t;
        }
        term += (loss * (t + losses) / (losses + 1.0)).ln();
        losses += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: K3
    #[test]
    fn results_for_a_few_packets_match_manual_computation() {
        // One packet at 10 %: one transmission suffices with 0.9. At 20 %: 0.8, two transmissions 0.96.
        assert_eq!(adjusted_redundancy(1, 0.1, 0.899_999), 1.0);
        assert_eq!(adjusted_redundancy(1, 0.2, 0.9), 2.0);
        // Ten at 10 %: 0.9^10 = 0.349; 11: + 10 * 0.1 * 0.349 = 0.697; 12: + 55 * 0.01 * 0.349 = 0.889; 13: + 220 * 0.001 * 0.349 = 0.966.
        assert_eq!(adjusted_redundancy(10, 0.1, 0.88), 1.2);
        assert_eq!(adjusted_redundancy(10, 0.1, 0.9), 1.3);
        assert_eq!(adjusted_redundancy(7, 0.0, 0.9), 1.0);
    }

    // Requirement: K3
    #[test]
    fn results_for_many_packets_match_the_normal_distribution() {
        for (packets, loss) in [(10_000_u64, 0.01), (1_000_000, 0.1), (10_000_000, 0.3)] {
            let t = packets as f64;
            let normal = t / (1.0 - loss) + 1.281_552 * (t * loss).sqrt() / (1.0 - loss);
            let found = adjusted_redundancy(packets, loss, 0.9) * t;
            assert!((found - normal).abs() < 3.0, "{packets} at {loss}: {found} packets, not {normal}");
        }
    }
}
