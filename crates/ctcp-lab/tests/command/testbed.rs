//! `ctcp-lab testbed`: arguments that are refused before any measurement, which needs no root.

use tempfile::TempDir;

use crate::setup::{lab, run};

#[test]
fn figures_are_listed_and_unknown_ones_are_refused_with_one_line() {
    let directory = TempDir::new().expect("a directory");
    let listed = lab(directory.path(), &["testbed", "list"]).output().expect("it starts").stdout;
    let listed = String::from_utf8(listed).expect("text");
    assert!(
        ["validate", "ctcp-fig3a"].iter().all(|id| listed.lines().any(|line| line.starts_with(id))),
        "{listed}"
    );
    for (words, code, said) in [
        (&["fig99"][..], 2, "`fig99` is no figure that the testbed can measure: see `ctcp-lab testbed list`"),
        (&["validate", "list"], 2, "`list` is a command: it stands alone, as `ctcp-lab testbed list`"),
        (&["validate", "--seeds", "0"], 2, "--seeds 0: expected a whole number from 1 to 100000"),
        (&["validate", "--seeds", "-1"], 2, "--seeds -1: expected a whole number from 1 to 100000"),
        (&["validate", "--out", "/dev/null/x"], 1, "cannot write /dev/null/x"),
    ] {
        let (status, message) = run(directory.path(), &[&["testbed"], words].concat());
        assert!(status == Some(code) && message.lines().count() == 1 && message.contains(said), "{message}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("a folder").count(), 0, "no file was created");
}

#[test]
fn unknown_peers_and_tests_are_refused_with_the_known_ones() {
    let directory = TempDir::new().expect("a directory");
    let refused = |words: &[&str], part: &str| {
        let (code, said) = run(directory.path(), words);
        assert_eq!(code, Some(2), "{words:?}");
        assert!(said.contains(part), "{words:?}: {said}");
    };
    refused(
        &["testbed", "compare", "--peers", "bbr,nobody"],
        "there are default, path-1, path-2, path-1-2, independent, redundant, low-latency-forward, low-latency, relay-recode, relay-repeat, relay-forward, messages, ctcp, reno, cubic, bbr",
    );
    refused(
        &["testbed", "compare", "--tests", "speed"],
        "there are goodput, long, beside, requests, stream, latency, mixed, datagrams, paths, path-requests",
    );
    refused(&["testbed", "compare", "--losses", "5"], "shares from 0 to below 1");
    refused(&["testbed", "compare", "--seconds", "0"], "--seconds 0: expected a whole number from 1 to 3600");
    refused(&["testbed", "compare", "ctcp-fig3a"], "it stands alone");
    refused(&["testbed", "ctcp-fig3a", "--peers", "bbr"], "belong to `ctcp-lab testbed compare`");
}
