//! Replays every file of `fuzz/corpus/` through the entry point of its target. This works with any compiler.

use std::fs;
use std::path::PathBuf;

#[path = "../../../fuzz/entry_points.rs"]
mod entry_points;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 15] = [
    ("assembler", entry_points::assembler::run),
    ("decoder", entry_points::decoder::run),
    ("early", entry_points::early::run),
    ("file_name", entry_points::file_name::run),
    ("frame", entry_points::frame::run),
    ("handshake", entry_points::handshake::run),
    ("http", entry_points::http::run),
    ("messages", entry_points::messages::run),
    ("packet_header", entry_points::packet_header::run),
    ("parameters", entry_points::parameters::run),
    ("proxy_request", entry_points::proxy_request::run),
    ("recoder", entry_points::recoder::run),
    ("sealed_packet", entry_points::sealed_packet::run),
    ("socks5", entry_points::socks5::run),
    ("streams", entry_points::streams::run),
];

fn fuzz_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the files of a directory with their contents, sorted by name.
fn files(directory: &PathBuf) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let entry = entry.expect("a readable directory");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("a readable file"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn every_corpus_file_passes_its_entry_point() {
    for (target, run) in TARGETS {
        let corpus = files(&fuzz_directory().join("corpus").join(target));
        assert!(!corpus.is_empty(), "{target} has no corpus");
        for (name, contents) in corpus {
            // Test output is shown only if the entry point panics.
            println!("{target}/{name}");
            run(&contents);
        }
    }
}

#[test]
fn every_target_is_replayed() {
    let targets: Vec<String> = files(&fuzz_directory().join("fuzz_targets"))
        .into_iter()
        .map(|(name, _)| name.trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(targets, TARGETS.map(|(name, _)| name));
}
