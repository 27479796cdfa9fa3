//! How many combinations are sent ahead of feedback: pure functions of the packets in flight, what the receiver still misses, and the loss
//! average `p`.
//!
//! Repair is sent within the congestion window and counted by congestion control like any packet, so it never hides loss (RFC 9265).

use super::Need;

/// Maximum number of packets for which [`success`] sums the distribution exactly. For larger numbers the mean decides.
const EXACT_MAX: u32 = 256;

/// Maximum loss used. A higher estimate says little about the path, and would make the sender send everything it has on a dead path.
const LOSS_MAX: f64 = 0.9;

/// Probability with which the end of the data should arrive without another round trip.
const TAIL_SUCCESS: f64 = 0.99;

/// Whether another packet is expected to be useful: CTCP Algorithm 3, `(1-p) onfly < blksize - currdof`.
///
/// For whole packets: the next packet must be expected to fit, `(1-p)(onfly + 1) <= missing`. So a block of N gets `floor(N / (1-p)) - N`
/// packets ahead, which is the n of the paper's Eq. 7. The strict reading would send at least one repair for every block even on a link
/// without loss.
///
/// Requirement: C5
///
/// It sends what is needed on average. Random variation wastes `0.4 sqrt(N p / (1-p))` packets per block, so larger blocks waste less, and a block
/// spans two windows under this rule: of everything sent at 20 % loss, 2.0 % is redundant instead of 3.6 % (simulated).
pub(super) fn is_short_on_average(need: &Need) -> bool {
    let &Need { in_flight, missing, loss, .. } = need;
    let arrive = 1.0 - loss.clamp(0.0, LOSS_MAX);
    arrive * (f64::from(in_flight) + 1.0) <= f64::from(missing)
}

/// The number of whole packets for `missing` degrees of freedom with R packets each. Fewer than 1/(R-1) get none ahead.
#[must_use]
pub fn whole_packets(missing: u32, ratio: f64) -> u32 {
    // Tolerates rounding errors below whole numbers.
    (ratio * f64::from(missing) + 1e-6) as u32
}

/// Whether fewer packets are in flight than R for each missing degree of freedom.
pub(super) fn is_short_of_ratio(need: &Need) -> bool {
    need.in_flight < whole_packets(need.missing, need.ratio.unwrap_or(1.0))
}

/// Whether another packet is probably useful: like [`is_short_on_average`], with a margin of one standard deviation.
///
/// A block of N that gets its mean loss ahead wastes `0.4 sqrt(N p / (1-p))` packets on average, 3 % of the link at N = 50 and 20 % loss.
/// One deviation less wastes a fifth of that. Further losses are repaired after feedback, which delays bytes of that block by a round trip
/// but costs no goodput. If losses come in bursts, the deviation is larger by `dispersion`.
///
/// At the end of the data nothing else is left to send. A loss there would cost a round trip, and one more packet costs nothing, so the
/// probability [`TAIL_SUCCESS`] decides.
pub(super) fn is_short_with_margin(need: &Need) -> bool {
    let &Need { in_flight, missing, loss, dispersion, .. } = need;
    if need.is_tail {
        return is_short_of_success(in_flight, missing, loss, TAIL_SUCCESS);
    }
    let loss = loss.clamp(0.0, LOSS_MAX);
    let sent = f64::from(in_flight) + 1.0;
    (1.0 - loss) * sent + (sent * loss * (1.0 - loss) * dispersion).sqrt() <= f64::from(missing)
}

/// Whether the packets in flight provide the `missing` degrees of freedom with a probability below `target`.
///
/// Used at the end of the data, when nothing else is left to send: a loss there costs a whole round trip, and a few packets ahead cost
/// nothing.
fn is_short_of_success(in_flight: u32, missing: u32, loss: f64, target: f64) -> bool {
    missing > 0 && (in_flight < missing || success(in_flight, missing, loss) < target)
}

/// The probability that at least `wanted` of `sent` packets arrive, each lost independently with probability `loss`:
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
    fn the_default_rule_sends_less_ahead_than_the_mean_loss() {
        for (loss, expected) in [(0.0, 0), (0.05, 0), (0.10, 1), (0.20, 4)] {
            let mut sent = 32;
            while is_short_with_margin(&need(sent, 32, loss)) {
                sent += 1;
            }
            assert_eq!(sent - 32, expected, "at loss {loss}");
        }
    }

    #[test]
    fn repair_on_a_dead_path_is_bounded() {
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
    fn the_tail_of_a_transfer_is_protected_only_on_a_lossy_link() {
        assert!(!is_short_of_success(8, 8, 0.0, 0.95));
        assert!(is_short_of_success(8, 8, 0.05, 0.95));
        assert!(!is_short_of_success(10, 8, 0.05, 0.95));
        assert!(!is_short_of_success(1, 1, 0.02, 0.95));
        assert!(!is_short_of_success(0, 0, 0.5, 0.95));
        assert!(is_short_of_success(0, 1, 0.0, 0.95));
    }
}
