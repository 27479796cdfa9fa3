//! Checks the header against the library and compiles the example with a C compiler, if there is one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(directory().join(path)).expect("a file of this crate")
}

/// Returns the names of functions: words that begin with `ctcp_` and are followed by a parenthesis.
fn functions(text: &str) -> BTreeSet<String> {
    let words = text.match_indices("ctcp_").filter(|&(start, _)| {
        !text[..start].ends_with(|before: char| before.is_alphanumeric() || before == '_')
    });
    let names = words.filter_map(|(start, _)| text[start..].split_once('(').map(|(name, _)| name));
    names.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_')).map(str::to_owned).collect()
}

#[test]
fn the_header_declares_every_function_and_no_other() {
    let exported: String = ["src/encoder.rs", "src/decoder.rs", "src/recoder.rs"]
        .map(read)
        .join("\n")
        .lines()
        .filter(|line| line.contains("extern \"C\" fn"))
        .collect();
    let exported = functions(&exported);
    assert_eq!(functions(&read("include/ctcp_coding.h")), exported);
    assert!(exported.len() >= 20, "{exported:?}");
}

#[test]
fn the_header_has_the_numbers_of_the_library() {
    use ctcp_coding_capi::status::*;
    let header = read("include/ctcp_coding.h");
    let numbers = [
        ("OK", OK),
        ("INNOVATIVE", INNOVATIVE),
        ("TOO_OLD", TOO_OLD),
        ("NO_ROOM", NO_ROOM),
        ("NULL", NULL),
        ("TOO_LONG", TOO_LONG),
        ("OUTSIDE_WINDOW", OUTSIDE_WINDOW),
        ("COUNT", COUNT),
        ("WINDOW_FULL", WINDOW_FULL),
        ("BUFFER", BUFFER),
        ("NOTHING", NOTHING),
        ("SPAN_MAX", i32::from(ctcp_coding::MAX_SPAN)),
        ("DENSITY_MAX", i32::from(ctcp_coding::coefficients::DENSITY_MAX)),
    ];
    for (name, number) in numbers {
        let is_said = [format!("CTCP_{name} = {number}"), format!("#define CTCP_{name} {number}\n")]
            .iter()
            .any(|text| header.contains(text));
        assert!(is_said, "{name} is not {number} in the header");
    }
}

/// Returns the static archive that cargo built along with this test.
fn archive() -> PathBuf {
    let here = std::env::current_exe().expect("a running program has a path");
    let places = [here.parent(), here.parent().and_then(Path::parent)];
    let entries =
        places.into_iter().flatten().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    let archives = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("libctcp_coding_capi") && name.ends_with(".a")
    });
    archives
        .max_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
        .expect("cargo built it")
}

#[test]
fn the_example_in_c_decodes_what_it_encoded() {
    if cfg!(windows) || Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no cc");
        return;
    }
    let program = std::env::temp_dir().join(format!("ctcp-coding-capi-{}", std::process::id()));
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(directory().join("include"))
        .arg(directory().join("examples/encode_and_decode.c"))
        .arg(archive())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).output().expect("the program runs");
    fs::remove_file(&program).expect("the program can be removed");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success() && said.starts_with("32 of 32 symbols decoded"), "{said}");
}
