//! The pages of drawn networks: one row for each, and in how many the first peer keeps what is asked of it.

use core::fmt::Write;

use super::summary::{Row, Summary, shown};

/// Up to this loss the first peer is to have the best goodput but for a small part, above it the best.
const LOSS_WITH_EQUALS: f64 = 0.02;
const SAME: f64 = 0.98;

/// How scenarios name drawn networks.
const NAMED: &str = "drawn network with ";

/// A request may take this much longer than with the best other peer, in seconds or relative to it.
const LATER_S: f64 = 0.001;
const LATER: f64 = 1.02;

/// Bytes that may be sent for each byte, times 1 - p. Headers are about a twentieth.
const EXCESS_MAX: f64 = 1.08;

/// A network, with the goodput of each peer and the excess of the first one.
struct Network<'s> {
    row: &'s Row,
    shares: Vec<Option<f64>>,
    excess: Option<f64>,
}

impl Network<'_> {
    fn best(&self) -> Option<f64> {
        self.shares.iter().flatten().copied().max_by(f64::total_cmp)
    }

    /// The goodput of the first peer over that of the best one of the others; infinite if only the first has any. A download that failed
    /// counts as 0.
    fn of_best_other(&self) -> Option<f64> {
        let (first, others) = self.shares.split_first()?;
        let best = others.iter().flatten().copied().fold(0.0, f64::max);
        let first = first.unwrap_or_default();
        (first > 0.0 || best > 0.0).then(|| first / best)
    }
}

fn networks(summary: &Summary) -> Vec<Network<'_>> {
    let of = |quantity: &'static str| {
        summary.rows.iter().filter(move |row| row.statistic == "median" && row.split().0 == quantity)
    };
    let network = |row| -> Network<'_> {
        let shares = summary.peers.iter().map(|peer| summary.value(row, peer)).collect();
        let sent = of("bytes sent per byte").find(|sent| sent.is_on_network_of(row));
        let sent = sent.zip(summary.peers.first()).and_then(|(sent, peer)| summary.value(sent, peer));
        Network { row, shares, excess: sent.map(|sent| sent * (1.0 - row.loss)) }
    };
    of("goodput").filter(|row| row.split().1.starts_with(NAMED)).map(network).collect()
}

/// The page without its title.
pub(super) fn page(summary: &Summary) -> String {
    let networks = networks(summary);
    let mut text = format!(
        "Made by {}: `ctcp-lab testbed compare --tests networks`. Repetitions: {}; each value is their median.\n\n\
         {} networks, drawn with seed 1 from all combinations of these:\n\n\
         - 5 Mbit/s and 300 ms; 25 Mbit/s and 20 ms; 100 Mbit/s and 100 ms; 200 Mbit/s and 30 ms, 100 Mbit/s where more than 2 % is lost\n\
         - loss: 0, 1, 2, 5, 10, 20 and 30 %\n\
         - independent, in bursts of 5 or of 12 packets, or independent with up to 5, 15 or 30 ms of jitter each way\n\n\
         Without loss there are no bursts. Queues hold one bandwidth-delay product, and round trips are without jitter. Each download takes 5 s, or 50 round trips if they take longer. Goodput is a share of the link's rate. \
         Packets are lost before the bottleneck, so loss leaves the rate as it is.\n\n*Excess* is bytes sent for each byte, times 1 - p, where p is the mean loss. \
         With headers it is 1.05 if nothing is sent in vain. What is in flight at the end counts too, which adds up to 0.04.\n",
        summary.version,
        summary.repetitions,
        networks.len(),
    );
    text += &promises(&networks);
    text += &rows(summary, &networks);
    text + &summary.failed()
}

