//! The page and the picture of several paths: what was promised, what was measured, and how two paths add up.

use core::fmt::Write;

use super::summary::{Row, Summary};

/// The pairs of the picture, as results name them, and its labels.
const PAIRS: [(&str, [&str; 2]); 4] = [
    ("10 + 10 Mbit/s, 20 + 20 ms", ["10 + 10 Mbit/s", "20 + 20 ms"]),
    ("20 + 5 Mbit/s, 20 + 120 ms", ["20 + 5 Mbit/s", "20 + 120 ms"]),
    (
        "30 + 10 Mbit/s, 30 + 200 ms, the second loses another 10 %",
        ["30 + 10 Mbit/s", "30 + 200 ms, + 10 % lost"],
    ),
    ("2 + 50 Mbit/s, 10 + 80 ms", ["2 + 50 Mbit/s", "10 + 80 ms"]),
];

/// Pairs whose round-trip times differ more than sixfold, where less of the sum is asked.
const FAR_APART: [&str; 2] = [PAIRS[2].0, PAIRS[3].0];

/// Two chains of relays.
const SIDE_BY_SIDE: &str = "two relays side by side";

/// The share of an application in the bytes of a full packet through relays.
const PAYLOAD: f64 = ctcp::RELAYED_PAYLOAD as f64 / ctcp::RELAYED_PACKET as f64;

/// The loss of the picture.
const PICTURED: f64 = 0.05;

/// A promise about a peer in a row.
struct Promise {
    peer: &'static str,
    /// `>=` or `<=`, and the bound.
    is_at_least: bool,
    bound: f64,
}

/// The promises that apply to a row.
fn promises(summary: &Summary, row: &Row) -> Vec<Promise> {
    let at_least = |peer, bound| Promise { peer, is_at_least: true, bound };
    let at_most = |peer, bound| Promise { peer, is_at_least: false, bound };
    let (quantity, network) = row.split();
    match (quantity, row.statistic.as_str()) {
        ("goodput over the sum of ctcp on each path alone", "median") => {
            vec![at_least("default", if FAR_APART.contains(&network) { 0.9 } else { 0.93 })]
        }
        ("symbols received in vain", "median") => {
            vec![at_most(
                "default",
                if row.loss == 0.0 && !network.contains("another") { 0.03 } else { 0.05 },
            )]
        }
        ("goodput over ctcp on the first two paths", "median") => vec![at_least("default", 0.98)],
        ("goodput", "median") if network == SIDE_BY_SIDE => {
            vec![at_least("relay-recode", 0.9 * PAYLOAD)]
        }
        ("goodput", "median") => vec![at_least("relay-recode", 0.94 * PAYLOAD)],
        (first_hop, "median") if first_hop.starts_with("bytes sent on the first hop") => {
            vec![at_most("relay-recode", 1.12)]
        }
        ("the Cubic flow's goodput over the mean of two Cubic flows", "median") => {
            vec![at_least("default", 0.85), at_least("path-1", 0.85)]
        }
        (request, "p95") if request.starts_with("request of") => {
            let alone = ["path-1", "path-2"].map(|peer| summary.value(row, peer));
            let better = alone.into_iter().flatten().reduce(f64::min);
            better.map(|better| at_most("default", better)).into_iter().collect()
        }
        // 10 ms more than the one-way delay of the slower path, 40 ms.
        ("delivery, p99", "median") if network.contains("bursts of 12") => {
            vec![
                at_most("low-latency", 50.0),
                at_most("low-latency-forward", 50.0),
                at_most("redundant", 50.0),
            ]
        }
        _ => Vec::new(),
    }
}

/// The section that says which promises hold; `None` if there are none on this page.
pub(super) fn promises_section(summary: &Summary) -> Option<String> {
    let mut text = "\n## What is promised, and what holds\n\n".to_owned();
    if summary.rows.iter().any(|row| row.split().0 == "goodput") {
        // Writing to a string cannot fail.
        let _ = write!(text, "Downloads of {} s. ", summary.seconds());
    }
    if summary.rows.iter().any(|row| summary.value(row, "relay-recode").is_some()) {
        let _ = write!(
            text,
            "The payload share, of a stream in the bytes of a full packet of the first hop, is {PAYLOAD:.3}. Wanted is 0.94 of it, and \
             side by side 0.9 of it, of the min-cut, which is the rate of the link: packets are lost before the bottleneck. Some runs of relays \
             that forward nearly stand still, at 32 % loss over three hops: direct connections do so beyond about a third, too.\n\n"
        );
    } else {
        text += "`path-1` and `path-2` are ctcp on one of the paths only.\n\n";
    }
    text +=
        "| quantity | network | loss | peer | wanted | measured | holds |\n|---|---|---|---|---|---|---|\n";
    let (mut kept, mut of) = (0, 0);
    for row in &summary.rows {
        for Promise { peer, is_at_least, bound } in promises(summary, row) {
            let Some(value) = summary.value(row, peer) else { continue };
            let holds = if is_at_least { value >= bound } else { value <= bound };
            (kept, of) = (kept + usize::from(holds), of + 1);
            let (quantity, network) = row.split();
            let _ = writeln!(
                text,
                "| {quantity}, {} | {network} | {} % | {peer} | {} {bound:.3} | {value:.3} | {} |",
                row.statistic,
                (row.loss * 1e4).round() / 1e2,
                if is_at_least { "at least" } else { "at most" },
                if holds { "yes" } else { "**no**" },
            );
        }
    }
    let _ = writeln!(text, "\n{kept} of {of} hold.");
    (of > 0).then_some(text)
}

