//! `ctcp-lab testbed link`: an emulated path between two named network namespaces, for any programs.
//!
//! ```text
//!   # ip netns add a; ip netns add b; ctcp-lab testbed link a b
//!   a has 10.71.1.1, b has 10.71.1.2
//!   rate 25mbit queue 64kb delay 10ms loss 5%
//!   ok
//!   down
//!   ok
//! ```
//!
//! Each line of standard input has changes in the format of a trace ([`ctcp_netem::Trace`]) for both directions, and is answered after the
//! change. With a third argument there are as many paths, and a line that begins with a number changes that path only: `2 down`. The paths
//! exist until standard input ends.

use std::io::BufRead;
use std::sync::mpsc::{self, RecvTimeoutError};

use ctcp_netem::{Change, LinkConfig, PathConfig, parse_changes};
use ctcp_testbed::namespace::Namespace;
use ctcp_testbed::network::Network;
use ctcp_testbed::plan::{NetworkPlan, PathPlan};
use ctcp_testbed::{LOOK_EVERY, Stop, TestbedError};

use super::measure::{executable, explain, until_interrupted};
use ctcp_cli::error::CliError;

/// The most paths between two namespaces.
const PATHS_MAX: usize = 4;

pub(super) fn run(namespaces: &[String]) -> Result<(), CliError> {
    let (server, client, paths) = match namespaces {
        [server, client] => (server.clone(), client.clone(), 1),
        [server, client, paths] => {
            let paths = paths.parse().ok().filter(|paths| (1..=PATHS_MAX).contains(paths));
            let paths =
                paths.ok_or_else(|| CliError::usage(format!("there can be 1 to {PATHS_MAX} paths")))?;
            (server.clone(), client.clone(), paths)
        }
        _ => return Err(CliError::usage("`ctcp-lab testbed link` takes two network namespaces by name")),
    };
    until_interrupted(move |stop| serve(&server, &client, paths, stop))
}

/// One command to the network: the changes, and the path they are for if it is not all.
fn parse(line: &str, paths: usize) -> Result<(Option<usize>, Vec<Change>), CliError> {
    let of = |what: String| CliError::usage(format!("`{line}`: {what}"));
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (path, changes) = match first.parse::<usize>() {
        Ok(path) if (1..=paths).contains(&path) => (Some(path - 1), rest),
        Ok(path) => return Err(of(format!("there is no path {path}"))),
        Err(_) => (None, line),
    };
    Ok((path, parse_changes(changes).map_err(of)?))
}

#[expect(clippy::print_stdout, reason = "the answers are the result")]
fn serve(server: &str, client: &str, paths: usize, stop: &Stop) -> Result<(), CliError> {
    let path = PathPlan::new(PathConfig::symmetric(LinkConfig::default()));
    let plan = NetworkPlan::new(1, vec![path; paths]);
    let executable = executable()?;
    let bring_up = || -> Result<Network, TestbedError> {
        let (server, client) = (Namespace::open("server", server)?, Namespace::open("client", client)?);
        Network::between(server, client, &plan, executable, stop.clone())
    };
    let network = bring_up().map_err(explain)?;
    for addresses in network.paths() {
        println!("{server} has {}, {client} has {}", addresses.server, addresses.client);
    }
    let lines = lines();
    loop {
        let line = match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                stop.check().map_err(explain)?;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let (path, changes) = parse(&line, paths)?;
        changes.into_iter().try_for_each(|change| network.apply(path, change)).map_err(explain)?;
        println!("ok");
    }
}

/// The lines of standard input, until it ends.
fn lines() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel();
    // Not joined: a read from a terminal ends only with the process.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