/// In how many networks the first peer keeps what is asked of it.
fn promises(networks: &[Network<'_>]) -> String {
    let (little, much): (Vec<_>, Vec<_>) =
        networks.iter().partition(|network| network.row.loss <= LOSS_WITH_EQUALS);
    let reached = |networks: &[&Network<'_>], least: f64| {
        networks.iter().filter(|network| network.of_best_other().is_some_and(|ratio| ratio >= least)).count()
    };
    let excesses = || networks.iter().filter_map(|network| network.excess);
    format!(
        "\n| the first peer | networks | of |\n|---|---|---|\n\
         | has at least {SAME} of the best goodput of the others, to 2 % loss | {} | {} |\n\
         | has the best goodput, from 5 % loss on | {} | {} |\n\
         | has at least {SAME} of the best of the others, from 5 % loss on | {} | {} |\n\
         | has an excess of at most {EXCESS_MAX} | {} | {} |\n",
        reached(&little, SAME),
        little.len(),
        reached(&much, 1.0),
        much.len(),
        reached(&much, SAME),
        much.len(),
        excesses().filter(|excess| *excess <= EXCESS_MAX).count(),
        excesses().count(),
    )
}

/// The page of requests without its title.
pub(super) fn requests_page(summary: &Summary) -> String {
    let mut all: Vec<&Row> = summary.rows.iter().filter(|row| row.split().1.starts_with(NAMED)).collect();
    // Of single requests the percentile is the median.
    all.dedup_by(|next, row| {
        next.scenario == row.scenario && place(next) == place(row) && next.has_values_of(row)
    });
    let mut places: Vec<String> = all.iter().map(|row| place(row)).collect();
    places.dedup();
    let ended =
        |row: &Row, peer: &String| summary.value(row, peer).filter(|_| !summary.is_cut_off(row, peer));
    let least =
        |row: &Row, peers: &[String]| peers.iter().filter_map(|peer| ended(row, peer)).min_by(f64::total_cmp);
    let is_soon_enough = |row: &Row| {
        let Some((first, others)) = summary.peers.split_first() else { return false };
        let best = least(row, others).unwrap_or(f64::INFINITY);
        ended(row, first).is_some_and(|first| first <= (best + LATER_S).max(best * LATER))
    };
    let mut text = format!(
        "Made by {}: `ctcp-lab testbed compare --tests network-requests`. Repetitions: {}.\n\n\
         {} networks, drawn with seed 1 from all combinations of these:\n\n\
         - 25 Mbit/s and 10 ms; 25 Mbit/s and 100 ms\n\
         - loss: 0, 1, 5, 10 and 20 %\n\
         - independent, in bursts of 5 packets, or independent with up to 5 ms of jitter each way\n\n\
         Seconds from before the connection request to the last byte. A first request is that of a tunnel which has carried a byte before. Kernel TCP begins a \
         connection for every request. Consecutive requests: ten of 10 KB and of 100 KB, three of 1 MB, one of 10 MB in each repetition. The 95th percentile of one repetition is the slowest \
         request. `>`: cut off after 5, 5, 10 and 20 s. Larger requests of the same connection are not tried then (`-`).\n\n\
         The first peer is at or below the best other one within 2 % or 1 ms in {} of {} rows.\n\n",
        summary.version,
        summary.repetitions,
        places.len(),
        all.iter().filter(|row| is_soon_enough(row)).count(),
        all.len(),
    );
    text += &summary.head(&["Mbit/s", "ms", "network", "loss", "request", "statistic"], &[]);
    for row in all {
        let request = row.split().0;
        let request = request.strip_prefix("request of ").unwrap_or(request);
        let _ = write!(text, "| {} | {request} | {} |", place(row), row.statistic);
        let best = least(row, &summary.peers);
        for peer in &summary.peers {
            text += &match summary.value(row, peer) {
                Some(value) if summary.is_cut_off(row, peer) => format!(" > {value:.3} |"),
                value => shown(value, best),
            };
        }
        text += "\n";
    }
    text + &summary.failed()
}

/// The columns of a network.
fn place(row: &Row) -> String {
    let network = row.split().1;
    let name = network.strip_prefix(NAMED).unwrap_or(network);
    format!("{:.0} | {:.0} | {name} | {:.0} %", row.rate_bps / 1e6, row.rtt_ms, row.loss * 100.0)
}

fn rows(summary: &Summary, networks: &[Network<'_>]) -> String {
    let mut text = "\n## Network by network\n\nGoodput; the best is bold. The last two columns are of the first peer: its goodput over the best one of the others, and its \
                    excess.\n\n"
        .to_owned();
    text += &summary.head(&["Mbit/s", "ms", "network", "loss"], &["over the best other", "excess"]);
    for network in networks {
        let _ = write!(text, "| {} |", place(network.row));
        text.extend(network.shares.iter().map(|share| shown(*share, network.best())));
        text += &shown(network.of_best_other().filter(|ratio| ratio.is_finite()), None);
        text += &shown(network.excess, None);
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_listed_and_promises_counted() {
        let row = |quantity: &str, rate: u64, loss: f64, values: &str| {
            format!(
                r#"{{"scenario": "{quantity}, drawn network with bursts of 5", "statistic": "median", "loss": {loss}, "rate_bps": {rate}000000, "rtt_ms": 20, "values": {values}}}"#
            )
        };
        let json = format!(
            r#"{{"version": "1", "repetitions": 1, "peers": ["default", "bbr"], "summary": [{}]}}"#,
            [
                row("goodput", 25, 0.01, r#"[{"value": 0.9}, {"value": 0.91}]"#),
                row("goodput", 5, 0.01, r#"[{"value": 0.9}, {"value": 0.95}]"#),
                row("goodput", 25, 0.2, r#"[{"value": 0.89}, {"value": 0.9}]"#),
                row("goodput", 5, 0.2, r#"[{"value": 0.6}, null]"#),
                row("goodput", 50, 0.2, r#"[null, {"value": 0.9}]"#),
                row("bytes sent per byte", 25, 0.2, r#"[{"value": 1.3}, {"value": 2}]"#),
                row("bytes sent per byte", 5, 0.2, r#"[{"value": 1.5}, {"value": 2}]"#),
            ]
            .join(", ")
        );
        let page = page(&Summary::parse(&json).expect("a summary"));
        for line in [
            "others, to 2 % loss | 1 | 2 |",
            "has the best goodput, from 5 % loss on | 1 | 3 |",
            "others, from 5 % loss on | 2 | 3 |",
            "at most 1.08 | 1 | 2 |",
            "| 25 | 20 | bursts of 5 | 20 % | 0.890 | **0.900** | 0.989 | 1.040 |",
            "| 5 | 20 | bursts of 5 | 20 % | **0.600** | - | - | 1.200 |",
            "| 50 | 20 | bursts of 5 | 20 % | - | **0.900** | 0.000 | - |",
            "| 5 | 20 | bursts of 5 | 1 % | 0.900 | **0.950** | 0.947 | - |",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn requests_are_listed_and_those_soon_enough_counted() {
        let row = |quantity: &str, statistic: &str, values: &str| {
            format!(
                r#"{{"scenario": "{quantity}, drawn network with bursts of 5", "statistic": "{statistic}", "loss": 0.05, "rate_bps": 25000000, "rtt_ms": 10, "values": {values}}}"#
            )
        };
        let json = format!(
            r#"{{"version": "1", "repetitions": 1, "peers": ["default", "bbr"], "summary": [{}]}}"#,
            [
                row("request of 10 KB", "median", r#"[{"value": 0.0209}, {"value": 0.02}]"#),
                row("request of 10 KB", "p95", r#"[{"value": 0.0211}, {"value": 0.02}]"#),
                row("request of 1 MB", "median", r#"[{"value": 1.03}, {"value": 1}]"#),
                row("request of 1 MB", "p95", r#"[{"value": 1.03}, {"value": 1}]"#),
                row("first request of 1 MB", "median", r#"[{"value": 1.01}, {"value": 1}]"#),
                row(
                    "first request of 10 MB",
                    "median",
                    r#"[{"value": 20, "is_cut_off": true}, {"value": 20, "is_cut_off": true}]"#
                ),
                row("request of 10 MB", "median", r#"[{"value": 9}, {"value": 20, "is_cut_off": true}]"#),
                row("request of 10 MB", "p95", r#"[null, {"value": 9}]"#),
            ]
            .join(", ")
        );
        let page = requests_page(&Summary::parse(&json).expect("a summary"));
        for line in [
            "1 networks",
            "in 3 of 7 rows",
            "| 25 | 10 | bursts of 5 | 5 % | 10 KB | median | 0.021 | **0.020** |",
            "| 25 | 10 | bursts of 5 | 5 % | first request of 1 MB | median | 1.010 | **1.000** |",
            "| first request of 10 MB | median | > 20.000 | > 20.000 |",
            "| 10 MB | median | **9.000** | > 20.000 |",
            "| 10 MB | p95 | - | **9.000** |",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(!page.contains("| 1 MB | p95 |"), "the same as the median");
        let nobody = Summary::parse(&json.replace(r#"["default", "bbr"]"#, "[]")).expect("a summary");
        assert!(requests_page(&nobody).contains("in 0 of"));
    }
}
