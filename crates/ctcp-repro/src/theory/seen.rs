//! TCP/NC, Lemma 1: how likely a random combination makes the receiver see its next packet.
//!
//! A has seen packets that B has not; the oldest of them is d*. A sends a random combination of all it knows. The lemma says that
//! B sees d* with probability 1 - 1/q. Its proof takes the entry of column d* after elimination for the leading one; earlier
//! columns that neither has seen can be in the way. It holds when d* is B's oldest unseen packet. What holds without any condition is
//! that the combination is innovative with probability 1 - 1/q at least: what A knows is not all within what B knows, so at
//! most one in q of A's combinations is.
//!
//! The counterexample is A = {p1 + p2, p3} and B = {p1}: A has seen 1 and 3, so d* is 3, but of `u (p1 + p2) + v p3` is
//! left `u p2 + v p3`, which shows p2 unless u is zero.

/// The lemma, where it holds. `field`: q, the number of elements.
#[must_use]
pub fn next_is_seen(field: f64) -> f64 {
    1.0 - 1.0 / field
}

/// What is true in the counterexample: u is zero and v is not.
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
        // Of four pairs one; of 256 pairs fifteen.
        assert_eq!([2.0, 16.0].map(counterexample), [0.25, 15.0 / 256.0]);
    }
}
