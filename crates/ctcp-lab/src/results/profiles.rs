//! The page of published profiles: what we measure on them, and what was published.

use core::fmt::Write;

use serde::Deserialize;

use super::summary::Summary;

/// What is asked of the better single path, and of the sum where both paths are usable.
const OF_BETTER: f64 = 0.98;
const OF_SUM: f64 = 0.88;

/// A path is usable if it alone gives this share of its rate.
const USABLE: f64 = 0.25;

/// A profile, as the comparison writes it.
#[derive(Debug, Deserialize)]
pub(super) struct Facts {
    name: String,
    divisor: u64,
    rates_mbps: [u64; 2],
    delays_ms: [u64; 2],
    deviations_ms: [u64; 2],
    losses: [f64; 2],
    our_rates_bps: [u64; 2],
    published: Published,
}

/// What the report has, in Mbit/s.
#[derive(Debug, Deserialize)]
struct Published {
    single: [f64; 2],
    best_wlb: f64,
    best_minrtt: f64,
}

/// Goodput on a profile in Mbit/s at our rates.
#[derive(Clone, Copy)]
struct Ours {
    single: [f64; 2],
    both: f64,
    mptcp: Option<f64>,
}

impl Ours {
    fn better(&self) -> f64 {
        self.single[0].max(self.single[1])
    }

    fn sum(&self) -> f64 {
        self.single[0] + self.single[1]
    }
}

/// The page without its title.
pub(super) fn page(summary: &Summary) -> String {
    let mut text = introduction(summary);
    text += "\n## The profiles\n\n| profile | rates (Mbit/s) | ours (Mbit/s) | delay one way (ms) | deviation (ms) | loss |\n\
             |---|---|---|---|---|---|\n";
    for facts in &summary.profiles {
        let ours = facts.our_rates_bps.map(|rate| rate as f64 / 1e6);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} + {} | {} + {} | {} + {} | {} + {} | {} % + {} % |",
            facts.name,
            facts.rates_mbps[0],
            facts.rates_mbps[1],
            ours[0],
            ours[1],
            facts.delays_ms[0],
            facts.delays_ms[1],
            facts.deviations_ms[0],
            facts.deviations_ms[1],
            facts.losses[0] * 100.0,
            facts.losses[1] * 100.0,
        );
    }
    let download = format!("a download of {} s", summary.seconds());
    for (quantity, title) in [
        ("goodput of the first 20 MiB", "a transfer of 20 MiB"),
        ("goodput of the first 5 MiB", "its first 5 MiB"),
        ("goodput", download.as_str()),
    ] {
        text += &table(summary, quantity, title);
    }
    text + &summary.failed()
}

fn introduction(summary: &Summary) -> String {
    let divisor = summary.profiles.first().map_or(1, |facts| facts.divisor);
    format!(
        "Made by {}: `ctcp-lab testbed compare --tests profiles`. Repetitions: {}; each value is their median.\n\n\
         The profiles and the published values are those of mqvpn's report of 2026-06-18 (repository mp0rta/mqvpn, `docs/report`): sixteen pairs of \
         paths made with netem, a transfer of 20 MiB by QUIC with BBR through its tunnel, each path alone and both with the best setting of each of its \
         schedulers, `wlb` and `minrtt`.\n\n\
         Our emulator cannot follow 300 Mbit/s, so rates and queues are divided by {divisor} here; times are not. A transfer of 20 MiB therefore \
         takes about {divisor} times as long; its first 5 MiB take about as long as the report's transfer. Published values are divided by \
         the same number, or are ratios. netem's normally distributed delays are uniform here, with the same standard \
         deviation, and with the same mean except for jit_20, whose mean would need negative delays. netem's limit of 1,000 packets is divided too, and \
         holds delayed packets as well as waiting ones; that is why the second path of rtt_320 has less than its rate. Loss and jitter act in both \
         directions, as in the report.\n\n\
         The report's transport is another one, and its inner connection has to be carried by a tunnel: compare ratios rather than rates.\n",
        summary.version, summary.repetitions
    )
}

