//! CTCP, Eq. 7: the redundant packets of a block code.
//!
//! With each block of N packets, `n = floor(N / (1 - p)) - N` combinations are sent ahead of any feedback. If k of the
//! N + n are lost and k < n, then n - k of them were not needed. Eq. 7 calls the mean of that, divided by N, the
//! efficiency's bound, but it is the waste. The printed form counts the losses among the wrong packets:
//!
//! - printed: `1/N sum_{k<n} (n-k) C(n,k) p^k (1-p)^(N-k)`, which is not even a mean, as its weights do not add up to
//!   1;
//! - derived: `1/N sum_{k<n} (n-k) C(N+n,k) p^k (1-p)^(N+n-k)`.
//!
//! The text calls 1 - eta the bound on the efficiency. On a link that loses packets before its rate limit, N + N eta
//! packets take the place of N. The exact share is then 1 / (1 + eta), about eta^2 above the bound.

/// Returns `n`: the combinations sent ahead with a block of `block` packets. `loss` is below 1.
#[must_use]
pub fn ahead(block: u32, loss: f64) -> u32 {
    // A result just below a whole number is a rounding error of the division.
    let sent = (f64::from(block) / (1.0 - loss) + 1e-9).floor();
    sent as u32 - block
}

/// Eq. 7 as printed.
#[must_use]
pub fn waste_printed(block: u32, loss: f64) -> f64 {
    let n = ahead(block, loss);
    let rest = (1.0 - loss).powi(block as i32 - n as i32);
    let terms = (0..n).map(|k| f64::from(n - k) * binomial(n, k, loss) * rest);
    terms.fold(0.0, |sum, term| sum + term) / f64::from(block)
}

/// Eq. 7 as derived: redundant arrivals per packet of the block.
#[must_use]
pub fn waste(block: u32, loss: f64) -> f64 {
    let n = ahead(block, loss);
    let terms = (0..n).map(|k| f64::from(n - k) * binomial(block + n, k, loss));
    terms.fold(0.0, |sum, term| sum + term) / f64::from(block)
}

/// Returns the efficiency of a link that carries the given waste in addition to the useful packets.
#[must_use]
pub fn efficiency(waste: f64) -> f64 {
    1.0 / (1.0 + waste)
}

/// Returns the binomial probability of `k` out of `n`, with a probability `p` below 1 for each.
fn binomial(n: u32, k: u32, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    (0..k).fold((1.0 - p).powi(n as i32), |term, i| term * odds * f64::from(n - i) / f64::from(i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binomial_distribution_adds_up_to_one() {
        let sum: f64 = (0..=40).map(|k| binomial(40, k, 0.2)).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        // C(4, 2) / 16
        assert!((binomial(4, 2, 0.5) - 0.375).abs() < 1e-15);
    }

    // Requirement: C12
    #[test]
    fn no_combinations_are_sent_ahead_at_low_loss_and_a_quarter_of_a_block_at_a_fifth() {
        // 32 / 0.99 = 32.3; 32 / 0.95 = 33.7; 32 / 0.9 = 35.6; 32 / 0.8 = 40
        assert_eq!([0.0, 0.01, 0.05, 0.1, 0.2].map(|loss| ahead(32, loss)), [0, 0, 1, 3, 8]);
        assert_eq!([waste(32, 0.01), waste_printed(32, 0.01)], [0.0, 0.0]);
    }

    // Requirement: C12
    #[test]
    fn both_forms_of_equation_7_match_manual_computation() {
        // The one combination is wasted if none of the 33 packets is lost: 0.95^33 / 32 = 0.184025 / 32. Printed:
        // 0.95^32 / 32.
        assert!((waste(32, 0.05) - 0.005_750_8).abs() < 1e-7, "{}", waste(32, 0.05));
        assert!((waste_printed(32, 0.05) - 0.006_053_4).abs() < 1e-7, "{}", waste_printed(32, 0.05));
        // n = 3: (3 * 0.9^35 + 2 * 35 * 0.1 * 0.9^34 + 595 * 0.01 * 0.9^33) / 32
        //      = (0.0750947 + 0.1946899 + 0.1838738) / 32
        assert!((waste(32, 0.1) - 0.014_176_8).abs() < 1e-6, "{}", waste(32, 0.1));
        // Printed: (3 * 0.9^32 + 2 * 3 * 0.1 * 0.9^31 + 3 * 0.01 * 0.9^30) / 32
        //      = (0.1030114 + 0.0228914 + 0.0012717) / 32
        assert!((waste_printed(32, 0.1) - 0.003_974_2).abs() < 1e-6, "{}", waste_printed(32, 0.1));
    }
}
