//! How many combinations are sent ahead of feedback: pure functions over what is in flight, what the receiver
//! still misses, and the loss average `p`.
//!
//! Repair is sent inside the congestion window and is counted by congestion control like any packet, so it
//! never hides loss (RFC 9265).

use super::Need;

/// Most packets for which [`success`] sums the distribution exactly. Beyond it a group is so large that its
/// mean decides.
const EXACT_MAX: u32 = 256;

/// The share of losses beyond which the estimate says more about the estimator than about the path. It keeps
/// the answer of a dead path from being "send everything you have".
const LOSS_MAX: f64 = 0.9;

/// Chance with which the end of what the application wrote should arrive without another round trip.
const TAIL_SUCCESS: f64 = 0.99;

/// True when another packet is expected to be useful: CTCP Algorithm 3, `(1-p) onfly < blksize - currdof`.
///
/// Read with whole packets: the next one must be expected to fit, `(1-p)(onfly + 1) <= missing`. So a block of N
/// gets `floor(N / (1-p)) - N` packets ahead, which is the n of the paper's Eq. 7; the strict reading would send at
/// least one repair for every block even on a link without loss.
///
/// Requirement: C5
///
/// It sends what is needed on average: luck wastes `0.4 sqrt(N p / (1-p))` packets a block, so that larger blocks waste less (all that is
/// sent in vain at 20 % loss: 2.0 % instead of 3.6, simulated). Under it a block spans two windows.
pub(super) fn is_short_on_average(need: &Need) -> bool {
    let &Need { in_flight, missing, loss, .. } = need;
    let arrive = 1.0 - loss.clamp(0.0, LOSS_MAX);
    arrive * (f64::from(in_flight) + 1.0) <= f64::from(missing)
}

/// R packets for each of `missing` degrees of freedom, in whole packets: none ahead of fewer than 1/(R-1).
#[must_use]
pub fn whole_packets(missing: u32, ratio: f64) -> u32 {
    // What is a whole number but for the last bit is one.
    (ratio * f64::from(missing) + 1e-6) as u32
}

/// True when fewer packets than R for each missing degree of freedom are in flight.
pub(super) fn is_short_of_ratio(need: &Need) -> bool {
    need.in_flight < whole_packets(need.missing, need.ratio.unwrap_or(1.0))
}

/// True when another packet is almost surely useful: the same with one standard deviation of luck taken off.
///
/// A block of N that gets its mean loss ahead wastes `0.4 sqrt(N p / (1-p))` packets on average, 3 % of the link at
/// N = 50 and 20 % loss; one deviation less wastes a fifth of that. What bad luck takes beyond it is repaired
/// by feedback, which delays bytes of that block by a round trip but costs the link nothing.
/// Where losses come in bursts the number of them scatters more, by `dispersion`.
///
/// At the end of what the application wrote, nothing else is left to send: a loss there would cost a round trip, and a packet more
/// costs nobody anything, so that the chance of [`TAIL_SUCCESS`] decides.
pub(super) fn is_short_for_sure(need: &Need) -> bool {
    let &Need { in_flight, missing, loss, dispersion, .. } = need;
    if need.is_tail {
        return is_short_of_success(in_flight, missing, loss, TAIL_SUCCESS);
    }
    let loss = loss.clamp(0.0, LOSS_MAX);
    let sent = f64::from(in_flight) + 1.0;
    (1.0 - loss) * sent + (sent * loss * (1.0 - loss) * dispersion).sqrt() <= f64::from(missing)
}

/// True when the packets in flight reach the receiver's `missing` degrees of freedom with a chance below `target`.
///
/// It is asked at the end of what the application wrote, when nothing else is left to send: there a loss costs a
/// whole round trip, and a few packets ahead cost nobody anything.
fn is_short_of_success(in_flight: u32, missing: u32, loss: f64, target: f64) -> bool {
    missing > 0 && (in_flight < missing || success(in_flight, missing, loss) < target)
}

/// The chance that at least `wanted` of `sent` packets arrive, each lost independently with probability `loss`:
/// `P[Binomial(sent, 1-loss) >= wanted]`.
fn success(sent: u32, wanted: u32, loss: f64) -> f64 {
    if sent < wanted {
        return 0.0;
    }
    let loss = loss.clamp(0.0, LOSS_MAX);
    if sent > EXACT_MAX {
        return if (1.0 - loss) * f64::from(sent) >= f64::from(wanted) { 1.0 } else { 0.0 };
    }
    // Sum over the number of losses k = 0 ..= sent - wanted, each term from the one before.
    let arrive = 1.0 - loss;
    let mut term = (0..sent).fold(1.0, |product, _| product * arrive);
    let mut sum = term;
    for lost in 0..(sent - wanted) {
        term *= f64::from(sent - lost) / f64::from(lost + 1) * (loss / arrive);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(in_flight: u32, missing: u32, loss: f64) -> Need {
        Need { in_flight, missing, loss, dispersion: 1.0, ratio: None, is_tail: false }
    }

    fn sent_ahead(block: u32, loss: f64) -> u32 {
        let mut sent = block;
        while is_short_on_average(&need(sent, block, loss)) {
            sent += 1;
        }
        sent - block
    }

    // Requirement: C5
    #[test]
    fn a_block_gets_the_n_of_equation_7() {
        for (loss, expected) in [(0.0, 0), (0.01, 0), (0.05, 1), (0.10, 3), (0.20, 8)] {
            assert_eq!(sent_ahead(32, loss), expected, "at loss {loss}");
        }
    }

    #[test]
    fn a_tenth_ahead_is_one_packet_of_ten() {
        let packets = [0, 1, 9, 10, 19, 30, 128].map(|missing| whole_packets(missing, 1.1));
        assert_eq!(packets, [0, 1, 9, 11, 20, 33, 140]);
        let fixed = |in_flight| is_short_of_ratio(&Need { ratio: Some(1.1), ..need(in_flight, 20, 0.5) });
        assert!(fixed(21) && !fixed(22));
    }

    #[test]
    fn what_is_sent_ahead_for_sure_is_below_the_mean() {
        for (loss, expected) in [(0.0, 0), (0.05, 0), (0.10, 1), (0.20, 4)] {
            let mut sent = 32;
            while is_short_for_sure(&need(sent, 32, loss)) {
                sent += 1;
            }
            assert_eq!(sent - 32, expected, "at loss {loss}");
        }
    }

    #[test]
    fn a_dead_path_does_not_draw_endless_repair() {
        assert!(sent_ahead(32, 1.0) <= 32 * 9 + 1);
    }

    #[test]
    fn success_follows_the_binomial_distribution() {
        assert!((success(2, 1, 0.5) - 0.75).abs() < 1e-12);
        assert!((success(8, 8, 0.05) - 0.663_420_431_289_062).abs() < 1e-12);
        assert!((success(3, 0, 0.3) - 1.0).abs() < 1e-12);
        assert_eq!(success(1, 2, 0.0), 0.0);
    }

    #[test]
    fn the_tail_of_a_short_transfer_is_protected_and_a_clean_link_pays_nothing() {
        assert!(!is_short_of_success(8, 8, 0.0, 0.95));
        assert!(is_short_of_success(8, 8, 0.05, 0.95));
        assert!(!is_short_of_success(10, 8, 0.05, 0.95));
        assert!(!is_short_of_success(1, 1, 0.02, 0.95));
        assert!(!is_short_of_success(0, 0, 0.5, 0.95));
        assert!(is_short_of_success(0, 1, 0.0, 0.95));
    }
}
