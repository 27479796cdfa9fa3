//! The page of random paths: the peers over all of them, and path by path.

use core::fmt::Write;

use ctcp_repro::random_path::Facts;

use super::summary::{Summary, shown};

/// The share of the link below which a run counts as bad.
const LEAST: f64 = 0.65;

/// A smaller difference between two runs is chance.
const SAME: f64 = 0.02;

fn median(summary: &Summary, path: &Facts, quantity: &str, peer: &str) -> Option<f64> {
    summary.median(quantity, &format!("path {}", path.seed), path.loss, peer)
}

fn goodput(summary: &Summary, path: &Facts, peer: &str) -> Option<f64> {
    median(summary, path, "goodput", peer)
}

/// Bytes sent for each byte, relative to the least that the path's loss requires.
fn excess(summary: &Summary, path: &Facts, peer: &str) -> Option<f64> {
    median(summary, path, "bytes sent per byte", peer).map(|sent| sent * (1.0 - path.loss))
}

/// The page without its title.
pub(super) fn page(summary: &Summary) -> String {
    let seconds = summary.seconds.unwrap_or(5);
    let mut text = format!(
        "Made by {}: `ctcp-lab testbed compare --tests random`. Repetitions: {}; each value is their median.\n\n\
         {} paths, drawn by their seeds from these ranges:\n\n\
         - rate: 0.5 to 500 Mbit/s, log-uniform\n\
         - round-trip time: 2 to 600 ms, log-uniform\n\
         - loss: none on a fifth of the paths, else up to 30 %; in bursts of up to 20 packets on half of them\n\
         - jitter: up to 30 ms each way on half of the paths\n\
         - queue: 0.25 to 4 bandwidth-delay products, log-uniform, at least 4 packets\n\n\
         Paths of more than 100 Mbit/s are left out, since emulator and programs share the processor. \
         Seeds start at 1,000,001; smaller ones serve to tune congestion control. Each download starts in slow start and takes {seconds} s, or 25 round trips if they take longer.\n\n\
         Goodput is a share of the link's rate, of which headers take about a twentieth. Packets are lost before the bottleneck, so loss leaves the rate \
         as it is. *Excess* is bytes sent for each byte, times 1 - p: 1.05 with headers if nothing is sent in vain.\n",
        summary.version,
        summary.repetitions,
        summary.random.len(),
    );
    text += &overview(summary);
    text += &rows(summary);
    text + &summary.failed()
}

/// Each peer over all paths.
fn overview(summary: &Summary) -> String {
    let mut text = format!(
        "\n## Over all paths\n\nA download that failed counts as 0. The last column has the number of paths on which the first peer is ahead, and behind, by more than {SAME} of \
         the link.\n\n\
         | peer | paths | failed | median | tenth percentile | least | below {LEAST} | excess, median | ninetieth percentile | most | ahead, behind |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for peer in &summary.peers {
        let ascending = |values: &mut dyn Iterator<Item = f64>| {
            let mut values: Vec<f64> = values.collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let paths = || summary.random.iter();
        let shares = ascending(&mut paths().map(|path| goodput(summary, path, peer).unwrap_or_default()));
        let failed = paths().filter(|path| goodput(summary, path, peer).is_none()).count();
        let sent = ascending(&mut paths().filter_map(|path| excess(summary, path, peer)));
        let (ahead, behind) = duel(summary, peer);
        let below = shares.iter().filter(|share| **share < LEAST).count();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {peer} | {} | {failed} | {} | {} | {} | {below} | {} | {} | {} | {ahead}, {behind} |",
            shares.len(),
            percentile(&shares, 50, 3),
            percentile(&shares, 10, 3),
            percentile(&shares, 0, 3),
            percentile(&sent, 50, 2),
            percentile(&sent, 90, 2),
            percentile(&sent, 100, 2),
        );
    }
    text
}

