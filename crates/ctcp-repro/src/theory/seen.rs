//! TCP/NC, Lemma 1: the probability that a random combination makes the receiver see its next packet.
//!
//! A has seen packets that B has not; the oldest of them is d*. A sends a random combination of everything it knows.
//! The lemma says that B sees d* with probability 1 - 1/q. Its proof takes the entry of column d* after elimination for
//! the leading one, but earlier columns that neither has seen can come first. The lemma holds if d* is B's oldest
//! unseen packet.
//!
//! Without any condition, the combination is innovative with probability at least 1 - 1/q. What A knows is not all
//! within what B knows, so at most one in q of A's combinations is.
//!
//! The counterexample is A = {p1 + p2, p3} and B = {p1}. A has seen 1 and 3, so d* is 3. After elimination, `u (p1 +
//! p2) + v p3` leaves `u p2 + v p3`, which shows p2 unless u is zero.

/// Returns the probability of the lemma, where it holds. `field` is q, the number of elements.
#[must_use]
pub fn next_is_seen(field: f64) -> f64 {
    1.0 - 1.0 / field
}

/// Returns the probability in the counterexample: u is zero and v is not.
#[must_use]
pub fn counterexample(field: f64) -> f64 {
    (1.0 - 1.0 / field) / field
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: N6
    #[test]
    fn the_counterexample_is_far_from_the_lemma_in_every_field() {
        assert_eq!([2.0, 16.0].map(next_is_seen), [0.5, 0.9375]);
        // One of four pairs, and fifteen of 256.
        assert_eq!([2.0, 16.0].map(counterexample), [0.25, 15.0 / 256.0]);
    }
}
