//! Results as a single HTML page that loads nothing from elsewhere.
//!
//! It is made from the files that `ctcp-lab repro`, `ctcp-lab testbed` and `ctcp-lab testbed compare` write: each
//! figure's JSON and plot, and the comparison's JSON. Fields missing in files of an older or newer program are left
//! out.

use core::fmt::{self, Write};

use serde_json::Value;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:1140px;margin:2em auto;padding:0 1em;color:#1a1a1a}\
h2{margin-top:2.5em;border-top:1px solid #ccc;padding-top:1em}svg{max-width:100%;height:auto}\
table{border-collapse:collapse;font-size:.85em;display:block;overflow-x:auto}td,th{border:1px solid #ccc;padding:.25em .6em;text-align:right}\
td:first-child,th:first-child{text-align:left}.holds{color:#176117}.fails{color:#a01010;font-weight:600}.skipped{color:#777}\
.best{background:#dff0d8;font-weight:600}.range{color:#777;font-size:.85em}nav a{margin-right:1em}details{margin:.5em 0}";

/// A figure: its JSON file and its plot.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The contents of `ID.json`.
    pub json: Value,
    /// The contents of `ID.svg`.
    pub svg: String,
}

/// Returns the page. `comparison` holds the contents of `compare.json`, if there is one.
#[must_use]
pub fn page(figures: &[Figure], comparison: Option<&Value>) -> String {
    let mut text = String::new();
    write_page(&mut text, figures, comparison).expect("writing to a string cannot fail");
    text
}

fn write_page(text: &mut String, figures: &[Figure], comparison: Option<&Value>) -> fmt::Result {
    write!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ctcp: results</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n<h1>Network Coded TCP: results</h1>\n<nav>"
    )?;
    for id in figures.iter().map(|figure| string(&figure.json, "id")) {
        write!(text, "<a href=\"#{0}\">{0}</a> ", escaped(id))?;
    }
    if comparison.is_some() {
        text.push_str("<a href=\"#compare\">compare</a>");
    }
    text.push_str("</nav>\n");
    write_machine(text, figures.iter().map(|figure| &figure.json).chain(comparison))?;
    if let Some(comparison) = comparison {
        write_comparison(text, comparison)?;
    }
    figures.iter().try_for_each(|figure| write_figure(text, figure))?;
    text.push_str("</body></html>\n");
    Ok(())
}

/// Writes the machine of the measurement, according to the first measured result.
fn write_machine<'a>(text: &mut String, mut results: impl Iterator<Item = &'a Value>) -> fmt::Result {
    let Some(machine) = results.find_map(|json| json["testbed"]["machine"].as_object()) else {
        return Ok(());
    };
    text.push_str("<p>Measured on:");
    for (name, value) in machine {
        write!(text, " {} {};", escaped(&name.replace('_', " ")), escaped(&plain(value)))?;
    }
    text.push_str("</p>\n");
    Ok(())
}

fn write_figure(text: &mut String, figure: &Figure) -> fmt::Result {
    let json = &figure.json;
    let id = escaped(string(json, "id"));
    let quick = if json["quick"] == true { ", a quick run" } else { "" };
    writeln!(
        text,
        "<h2 id=\"{id}\">{id}</h2>\n<p>{}{quick}; repetitions of a point: {}</p>",
        escaped(string(json, "paper")),
        json["seeds"]
    )?;
    // The SVG element starts after the XML declaration of the file.
    text.push_str(figure.svg.find("<svg").map_or("", |start| &figure.svg[start..]));
    let checks = array(json, "checks");
    let skipped = checks.iter().filter(|check| check["want"] == "skipped").count();
    let failed = checks.iter().filter(|check| check["pass"] == false).count();
    let held = checks.len() - skipped - failed;
    writeln!(
        text,
        "<p><span class=\"holds\">{held} checks hold</span>, <span class=\"{}\">{failed} do not</span>, <span class=\"skipped\">{skipped} were skipped</span></p>",
        if failed > 0 { "fails" } else { "skipped" }
    )?;
    write!(
        text,
        "<details{}><summary>Checks</summary><table><tr><th>claim</th><th>wanted</th><th>got</th></tr>",
        if failed > 0 { " open" } else { "" }
    )?;
    for check in checks {
        let class = match (check["want"] == "skipped", check["pass"] == true) {
            (true, _) => "skipped",
            (false, true) => "holds",
            (false, false) => "fails",
        };
        let (name, want) = (escaped(string(check, "name")), escaped(string(check, "want")));
        write!(
            text,
            "<tr class=\"{class}\"><td>{name}</td><td>{want}</td><td>{}</td></tr>",
            number(&check["got"])
        )?;
    }
    text.push_str("</table></details>\n");
    write_values(text, json)?;
    write_list(text, "Notes, versions and settings", array(json, "notes").iter().map(plain))
}

/// Writes all points, with their intervals and the printed numbers.
fn write_values(text: &mut String, json: &Value) -> fmt::Result {
    text.push_str("<details><summary>Values</summary><table><tr><th>series</th><th>x</th><th>ours</th><th>95 % interval</th><th>printed</th></tr>");
    let published = array(json, "published");
    for point in array(json, "points") {
        let printed =
            published.iter().find(|other| other["series"] == point["series"] && other["x"] == point["x"]);
        write!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} to {}</td><td>{}</td></tr>",
            escaped(string(point, "series")),
            number(&point["x"]),
            number(&point["y"]),
            number(&point["lo"]),
            number(&point["hi"]),
            printed.map_or_else(String::new, |printed| number(&printed["y"]))
        )?;
    }
    text.push_str("</table></details>\n");
    Ok(())
}

