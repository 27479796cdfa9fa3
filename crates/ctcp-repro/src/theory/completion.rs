//! Thesis, section 3.1.4: the number of packets until a block of n is known, without loss.
//!
//! - Theorem 1: a sparse code takes at most `sum_{k<n} n/(n-k) = n H_n`, like a coupon collector. The thesis prints the
//!   approximation `n (gamma + ln n)`, which is half a packet less and therefore not a bound of the sum. The "coding
//!   loss rate" of "5.3 %" at n = 128 is the factor H_n = 5.43.
//! - Theorem 2: combinations drawn uniformly over a field of M elements take `sum_{k<n} 1/(1 - M^(k-n))`, which is `n +
//!   sum_{j=1}^{n} 1/(M^j - 1)`. The thesis prints n + 1, "since the number of packets is an integer", but the mean is
//!   not an integer. In GF(256) it is n + 0.004. Only in GF(2), with n + 1.6, is n + 1 a bound.

/// gamma, with more digits than in the thesis.
pub const EULER_MASCHERONI: f64 = 0.577_215_664_901_532_9;

/// Theorem 1's sum: the mean for a code whose window is one uniformly drawn symbol.
#[must_use]
pub fn upper_bound(block: u32) -> f64 {
    f64::from(block) * harmonic(block)
}

/// Theorem 1 as printed.
#[must_use]
pub fn upper_bound_printed(block: u32) -> f64 {
    f64::from(block) * (EULER_MASCHERONI + f64::from(block).ln())
}

/// The mean of uniform combinations of the whole block over a field of `field` elements: Theorem 2's sum.
#[must_use]
pub fn uniform(block: u32, field: f64) -> f64 {
    f64::from(block) + (1..=block).map(|missing| 1.0 / (field.powi(missing as i32) - 1.0)).sum::<f64>()
}

/// Theorem 2 as printed.
#[must_use]
pub fn lower_bound_printed(block: u32) -> f64 {
    f64::from(block) + 1.0
}

/// `H_n`: the factor that the thesis calls coding loss rate.
#[must_use]
pub fn harmonic(block: u32) -> f64 {
    (1..=block).map(|k| 1.0 / f64::from(k)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: U1
    #[test]
    fn the_upper_bound_is_half_a_packet_above_the_printed_one() {
        // H_4 = 1 + 1/2 + 1/3 + 1/4 = 25/12
        assert!((upper_bound(4) - 25.0 / 3.0).abs() < 1e-12);
        assert!((harmonic(128) - 5.4331).abs() < 1e-4, "{}", harmonic(128));
        let gap = upper_bound(128) - upper_bound_printed(128);
        assert!((gap - 0.5).abs() < 1e-2, "{gap}");
    }

    // Requirement: U1
    #[test]
    fn the_printed_lower_bound_holds_in_gf_2_only() {
        // 1 + 1/3 + 1/7 + 1/15 + ... = 1.6067, and 1/255 + 1/65535 + ... = 0.003937
        assert!((uniform(128, 2.0) - 129.6067).abs() < 1e-4 && uniform(128, 2.0) > lower_bound_printed(128));
        assert!((uniform(128, 256.0) - 128.003_937).abs() < 1e-6);
        assert!(uniform(128, 256.0) < lower_bound_printed(128));
    }
}
