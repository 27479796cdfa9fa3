//! The window of standard TCP under random loss, `sqrt(1.5 / p)` packets, as CTCP quotes it from Padhye and others (section 4.3).

/// Returns the mean window in packets. `loss` is above 0.
#[must_use]
pub fn window(loss: f64) -> f64 {
    (1.5 / loss).sqrt()
}

/// Returns the share of a link that a single TCP flow gets. `capacity` is the number of packets per round trip.
#[must_use]
pub fn efficiency(loss: f64, capacity: f64) -> f64 {
    (window(loss) / capacity).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: C12
    #[test]
    fn one_percent_loss_leaves_about_a_fifth_of_the_papers_link() {
        assert!((window(0.015) - 10.0).abs() < 1e-12);
        // sqrt(150) = 12.247 of 52 packets (25 Mbit/s, 25 ms); the text says 20 %.
        let share = efficiency(0.01, 52.0);
        assert!((share - 0.2355).abs() < 1e-4, "{share}");
        assert_eq!(efficiency(1e-6, 52.0), 1.0);
    }
}
