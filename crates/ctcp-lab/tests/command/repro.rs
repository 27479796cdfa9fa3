//! `ctcp-lab repro`: single runs, shards, and refused arguments.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::setup::{lab, run};

const ID: &str = "thesis-overhead";

/// The arguments of a short run.
fn words<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&["repro", ID, "--quick", "--seeds", "12"], rest].concat()
}

/// The content of a result's files, without the duration.
fn result(folder: &Path) -> [String; 3] {
    ["json", "csv", "svg"].map(|extension| {
        let text = fs::read_to_string(folder.join(format!("{ID}.{extension}"))).expect("it was written");
        text.lines()
            .filter(|line| !line.trim_start().starts_with("\"wall_s\""))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
fn merged_shards_are_byte_for_byte_equal_to_a_single_run() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    assert_eq!(run(at, &words(&["--out", "whole", "--threads", "1"])), (Some(0), String::new()));
    assert_eq!(names(&at.join("whole")), ["csv", "json", "svg"].map(|extension| format!("{ID}.{extension}")));
    for count in [1, 3, 7] {
        let (parts, out) = (format!("parts-{count}"), format!("merged-{count}"));
        for index in 1..=count {
            let shard = format!("{index}/{count}");
            assert_eq!(run(at, &words(&["--shard", &shard, "--out", &parts])), (Some(0), String::new()));
        }
        assert_eq!(names(&at.join(&parts)).len(), count);
        assert_eq!(run(at, &["repro", "merge", &parts, "--out", &out]), (Some(0), String::new()));
        assert_eq!(result(&at.join(&out)), result(&at.join("whole")), "{count} shards");
    }
}

#[test]
fn a_merge_with_missing_shards_writes_nothing_and_reports_why() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let shard = |shard: &str, out: &str, seeds: &str| {
        let words = ["repro", ID, "--quick", "--seeds", seeds, "--shard", shard, "--out", out];
        assert_eq!(run(at, &words), (Some(0), String::new()));
    };
    let refused = |folders: &[&str], wanted: &[&str]| {
        let (code, said) = run(at, &[&["repro", "merge"], folders, &["--out", "merged"]].concat());
        assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
        assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{said}");
        assert!(!at.join("merged").exists());
    };
    shard("1/3", "a", "12");
    shard("3/3", "a", "12");
    refused(&["a"], &["thesis-overhead in 3 shards", "1 missing (2/3)"]);
    shard("2/3", "b", "13");
    refused(&["a", "b"], &["b/thesis-overhead.shard-2-of-3.json", "to another run", "13 seeds"]);
    shard("1/3", "c", "12");
    refused(&["a", "c"], &["a/", "c/", "contain the same shard"]);
    refused(&["nowhere"], &["cannot read nowhere"]);
    fs::create_dir(at.join("empty")).expect("a directory");
    refused(&["empty"], &["no shard in empty", "--shard I/N"]);
    let whole = fs::read_to_string(at.join("a/thesis-overhead.shard-1-of-3.json")).expect("it was written");
    fs::write(at.join("a/thesis-overhead.shard-2-of-3.json"), &whole[..whole.len() / 2]).expect("a file");
    refused(&["a"], &["shard-2-of-3.json: not a shard file"]);
}

#[test]
fn invalid_arguments_are_refused_in_one_line_before_anything_is_computed() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    fs::write(at.join("file"), "x").expect("a file");
    for (rest, code, wanted) in [
        (&["repro", "ctcp-fig99"][..], 2, "`ctcp-fig99` is no figure"),
        (&["repro", ID, "list"], 2, "`list` is a command"),
        (&["repro", ID, "--shard", "5/4"], 2, "shard 5/4: the first number must be from 1 to 4"),
        (&["repro", ID, "--shard", "0/4"], 2, "shard 0/4: the first number must be from 1 to 4"),
        (&["repro", ID, "--shard", "1/0"], 2, "at least one shard"),
        (&["repro", ID, "--shard", "-1/4"], 2, "`-1/4` is not a shard: expected I/N, for example 2/8"),
        (&["repro", ID, "--shard", "half"], 2, "`half` is not a shard: expected I/N"),
        (&["repro", ID, "--seeds", "0"], 2, "--seeds 0: expected a whole number from 1 to 100000"),
        (
            &["repro", ID, "--seeds", "4294967295"],
            2,
            "--seeds 4294967295: expected a whole number from 1 to 100000",
        ),
        (&["repro", ID, "--seeds", "-3"], 2, "--seeds -3: expected a whole number"),
        (&["repro", ID, "--seeds", "many"], 2, "--seeds many: expected a whole number"),
        (&["repro", ID, "--threads", "0"], 2, "--threads 0: expected a whole number from 1 to"),
        (&["repro", ID, "--loss", "0.1"], 2, "`thesis-overhead` has no --loss: its numbers are fixed"),
        (&["repro", "tcpnc-fig6", "--loss", "-0.1"], 2, "--loss -0.1: expected a share from 0 to 0.5"),
        (&["repro", "tcpnc-fig6", "--loss", "0.9"], 2, "--loss 0.9: expected a share from 0 to 0.5"),
        (&["repro", "tcpnc-fig6", "--rtt", "30ms"], 2, "`tcpnc-fig6` has no --rtt: it has --loss, --time"),
        (&["repro", "ctcp-fig3a", "--rtt", "3ms"], 2, "--rtt 3ms: expected an even number of ms"),
        (&["repro", "ctcp-fig3a", "--rtt", "-20ms"], 2, "--rtt -20ms: "),
        (
            &["repro", "ctcp-fig3a", "--rate", "0mbit"],
            2,
            "--rate 0mbit: expected a whole number of Mbit/s from 1",
        ),
        (&["repro", "ctcp-fig3a", "--rate", "fast"], 2, "--rate fast: "),
        (&["repro", "ctcp-fig3a", "--time", "1s"], 2, "--time 1s: expected whole seconds from 10 to"),
        (&["repro", ID, "--out", "file"], 1, "cannot write file: "),
        (&["repro", ID, "--out", "file/below"], 1, "cannot write file/below: "),
    ] {
        let (found, said) = run(at, rest);
        assert_eq!((found, said.lines().count()), (Some(code), 1), "{rest:?}: {said}");
        assert!(said.contains(wanted), "{rest:?}: {said}");
    }
    assert_eq!(names(at), ["file"]);
}

#[test]
fn the_list_names_every_experiment_and_help_shows_an_example() {
    let directory = TempDir::new().expect("a directory");
    let said = |words: &[&str]| {
        let output = lab(directory.path(), words).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).expect("text")
    };
    let list = said(&["repro", "list"]);
    for id in
        ["tcpnc-lemma1", "tcpnc-theorem2", "ctcp-eq7", "thesis-tablesC", "thesis-single", "thesis-multi"]
    {
        assert!(list.lines().any(|line| line.starts_with(id)), "{list}");
    }
    assert!(said(&["repro", "--help"]).contains("--shard 2/8"));
    assert!(said(&["repro", "merge", "--help"]).contains("ctcp-lab repro merge parts --out results"));
}
