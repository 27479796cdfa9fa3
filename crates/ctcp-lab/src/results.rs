//! `ctcp-lab results`: redraws every page, table and picture of `docs/results` from the JSON of runs.
//!
//! ```text
//!   data/simulated/ID.json   ctcp-lab repro     ->  simulated.md, simulated/ID.svg
//!   data/measured/ID.json    ctcp-lab testbed   ->  measured.md, measured/ID.svg
//!   data/compare.json        ctcp-lab testbed compare -> compare.md, goodput.svg
//!   data/compare-NAME.json   the same of some tests   -> compare-NAME.md; paths.svg from `paths`
//!   data/codec.json          ctcp-lab bench codec --json -> codec.md
//!   data/demo-*.json         ctcp demo --json   ->  the block in README.md
//! ```

mod networks;
mod paths;
mod profiles;
mod random;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use ctcp_cli::error::CliError;
use ctcp_repro::comparison::RecordedComparison;
use ctcp_repro::recorded::Recorded;
use serde::Deserialize;

use summary::Summary;

/// The marks around the block in README.md.
const BLOCK: [&str; 2] = ["<!-- figures: demo -->\n", "<!-- end of figures -->"];

/// The note that a page is generated.
const BANNER: &str = "<!-- Drawn by `ctcp-lab results` from docs/results/data. Do not edit. -->\n\n";

/// The comparison on several paths.
const PATHS: &str = "paths";

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctcp-lab results\n  ctcp-lab results --check")]
pub(crate) struct ResultsArgs {
    /// The folder of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Write nothing; fail if a file differs from its data
    #[arg(long)]
    check: bool,
}

/// The output of `ctcp demo --json`.
#[derive(Deserialize)]
struct Demo {
    version: String,
    profile: String,
    rate_bps: f64,
    rtt_ms: f64,
    loss: f64,
    bytes: u64,
    seconds: f64,
    goodput_share: f64,
    baseline: Baseline,
}

#[derive(Deserialize)]
struct Baseline {
    profile: String,
    seconds: f64,
    extrapolated: bool,
    goodput_share: f64,
}

/// The output of `ctcp-lab bench codec --json`.
#[derive(Deserialize)]
struct Codec {
    version: String,
    cpu: String,
    clock_ghz: f64,
    engines: Vec<Engine>,
    decode: Vec<Decoding>,
}

#[derive(Deserialize)]
struct Engine {
    engine: String,
    n: u32,
    outputs: u32,
    symbol_bytes: u32,
    gbps: f64,
    control_gbps: f64,
}

#[derive(Deserialize)]
struct Decoding {
    n: u32,
    loss: f64,
    dense: bool,
    mbps: f64,
}

/// A file and its text.
type Page = (PathBuf, String);

#[expect(clippy::print_stdout, reason = "what was drawn is the result")]
pub(crate) fn run(args: &ResultsArgs) -> Result<(), CliError> {
    let results = args.root.join("docs/results");
    let mut pages = Vec::new();
    for (folder, title) in [("simulated", "Simulated"), ("measured", "Measured on sockets")] {
        pages.extend(figures(&results, folder, title)?);
    }
    let file = results.join("data/compare.json");
    let comparison = RecordedComparison::parse(&read(&file)?).map_err(|error| wrong(&file, &error))?;
    let page = format!("# Alongside other transports\n\n{BANNER}{}", comparison.markdown());
    pages.push((results.join("compare.md"), page));
    pages.push((results.join("goodput.svg"), comparison.svg().map_err(|error| wrong(&file, &error))?));
    pages.extend(comparisons(&results)?);
    let file = results.join("data/codec.json");
    let codec: Codec = serde_json::from_str(&read(&file)?).map_err(|error| wrong(&file, &error))?;
    pages.push((results.join("codec.md"), codec.page()));
    pages.push(readme(&args.root, &results)?);
    let orphans = orphans(&results, &pages)?;
    let changed: Vec<&Page> =
        pages.iter().filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text)).collect();
    if args.check
        && let Some(path) = orphans.first()
    {
        return Err(CliError::failure(format!("no data draws {}; run `ctcp-lab results`", path.display())));
    }
    if args.check {
        let Some((path, _)) = changed.first() else { return Ok(()) };
        return Err(CliError::failure(format!(
            "{} of {} generated files differ from their data, the first is {}; run `ctcp-lab results`",
            changed.len(),
            pages.len(),
            path.display()
        )));
    }
    for (path, text) in &changed {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, text))
            .map_err(|error| wrong(path, &error))?;
    }
    for path in &orphans {
        fs::remove_file(path).map_err(|error| wrong(path, &error))?;
    }
    println!("{} of {} files changed, {} removed", changed.len(), pages.len(), orphans.len());
    Ok(())
}

