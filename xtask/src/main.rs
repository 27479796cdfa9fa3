//! Chores of the repository, run as `cargo xtask <chore>`. `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command for people: it prints its findings")]

mod demo_result;
mod requirements;
mod source;
mod swarm;
mod tidy;
mod trials;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use source::tree::Tree;

const HELP: &str = "\
Chores of the repository.

    cargo xtask tidy            check the rules of CONTRIBUTING.md that a program can check
    cargo xtask requirements    list the papers' requirements with the code and tests that cite them
    cargo xtask swarm [--paths] [--seeds N] [--first S] [--log [--without-noise]]
                                run random networks in virtual time (take --release), each twice
    cargo xtask trials paths|crowd|shared|trace [--design PROFILE[/CONGESTION]] ..
                                congestion control in virtual time (take --release): random paths against an oracle, many
                                flows against as many Reno flows, several paths alongside Cubic, one path over time
    cargo xtask demo-result SHARE < RESULT
                                judge what `ctcp demo --json` printed: verified, and at least SHARE of the link";

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let outcome = match chore.as_str() {
        "tidy" => Tree::read(&root()).map(|tree| report(&tidy::check(&tree))),
        "requirements" => list_requirements(),
        "swarm" => swarm::run(std::env::args().skip(2)).map(|failures| {
            let failures: Vec<String> = failures.iter().map(|seed| format!("seed {seed}")).collect();
            report(&failures)
        }),
        "trials" => trials::run(std::env::args().skip(2)).map(|()| ExitCode::SUCCESS),
        "demo-result" => judge_demo(std::env::args().nth(2)),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{chore}: {error}");
        ExitCode::FAILURE
    })
}

fn list_requirements() -> io::Result<ExitCode> {
    let tree = Tree::read(&root())?;
    io::stdout().write_all(requirements::table(&tree).as_bytes())?;
    Ok(report(&requirements::check(&tree)))
}

/// Checks the result on standard input against the share on the command line.
fn judge_demo(least_share: Option<String>) -> io::Result<ExitCode> {
    let least_share = least_share.and_then(|share| share.parse().ok());
    let least_share = least_share.ok_or_else(|| io::Error::other("give the least share, such as 0.80"))?;
    let result = io::read_to_string(io::stdin())?;
    demo_result::check(&result, least_share).map(|complaints| report(&complaints))
}

/// Prints the findings; returns success if there are none.
fn report(findings: &[impl std::fmt::Display]) -> ExitCode {
    for finding in findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() {
        println!("nothing to fix");
        return ExitCode::SUCCESS;
    }
    eprintln!("{} to fix", findings.len());
    ExitCode::FAILURE
}

/// The root of the workspace, which is one level above this crate.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