/// The values of one quantity on all profiles.
fn table(summary: &Summary, quantity: &str, title: &str) -> String {
    let mut text = format!(
        "\n## {}\n\nGoodput in Mbit/s. Wanted: at least {OF_BETTER} of the better single path, and {OF_SUM} of the sum where both paths are usable, \
         that is, give a quarter of their rates alone.\n\n\
         | profile | path 1 | path 2 | ctcp, both | MPTCP, BBR | both / better | both / sum | holds | published: path 1 | path 2 | best wlb | best minrtt | \
         best / better |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        title[..1].to_uppercase() + &title[1..]
    );
    let (mut kept, mut of) = (0, 0);
    for facts in &summary.profiles {
        let Some(ours) = ours(summary, facts, quantity) else {
            let _ = writeln!(text, "| {} |{}", facts.name, " - |".repeat(12));
            continue;
        };
        let (of_better, of_sum) = (ours.both / ours.better(), ours.both / ours.sum());
        let is_usable =
            ours.single.iter().zip(facts.our_rates_bps).all(|(got, rate)| *got >= USABLE * rate as f64 / 1e6);
        let holds = of_better >= OF_BETTER && (!is_usable || of_sum >= OF_SUM);
        (kept, of) = (kept + usize::from(holds), of + 1);
        let published = &facts.published;
        let scaled = |value: f64| value / facts.divisor as f64;
        let best = published.best_wlb.max(published.best_minrtt);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | **{:.2}** | {} | {of_better:.2} | {of_sum:.2} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            facts.name,
            ours.single[0],
            ours.single[1],
            ours.both,
            ours.mptcp.map_or("-".to_owned(), |value| format!("{value:.2}")),
            if holds { "yes" } else { "**no**" },
            scaled(published.single[0]),
            scaled(published.single[1]),
            scaled(published.best_wlb),
            scaled(published.best_minrtt),
            best / published.single[0].max(published.single[1]),
        );
    }
    let _ = writeln!(text, "\n{kept} of {of} hold.");
    text
}

/// Our values on a profile; `None` if one is missing.
fn ours(summary: &Summary, facts: &Facts, quantity: &str) -> Option<Ours> {
    let total = facts.our_rates_bps.iter().sum::<u64>() as f64 / 1e6;
    let loss = facts.losses[0];
    let value = |peer| summary.median(quantity, &facts.name, loss, peer).map(|share| share * total);
    Some(Ours {
        single: [value("path-1")?, value("path-2")?],
        both: value("default")?,
        mptcp: value("mptcp-bbr"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_needs_the_better_path_and_the_sum_of_usable_ones() {
        let row = |values: [f64; 3]| {
            let values = values.map(|value| format!(r#"{{"value": {value}}}"#)).join(", ");
            format!(
                r#"{{"scenario": "goodput, far", "statistic": "median", "loss": 0, "values": [{values}, null]}}"#
            )
        };
        let facts = r#"{"name": "far", "divisor": 4, "rates_mbps": [40, 40], "delays_ms": [1, 2], "deviations_ms": [0, 0],
            "losses": [0, 0], "our_rates_bps": [10000000, 10000000],
            "published": {"single": [20, 4], "best_wlb": 8, "best_minrtt": 10}}"#;
        let shown = |values| {
            let json = format!(
                r#"{{"version": "1", "repetitions": 1, "peers": ["default", "path-1", "path-2", "mptcp-bbr"],
                    "summary": [{}], "profiles": [{facts}]}}"#,
                row(values)
            );
            page(&Summary::parse(&json).expect("a summary"))
        };
        // Shares of 20 Mbit/s.
        let good = shown([0.8, 0.4, 0.4]);
        assert!(
            good.contains(
                "| far | 8.00 | 8.00 | **16.00** | - | 2.00 | 1.00 | yes | 5.00 | 1.00 | 2.00 | 2.50 | 0.50 |"
            ),
            "{good}"
        );
        assert!(shown([0.6, 0.4, 0.4]).contains("0.75 | **no**"), "below the sum of two usable paths");
        assert!(shown([0.4, 0.4, 0.1]).contains("0.80 | yes"), "the second one is of no use");
        assert!(shown([0.38, 0.4, 0.1]).contains("| **no** |"), "below the better path");
    }
}
