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
//! change. The path exists until standard input ends.

use std::io::BufRead;
use std::sync::mpsc::{self, RecvTimeoutError};

use ctcp_netem::{LinkConfig, PathConfig, parse_changes};
use ctcp_testbed::namespace::Namespace;
use ctcp_testbed::network::Network;
use ctcp_testbed::plan::{NetworkPlan, PathPlan};
use ctcp_testbed::{LOOK_EVERY, Stop, TestbedError};

use super::measure::{executable, explain, until_interrupted};
use ctcp_cli::error::CliError;

pub(super) fn run(namespaces: &[String]) -> Result<(), CliError> {
    let [server, client] = namespaces else {
        return Err(CliError::usage("`ctcp-lab testbed link` takes two network namespaces by name"));
    };
    let (server, client) = (server.clone(), client.clone());
    until_interrupted(move |stop| serve(&server, &client, stop))
}

#[expect(clippy::print_stdout, reason = "the answers are the result")]
fn serve(server: &str, client: &str, stop: &Stop) -> Result<(), CliError> {
    let plan = NetworkPlan::new(1, [PathPlan::new(PathConfig::symmetric(LinkConfig::default()))]);
    let executable = executable()?;
    let bring_up = || -> Result<Network, TestbedError> {
        let (server, client) = (Namespace::open("server", server)?, Namespace::open("client", client)?);
        Network::between(server, client, &plan, executable, stop.clone())
    };
    let network = bring_up().map_err(explain)?;
    let addresses = network.paths().next().expect("there is a path");
    println!("{server} has {}, {client} has {}", addresses.server, addresses.client);
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
        let changes = parse_changes(&line).map_err(|what| CliError::usage(format!("`{line}`: {what}")))?;
        changes.into_iter().try_for_each(|change| network.apply(change)).map_err(explain)?;
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
