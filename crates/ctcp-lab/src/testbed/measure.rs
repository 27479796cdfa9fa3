//! `ctcp-lab testbed` on Linux.

use std::path::PathBuf;
use std::time::Duration;

use ctcp_repro::{Settings, Waiting};
use ctcp_testbed::compare::PEER_NAMES;
use ctcp_testbed::figure::{FIGURES, Figure, Finding, WAITING};
use ctcp_testbed::testbed::{Progress, Testbed};
use ctcp_testbed::{Stop, TestbedError};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::TestbedArgs;
use crate::folder::Folder;
use crate::repro::{count, judge};
use ctcp_cli::error::CliError;
use ctcp_cli::interrupted;

/// The time limit for cleaning up an interrupted measurement. The rest ends with the process.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// The request, checked before anything is measured.
struct Request {
    figures: Vec<&'static Figure>,
    settings: Settings,
    executable: PathBuf,
    out: PathBuf,
    is_json: bool,
}

pub(super) fn run(args: &TestbedArgs) -> Result<(), CliError> {
    if args.ids == ["list"] {
        list();
        return Ok(());
    }
    let request = Request::parse(args)?;
    until_interrupted(move |stop| measure_all(&request, stop))
}

/// Does the work. On a signal, it sets the stop flag and waits until the work has ended.
pub(super) fn until_interrupted(
    work: impl FnOnce(&Stop) -> Result<(), CliError> + Send + 'static,
) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::failure(format!("cannot start the runtime: {error}")))?;
    let stop = Stop::default();
    let outcome = runtime.block_on(async {
        let mut measuring = {
            let stop = stop.clone();
            tokio::task::spawn_blocking(move || work(&stop))
        };
        tokio::select! {
            done = &mut measuring => done.map_err(|error| CliError::failure(error.to_string()))?,
            _ = interrupted() => {
                stop.set();
                // The kernel ends whatever is left together with this process.
                let _ = tokio::time::timeout(CLEAN_UP, measuring).await;
                Err(CliError::failure("interrupted: nothing was left behind"))
            }
        }
    });
    runtime.shutdown_background();
    outcome
}

impl Request {
    fn parse(args: &TestbedArgs) -> Result<Self, CliError> {
        let figures = args.ids.iter().map(|id| figure(id)).collect::<Result<_, _>>()?;
        let seeds =
            args.seeds.as_deref().map(|text| count("--seeds", text, Settings::SEEDS_MAX)).transpose()?;
        let settings = Settings { quick: args.quick, seeds, ..Settings::default() };
        Ok(Self { figures, settings, executable: executable()?, out: args.out.clone(), is_json: args.json })
    }
}

/// The running program, which the testbed starts as a peer.
pub(super) fn executable() -> Result<PathBuf, CliError> {
    let path = std::env::current_exe();
    path.map_err(|error| CliError::failure(format!("cannot find the running program: {error}")))
}

#[expect(clippy::print_stdout, reason = "the list is the result")]
fn list() {
    for figure in FIGURES {
        println!("{:18} {:16} {}", figure.id, figure.paper, figure.title);
    }
    for Waiting { id, paper, title, waits_for } in WAITING {
        println!("{id:18} {paper:16} {title}; waits for {waits_for}");
    }
    println!("{:18} {:16} all peers on the same networks: {}", "compare", "-", PEER_NAMES.join(" "));
}

fn figure(id: &str) -> Result<&'static Figure, CliError> {
    Figure::named(id).ok_or_else(|| {
        let waiting = WAITING.iter().find(|waiting| waiting.id == id);
        CliError::usage(match (id, waiting) {
            ("list" | "compare", _) => {
                format!("`{id}` is a command: it stands alone, as `ctcp-lab testbed {id}`")
            }
            ("link", _) => {
                "`link` is a command: it comes first, as `ctcp-lab testbed link SERVER CLIENT`".to_owned()
            }
            ("agree", _) => {
                "`agree` is a command: it comes first, as `ctcp-lab testbed agree SIMULATED MEASURED`"
                    .to_owned()
            }
            (_, Some(waiting)) => format!("`{id}` waits for {}", waiting.waits_for),
            _ => format!("`{id}` is no figure that the testbed can measure: see `ctcp-lab testbed list`"),
        })
    })
}

#[expect(clippy::print_stdout, reason = "the tables are the result")]
fn measure_all(request: &Request, stop: &Stop) -> Result<(), CliError> {
    let folder = Folder::open(&request.out)?;
    let (mut failed, mut results) = (0, Vec::new());
    for figure in &request.figures {
        let finding = measure(figure, request, stop).map_err(explain)?;
        let json = write(figure, &finding, request.settings.quick, &folder)?;
        failed += finding.outcome.checks.iter().filter(|check| !check.pass).count();
        if request.is_json {
            results.push(json);
        } else {
            println!(
                "{}: {} ({:.1} s)\n{}",
                figure.id,
                figure.title,
                finding.wall_s,
                finding.outcome.table()
            );
        }
    }
    if request.is_json {
        println!("{}", json!({ "results": results }));
    }
    folder.say(request.is_json);
    judge(failed)
}

/// Measures, with a progress bar if standard error is a terminal.
fn measure(figure: &Figure, request: &Request, stop: &Stop) -> Result<Finding, TestbedError> {
    let bar = bar(figure.id);
    let on_progress = |progress: Progress<'_>| show(&bar, progress);
    let testbed = Testbed::new(request.settings, request.executable.clone(), stop.clone(), on_progress);
    let finding = figure.run(testbed);
    bar.finish_and_clear();
    finding
}

/// A progress bar, shown if standard error is a terminal.
pub(super) fn bar(id: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{prefix} {bar:20} {pos}/{len} {wide_msg}").expect("a constant");
    bar.set_style(style);
    bar.set_prefix(id);
    bar
}

pub(super) fn show(bar: &ProgressBar, progress: Progress<'_>) {
    bar.set_length(progress.of as u64);
    bar.set_position(progress.done as u64);
    bar.set_message(progress.label.to_owned());
}

/// Writes the figure's files and returns its JSON.
fn write(figure: &Figure, finding: &Finding, quick: bool, folder: &Folder) -> Result<Value, CliError> {
    let id = figure.id;
    let svg = finding.outcome.svg();
    let svg = svg.map_err(|error| CliError::failure(format!("{id} cannot be drawn: {error}")))?;
    folder.write(&format!("{id}.csv"), &finding.outcome.csv())?;
    folder.write(&format!("{id}.svg"), &svg)?;
    let json = finding.json(figure, ctcp_cli::VERSION, quick);
    // Written last: if it exists, so do the others.
    folder.write(&format!("{id}.json"), &format!("{json:#}"))?;
    Ok(json)
}

pub(super) fn explain(error: TestbedError) -> CliError {
    CliError::failure(error.to_string())
}