fn write_comparison(text: &mut String, json: &Value) -> fmt::Result {
    // The columns of the summary are the peers in the order of their turns.
    let mut peers: Vec<&str> = Vec::new();
    for run in array(json, "runs") {
        let peer = string(run, "peer");
        if !peers.contains(&peer) {
            peers.push(peer);
        }
    }
    let rows = array(json, "summary");
    writeln!(
        text,
        "<h2 id=\"compare\">All peers on the same networks</h2>\n<p>Repetitions: {}, peers in turn. Best in so many of {} rows:</p><ul>",
        json["repetitions"],
        rows.len()
    )?;
    for peer in &peers {
        let best = rows.iter().filter(|row| array(row, "best").iter().any(|name| name == peer)).count();
        writeln!(text, "<li><b>{}</b>: {best}</li>", escaped(peer))?;
    }
    text.push_str("</ul><table><tr><th>quantity, path</th><th>link</th><th>loss</th><th>statistic</th>");
    for peer in &peers {
        write!(text, "<th>{}</th>", escaped(peer))?;
    }
    text.push_str("</tr>\n");
    for row in rows {
        let megabits = row["rate_bps"].as_f64().unwrap_or(0.0) / 1e6;
        write!(
            text,
            "<tr><td>{} ({})</td><td>{megabits} Mbit/s, {} ms</td><td>{:.0} %</td><td>{}</td>",
            escaped(string(row, "scenario")),
            escaped(string(row, "unit")),
            number(&row["rtt_ms"]),
            100.0 * row["loss"].as_f64().unwrap_or(0.0),
            escaped(string(row, "statistic"))
        )?;
        for (peer, value) in peers.iter().zip(array(row, "values")) {
            let class =
                if array(row, "best").iter().any(|name| name == peer) { " class=\"best\"" } else { "" };
            if value["value"].is_number() {
                let (value, least, most) =
                    (number(&value["value"]), number(&value["least"]), number(&value["most"]));
                write!(text, "<td{class}>{value} <span class=\"range\">{least} to {most}</span></td>")?;
            } else {
                text.push_str("<td>-</td>");
            }
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table>\n");
    let settings = json["testbed"]["peers"].as_object().into_iter().flatten();
    let settings =
        settings.map(|(peer, is)| format!("{peer}: {}; {}", string(is, "version"), string(is, "settings")));
    write_list(text, "Versions and settings", settings)
}

fn write_list(text: &mut String, title: &str, items: impl Iterator<Item = String>) -> fmt::Result {
    write!(text, "<details><summary>{title}</summary><ul>")?;
    for item in items {
        write!(text, "<li>{}</li>", escaped(&item))?;
    }
    text.push_str("</ul></details>\n");
    Ok(())
}

fn string<'a>(json: &'a Value, name: &str) -> &'a str {
    json[name].as_str().unwrap_or("")
}

fn array<'a>(json: &'a Value, name: &str) -> &'a [Value] {
    json[name].as_array().map_or(&[], Vec::as_slice)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats a number with four significant digits; empty if there is no number.
fn number(value: &Value) -> String {
    let Some(value) = value.as_f64() else { return String::new() };
    format!("{value:.3e}").parse::<f64>().unwrap_or(value).to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_has_pictures_verdicts_and_the_best_peer_and_loads_nothing() {
        let json = json!({
            "id": "ctcp-fig3a", "paper": "CTCP", "quick": true, "seeds": 2,
            "points": [{"series": "a<b", "x": 0.01, "y": 0.9512, "lo": 0.9, "hi": 1.0}],
            "published": [{"series": "a<b", "x": 0.01, "y": 0.96}],
            "checks": [{"name": "good", "want": "at least 1", "got": 2.0, "pass": true},
                       {"name": "bad", "want": "at least 3", "got": 2.0, "pass": false}],
            "notes": ["<script>"],
        });
        let figure = Figure { json, svg: "<?xml?><svg id=\"picture\"></svg>".to_owned() };
        let value = |value: f64| json!({"value": value, "least": value, "most": value});
        let comparison = json!({
            "repetitions": 5,
            "runs": [{"peer": "default"}, {"peer": "bbr"}],
            "summary": [{"best": ["bbr"], "scenario": "goodput", "unit": "share", "rate_bps": 25e6, "rtt_ms": 20.0, "loss": 0.1,
                         "statistic": "median", "values": [value(0.5), value(0.75)]}],
        });
        let page = page(&[figure], Some(&comparison));
        for wanted in [
            "<svg id=\"picture\">",
            "1 checks hold",
            "1 do not",
            "<td>a&lt;b</td><td>0.01</td><td>0.9512</td><td>0.9 to 1</td><td>0.96</td>",
            "<b>bbr</b>: 1",
            "<td>0.5 ",
            "<td class=\"best\">0.75 ",
            "&lt;script&gt;",
        ] {
            assert!(page.contains(wanted), "{wanted}: {page}");
        }
        assert!(!page.contains("<script") && !page.contains("http") && !page.contains("<?xml"));
    }
}