/// Width and height of the picture, and where its bars stand.
const SIZE: (u32, u32) = (900, 420);
const FOOT: f64 = 330.0;
const TOP: f64 = 60.0;
const GROUP: f64 = 205.0;
const BAR: f64 = 46.0;

/// Colours of Okabe and Ito (2008): the first path, the second, both, and MPTCP.
const COLOURS: [&str; 4] = ["#56B4E9", "#E69F00", "#0072B2", "#999999"];
const LEGEND: [&str; 4] =
    ["ctcp, first path alone", "ctcp, second path alone", "ctcp, both paths", "MPTCP, BBR"];

/// The picture: for each pair the two single paths on top of each other, both, and MPTCP.
pub(super) fn svg(summary: &Summary) -> String {
    let (width, height) = SIZE;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"16\" y=\"28\" font-size=\"17\">One download over two paths, {} % of packets lost: goodput, of both links' rates</text>\n",
        PICTURED * 100.0
    );
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let y = height_of(percent / 100.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<line x1=\"52\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#ddd\"/>\
             <text x=\"46\" y=\"{}\" text-anchor=\"end\">{percent} %</text>",
            width - 16,
            y + 4.0
        );
    }
    for (index, (network, labels)) in PAIRS.iter().enumerate() {
        let left = 72.0 + GROUP * index as f64;
        let goodput = |peer| summary.median("goodput", network, PICTURED, peer).unwrap_or(0.0);
        let (first, second) = (goodput("path-1"), goodput("path-2"));
        bar(&mut text, left, (0.0, first), COLOURS[0], None);
        bar(&mut text, left, (first, first + second), COLOURS[1], Some(first + second));
        for (place, peer) in [(1.0, "default"), (2.0, "mptcp-bbr")] {
            let value = goodput(peer);
            bar(
                &mut text,
                left + place * (BAR + 8.0),
                (0.0, value),
                COLOURS[place as usize + 1],
                Some(value),
            );
        }
        for (line, label) in labels.iter().enumerate() {
            let (x, y) = (left + 1.5 * BAR + 8.0, FOOT + 18.0 + 16.0 * line as f64);
            let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>");
        }
    }
    for (index, (name, colour)) in LEGEND.iter().zip(COLOURS).enumerate() {
        let x = 60.0 + 205.0 * index as f64;
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\">{name}</text>",
            FOOT + 58.0,
            x + 18.0,
            FOOT + 69.0
        );
    }
    text + "</svg>\n"
}

/// A bar between two shares, with its value above it if there is one.
fn bar(text: &mut String, x: f64, (from, to): (f64, f64), colour: &str, value: Option<f64>) {
    let (top, bottom) = (height_of(to), height_of(from));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "<rect x=\"{x}\" y=\"{top:.1}\" width=\"{BAR}\" height=\"{:.1}\" fill=\"{colour}\"/>",
        bottom - top
    );
    if let Some(value) = value {
        let (x, y) = (x + BAR / 2.0, top - 4.0);
        let _ = writeln!(
            text,
            "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"middle\">{:.0} %</text>",
            value * 100.0
        );
    }
}

/// Where a share ends, from the top of the picture.
fn height_of(share: f64) -> f64 {
    FOOT - (FOOT - TOP) * share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(sum: f64) -> Summary {
        let row = |quantity: &str, values: &str| {
            format!(
                r#"{{"scenario": "{quantity}, {}", "statistic": "median", "unit": "x", "loss": 0.05, "values": [{values}]}}"#,
                PAIRS[0].0
            )
        };
        let of_sum = row(
            "goodput over the sum of ctcp on each path alone",
            &format!(r#"{{"value": {sum}}}, null, null, null"#),
        );
        let goodput = row("goodput", r#"{"value": 0.8}, {"value": 0.4}, {"value": 0.5}, {"value": 0.1}"#);
        let peers = r#"["default", "path-1", "path-2", "mptcp-bbr"]"#;
        let json = format!(
            r#"{{"version": "1", "repetitions": 1, "peers": {peers}, "summary": [{of_sum}, {goodput}]}}"#
        );
        Summary::parse(&json).expect("a summary")
    }

    #[test]
    fn a_promise_holds_from_its_bound_on() {
        let section = |sum| promises_section(&summary(sum)).expect("a promise");
        assert!(section(0.93).contains("at least 0.930 | 0.930 | yes"));
        assert!(section(0.92).contains("| 0.920 | **no** |\n\n0 of 1 hold."));
    }

    #[test]
    fn single_paths_stand_on_each_other_beside_both() {
        let picture = svg(&summary(1.0));
        for shown in [">90 %</text>", ">80 %</text>", ">10 %</text>"] {
            assert!(picture.contains(shown), "{shown}");
        }
        assert!(picture.ends_with("</svg>\n"));
    }
}