/// On how many paths the first peer has more than another, and less.
fn duel(summary: &Summary, peer: &str) -> (usize, usize) {
    let share = |path: &Facts, peer: &str| goodput(summary, path, peer).unwrap_or_default();
    let first = summary.peers.first().map_or("", String::as_str);
    let gains = || summary.random.iter().map(|path| share(path, first) - share(path, peer));
    (gains().filter(|gain| *gain > SAME).count(), gains().filter(|gain| *gain < -SAME).count())
}

/// The peers path by path.
fn rows(summary: &Summary) -> String {
    let mut text = "\n## Path by path\n\nGoodput; the best is bold. The last column is the excess of the first peer. A path is named by its seed.\n\n"
        .to_owned();
    text += &summary.head(
        &[
            "path",
            "Mbit/s",
            "ms",
            "rate times RTT (packets)",
            "queue (packets)",
            "loss",
            "in bursts of",
            "jitter (ms)",
        ],
        &["excess"],
    );
    for path in &summary.random {
        let shares: Vec<Option<f64>> =
            summary.peers.iter().map(|peer| goodput(summary, path, peer)).collect();
        let best = shares.iter().flatten().copied().max_by(f64::total_cmp);
        let _ = write!(
            text,
            "| {} | {:.2} | {:.1} | {:.0} | {} | {:.1} % | {:.1} | {:.1} |",
            path.seed,
            path.rate_bps as f64 / 1e6,
            path.rtt_ms,
            path.product,
            path.queue,
            path.loss * 100.0,
            path.burst,
            path.jitter_ms,
        );
        text.extend(shares.into_iter().map(|share| shown(share, best)));
        let first = summary.peers.first().and_then(|peer| excess(summary, path, peer));
        let _ = match first {
            Some(excess) => writeln!(text, " {excess:.2} |"),
            None => writeln!(text, " - |"),
        };
    }
    text
}

/// The value that `percent` of the ascending values do not reach, with so many digits.
fn percentile(ascending: &[f64], percent: usize, digits: usize) -> String {
    let place = (ascending.len() * percent / 100).min(ascending.len().saturating_sub(1));
    ascending.get(place).map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_summed_up_over_all_paths_and_listed_path_by_path() {
        let fact = |seed: u64| {
            format!(
                r#"{{"seed": {seed}, "rate_bps": 2000000, "rtt_ms": 20, "loss": 0.2, "burst": 1, "jitter_ms": 3, "queue": 9, "product": 3.3}}"#
            )
        };
        let row = |quantity: &str, seed: u64, values: &str| {
            format!(
                r#"{{"scenario": "{quantity}, path {seed}", "statistic": "median", "loss": 0.2, "values": {values}}}"#
            )
        };
        let json = format!(
            r#"{{"version": "1", "repetitions": 1, "peers": ["default", "bbr"], "random": [{}, {}], "summary": [{}, {}, {}]}}"#,
            fact(4),
            fact(7),
            row("goodput", 4, r#"[{"value": 0.9}, {"value": 0.5}]"#),
            row("goodput", 7, r#"[{"value": 0.6}, null]"#),
            row("bytes sent per byte", 4, r#"[{"value": 1.5}, {"value": 2}]"#),
        );
        let page = page(&Summary::parse(&json).expect("a summary"));
        assert!(
            page.contains("| default | 2 | 0 | 0.900 | 0.600 | 0.600 | 1 | 1.20 | 1.20 | 1.20 | 0, 0 |"),
            "{page}"
        );
        assert!(
            page.contains("| bbr | 2 | 1 | 0.500 | 0.000 | 0.000 | 2 | 1.60 | 1.60 | 1.60 | 2, 0 |"),
            "{page}"
        );
        assert!(
            page.contains("| 4 | 2.00 | 20.0 | 3 | 9 | 20.0 % | 1.0 | 3.0 | **0.900** | 0.500 | 1.20 |"),
            "{page}"
        );
        assert!(page.contains("3.0 | **0.600** | - | - |"), "{page}");
    }
}