/// The pages of comparisons by some tests, which were run on their own.
fn comparisons(results: &Path) -> Result<Vec<Page>, CliError> {
    let mut pages = Vec::new();
    for file in files(&results.join("data"))? {
        let name =
            file.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.strip_prefix("compare-"));
        let Some(name) = name else { continue };
        let json = read(&file)?;
        let summary = Summary::parse(&json).map_err(|error| wrong(&file, &error))?;
        let text = match name {
            // A table for each quantity would be hard to read.
            "profiles" => profiles::page(&summary),
            "random" => random::page(&summary),
            "networks" => networks::page(&summary),
            "network-requests" => networks::requests_page(&summary),
            _ => {
                let recorded = RecordedComparison::parse(&json).map_err(|error| wrong(&file, &error))?;
                recorded.markdown() + &paths::promises_section(&summary).unwrap_or_default()
            }
        };
        let page = format!("# Alongside other transports: {name}\n\n{BANNER}{text}");
        if name == PATHS {
            pages.push((results.join("paths.svg"), paths::svg(&summary)));
        }
        pages.push((results.join(format!("compare-{name}.md")), page));
    }
    Ok(pages)
}

/// Pictures in the folders of figures that no data draws any more.
fn orphans(results: &Path, pages: &[Page]) -> Result<Vec<PathBuf>, CliError> {
    let mut orphans = Vec::new();
    for folder in ["simulated", "measured"] {
        let there = files_with(&results.join(folder), "svg")?;
        orphans.extend(there.into_iter().filter(|path| pages.iter().all(|(page, _)| page != path)));
    }
    Ok(orphans)
}

/// The page of a folder of figures, and its pictures.
fn figures(results: &Path, folder: &str, title: &str) -> Result<Vec<Page>, CliError> {
    let mut page = format!("# {title}\n\n{BANNER}");
    let mut pages = Vec::new();
    for file in files(&results.join("data").join(folder))? {
        let figure = Recorded::parse(&read(&file)?).map_err(|error| wrong(&file, &error))?;
        let svg = figure.svg().map_err(|error| wrong(&file, &error))?;
        pages.push((results.join(folder).join(format!("{}.svg", figure.id)), svg));
        page += &figure.markdown(folder);
    }
    pages.push((results.join(format!("{folder}.md")), page.trim_end().to_owned() + "\n"));
    Ok(pages)
}

/// README.md with the demo's results.
fn readme(root: &Path, results: &Path) -> Result<Page, CliError> {
    let path = root.join("README.md");
    let text = read(&path)?;
    let mut block = String::from("```text\n");
    for file in files(&results.join("data"))? {
        let is_demo = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("demo-"));
        if is_demo {
            let demo: Demo = serde_json::from_str(&read(&file)?).map_err(|error| wrong(&file, &error))?;
            block += &demo.text();
        }
    }
    block += "```\n";
    let [begin, end] = BLOCK;
    let parts = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let (before, after) =
        parts.ok_or_else(|| wrong(&path, &"the marks around the demo's figures are missing"))?;
    Ok((path, format!("{before}{begin}{block}{end}{after}")))
}

impl Demo {
    fn text(&self) -> String {
        let Self { baseline, .. } = self;
        let scaled = if baseline.extrapolated { ", estimated: stopped early" } else { "" };
        format!(
            "$ cargo run --release -- demo --loss {}          # {}\n\
             A download of {:.1} MB over a link of {:.1} Mbit/s, round trip {} ms, {:.1} % loss each way:\n  \
             coded ({}): {:.2} s, {:.1} % of the link, every byte verified\n  \
             without coding ({}): {:.1} s, {:.1} % of the link{scaled}\n",
            self.loss,
            self.version,
            self.bytes as f64 / 1e6,
            self.rate_bps / 1e6,
            self.rtt_ms,
            self.loss * 100.0,
            self.profile,
            self.seconds,
            self.goodput_share * 100.0,
            baseline.profile,
            baseline.seconds,
            baseline.goodput_share * 100.0,
        )
    }
}

impl Codec {
    fn page(&self) -> String {
        let mut text = format!(
            "# Coding on one core\n\n{BANNER}Made by {}: `ctcp-lab bench codec --json` on {}, {:.2} GHz.\n\n\
             ## Combining symbols\n\nGB/s count products: a byte times a coefficient, added. The control is a plain XOR of the same symbols by the same \
             engine in the same moment.\n\n| engine | symbols | outputs | symbol (bytes) | GB/s | control GB/s |\n|---|---|---|---|---|---|\n",
            self.version, self.cpu, self.clock_ghz
        );
        for Engine { engine, n, outputs, symbol_bytes, gbps, control_gbps } in &self.engines {
            text +=
                &format!("| {engine} | {n} | {outputs} | {symbol_bytes} | {gbps:.2} | {control_gbps:.1} |\n");
        }
        text += "\n## Decoding\n\nThe decoder of connections, with the fastest engine: megabytes of block per second.\n\n\
                 | symbols in a block | lost | MB/s |\n|---|---|---|\n";
        for Decoding { n, loss, dense, mbps } in &self.decode {
            let lost = if *dense { "all".to_owned() } else { format!("{} %", loss * 100.0) };
            text += &format!("| {n} | {lost} | {mbps:.0} |\n");
        }
        text
    }
}

/// The JSON files of a folder, ordered by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    files_with(folder, "json")
}

/// The files of a folder with that extension, by name.
fn files_with(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, CliError> {
    let entries = fs::read_dir(folder).map_err(|error| wrong(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(folder, &error))?;
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, CliError> {
    fs::read_to_string(path).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::failure(format!("{}: {error}", path.display()))
}
