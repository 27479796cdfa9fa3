//! `ctcp-lab testbed compare`: all peers on the same networks, in one run.

use std::path::PathBuf;

use ctcp_repro::Settings;
use ctcp_repro::comparison::RecordedComparison;
use ctcp_testbed::compare::{Comparison, Kept, PEER_NAMES, Selection, Test};
use ctcp_testbed::testbed::{Progress, Testbed};
use ctcp_testbed::{Stop, TestbedError};

use serde_json::Value;

use super::TestbedArgs;
use super::measure::{bar, executable, explain, show, until_interrupted};
use crate::folder::Folder;
use crate::repro::count;
use ctcp_cli::error::CliError;

const ID: &str = "compare";

/// What an interrupted run has measured.
const UNFINISHED: &str = "compare-unfinished.json";

/// The most seconds of a download: longer ones only tell the same.
const SECONDS_MAX: u32 = 3_600;

/// The request, checked before anything is measured.
struct Request {
    selection: Selection,
    settings: Settings,
    executable: PathBuf,
    out: PathBuf,
    does_resume: bool,
    is_json: bool,
}

pub(super) fn run(args: &TestbedArgs) -> Result<(), CliError> {
    let request = Request::parse(args)?;
    until_interrupted(move |stop| compare(&request, stop))
}

impl Request {
    fn parse(args: &TestbedArgs) -> Result<Self, CliError> {
        let peers = args.peers.iter().map(|name| peer(name)).collect::<Result<_, _>>()?;
        let tests = args.tests.iter().map(|name| test(name)).collect::<Result<_, _>>()?;
        let losses = args.losses.iter().map(|text| loss(text)).collect::<Result<_, _>>()?;
        let seconds =
            args.seconds.as_deref().map(|text| count("--seconds", text, SECONDS_MAX)).transpose()?;
        let seconds = seconds.map(u64::from);
        let cells = args.cells.as_deref().map(|text| count("--cells", text, u32::MAX)).transpose()?;
        let cells = cells.map(|count| count as usize);
        let seeds = args.seeds.as_deref().map(|text| count("--seeds", text, u32::MAX)).transpose()?;
        Ok(Self {
            selection: Selection { peers, tests, losses, seconds, cells },
            settings: Settings { quick: args.quick, seeds, ..Settings::default() },
            executable: executable()?,
            out: args.out.clone(),
            does_resume: args.resume,
            is_json: args.json,
        })
    }

    /// What an interrupted run has left, if this one is to go on with it.
    fn kept(&self) -> Result<Option<Kept>, CliError> {
        if !self.does_resume {
            return Ok(None);
        }
        let file = self.out.join(UNFINISHED);
        let text = std::fs::read_to_string(&file).map_err(|error| {
            CliError::failure(format!("--resume: nothing to go on with: {}: {error}", file.display()))
        })?;
        let kept = serde_json::from_str(&text).map_err(|error| {
            CliError::failure(format!("--resume: {} is damaged: {error}", file.display()))
        })?;
        Ok(Some(kept))
    }
}

fn peer(name: &str) -> Result<&'static str, CliError> {
    PEER_NAMES.into_iter().find(|known| *known == name).ok_or_else(|| {
        CliError::usage(format!("--peers {name}: no such peer; there are {}", PEER_NAMES.join(", ")))
    })
}

fn test(name: &str) -> Result<Test, CliError> {
    Test::ALL.into_iter().find(|test| test.name() == name).ok_or_else(|| {
        let names = Test::ALL.map(Test::name).join(", ");
        CliError::usage(format!("--tests {name}: no such test; there are {names}"))
    })
}

fn loss(text: &str) -> Result<f64, CliError> {
    let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| CliError::usage(format!("--losses {text}: shares from 0 to below 1 are wanted")))
}

#[expect(clippy::print_stdout, reason = "the tables are the result")]
fn compare(request: &Request, stop: &Stop) -> Result<(), CliError> {
    let folder = Folder::open(&request.out)?;
    let kept = request.kept()?;
    let bar = bar(ID);
    let on_progress = |progress: Progress<'_>| show(&bar, progress);
    let mut testbed = Testbed::new(request.settings, request.executable.clone(), stop.clone(), on_progress);
    // The pages are written after every repetition, so that those of an interrupted run have complete repetitions.
    let keep = |comparison: &Comparison, testbed: &Testbed<'_>| {
        let written = if comparison.is_even() { write(comparison, testbed, &folder) } else { Ok(()) };
        written
            .and_then(|()| write_kept(comparison, &folder))
            .map_err(|_| TestbedError::Failed("the results cannot be written".to_owned()))
    };
    let start = (ctcp_cli::VERSION, kept);
    let comparison = Comparison::run(&mut testbed, &request.selection, start, keep).map_err(explain)?;
    bar.finish_and_clear();
    folder.remove(UNFINISHED)?;
    let json = json(&comparison, &testbed);
    if request.is_json {
        println!("{json}");
    } else {
        println!("{}", page(&json)?);
    }
    folder.say(request.is_json);
    Ok(())
}

fn write_kept(comparison: &Comparison, folder: &Folder) -> Result<(), CliError> {
    let kept = serde_json::to_string(&comparison.kept(ctcp_cli::VERSION));
    let kept = kept.map_err(|error| CliError::failure(error.to_string()))?;
    folder.write(UNFINISHED, &kept).map(drop)
}

fn write(comparison: &Comparison, testbed: &Testbed<'_>, folder: &Folder) -> Result<(), CliError> {
    let json = json(comparison, testbed);
    folder.write(&format!("{ID}.csv"), &comparison.csv())?;
    folder.write(&format!("{ID}.md"), &page(&json)?)?;
    // Written last: if it exists, so do the others.
    folder.write(&format!("{ID}.json"), &format!("{json:#}"))?;
    Ok(())
}

fn json(comparison: &Comparison, testbed: &Testbed<'_>) -> Value {
    comparison.json(&testbed.record(), ctcp_cli::VERSION, testbed.settings.quick, testbed.elapsed_s())
}

/// The same page as `ctcp-lab results` draws.
fn page(json: &Value) -> Result<String, CliError> {
    let recorded = RecordedComparison::parse(&json.to_string());
    recorded.map(|recorded| recorded.markdown()).map_err(CliError::failure)
}
