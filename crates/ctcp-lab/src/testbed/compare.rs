//! `ctcp-lab testbed compare`: all peers on the same networks, in one run.

use std::path::PathBuf;

use ctcp_repro::Settings;
use ctcp_repro::comparison::RecordedComparison;
use ctcp_testbed::compare::{Comparison, PEER_NAMES, Selection, Test};
use ctcp_testbed::testbed::{Progress, Testbed};
use ctcp_testbed::{Stop, TestbedError};

use serde_json::Value;

use super::TestbedArgs;
use super::measure::{bar, executable, explain, show, until_interrupted};
use crate::folder::Folder;
use crate::repro::count;
use ctcp_cli::error::CliError;

const ID: &str = "compare";

/// The most seconds of a download: longer ones only tell the same.
const SECONDS_MAX: u32 = 3_600;

/// The request, checked before anything is measured.
struct Request {
    selection: Selection,
    settings: Settings,
    executable: PathBuf,
    out: PathBuf,
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
            is_json: args.json,
        })
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
    let bar = bar(ID);
    let on_progress = |progress: Progress<'_>| show(&bar, progress);
    let mut testbed = Testbed::new(request.settings, request.executable.clone(), stop.clone(), on_progress);
    // Written after every repetition, so that an interrupted run keeps its complete repetitions.
    let keep = |comparison: &Comparison, testbed: &Testbed<'_>| {
        write(comparison, testbed, &folder)
            .map_err(|_| TestbedError::Failed("the results cannot be written".to_owned()))
    };
    let comparison = Comparison::run(&mut testbed, &request.selection, keep).map_err(explain)?;
    bar.finish_and_clear();
    let json = json(&comparison, &testbed);
    if request.is_json {
        println!("{json}");
    } else {
        println!("{}", page(&json)?);
    }
    folder.say(request.is_json);
    Ok(())
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
