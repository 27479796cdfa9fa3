//! The core gets time, entropy and input as arguments, and computes the same results on every platform.

use super::Violation;
use super::dependencies::CORE;
use crate::source::functions::words;
use crate::source::tree::Tree;

const RULE: &str = "purity";

const ARGUMENT: &str = "the core does no I/O: take the instant, seed or bytes as an argument";
const HASHING: &str = "the order of a hash map differs from run to run: use a BTreeMap or a Vec";
const FLOATS: &str = "its last bits differ between platforms: use + - * / and sqrt only";

/// Names that core code must not use, and how to fix them.
const FORBIDDEN: [(&str, &str); 35] = [
    ("std::time::Instant", ARGUMENT),
    ("std::time::SystemTime", ARGUMENT),
    ("Instant::now", ARGUMENT),
    ("SystemTime", ARGUMENT),
    ("UNIX_EPOCH", ARGUMENT),
    ("std::thread", ARGUMENT),
    ("thread::spawn", ARGUMENT),
    ("thread_local", ARGUMENT),
    ("std::fs", ARGUMENT),
    ("std::env", ARGUMENT),
    ("std::process", ARGUMENT),
    ("std::sync::mpsc", ARGUMENT),
    ("stdin", ARGUMENT),
    ("UdpSocket", ARGUMENT),
    ("TcpStream", ARGUMENT),
    ("TcpListener", ARGUMENT),
    ("ToSocketAddrs", ARGUMENT),
    ("OsRng", ARGUMENT),
    ("SystemRandom", ARGUMENT),
    ("thread_rng", ARGUMENT),
    ("getrandom", ARGUMENT),
    ("HashMap", HASHING),
    ("HashSet", HASHING),
    ("RandomState", HASHING),
    ("powf", FLOATS),
    ("powi", FLOATS),
    ("exp", FLOATS),
    ("exp2", FLOATS),
    ("ln", FLOATS),
    ("log2", FLOATS),
    ("log10", FLOATS),
    ("cbrt", FLOATS),
    ("sin", FLOATS),
    ("cos", FLOATS),
    ("mul_add", FLOATS),
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, rust) in tree.rust() {
        if !CORE.iter().any(|core| file.path.starts_with(&format!("crates/{core}/src/"))) {
            continue;
        }
        for (number, code) in rust.code_outside_tests() {
            for (word, fix) in FORBIDDEN {
                if is_said(code, word, fix) {
                    let what = format!("`{word}` in a core crate");
                    violations.push(Violation {
                        path: file.path.clone(),
                        line: Some(number),
                        rule: RULE,
                        what,
                        fix,
                    });
                }
            }
        }
    }
    violations
}

/// Names match anywhere, functions on floats only if they are called as methods of a float.
fn is_said(code: &str, word: &str, fix: &str) -> bool {
    words(code, word).any(|start| {
        fix != FLOATS
            || (code[..start].ends_with('.') && code[start + word.len()..].starts_with('('))
            || code[..start].ends_with("f64::")
            || code[..start].ends_with("f32::")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, source: &str) -> Vec<String> {
        check(&Tree::of(&[(path, source)])).into_iter().map(|violation| violation.what).collect()
    }

    const CORE_FILE: &str = "crates/ctcp-proto/src/a.rs";

    #[test]
    fn the_core_reads_no_clock_and_keeps_no_hash_maps() {
        assert_eq!(found(CORE_FILE, "let a = Instant::now();"), ["`Instant::now` in a core crate"]);
        assert_eq!(found(CORE_FILE, "use std::collections::HashMap;"), ["`HashMap` in a core crate"]);
        assert_eq!(found(CORE_FILE, "use std::fs;"), ["`std::fs` in a core crate"]);
    }

    #[test]
    fn functions_of_floats_are_matched_only_as_methods() {
        assert_eq!(found(CORE_FILE, "let a = b.ln();"), ["`ln` in a core crate"]);
        assert_eq!(found(CORE_FILE, "let a = f64::powf(b, c);"), ["`powf` in a core crate"]);
        assert!(found(CORE_FILE, "let exp = gf256::mul_add(exp[1], ln);").is_empty());
        assert!(found(CORE_FILE, "let a = b.sqrt();").is_empty());
    }

    #[test]
    fn comments_tests_and_other_crates_may_use_the_names() {
        assert!(found(CORE_FILE, "// Instant::now\n#[cfg(test)]\nmod tests { use std::env; }\n").is_empty());
        assert!(found("crates/ctcp/src/clock.rs", "Instant::now();").is_empty());
    }
}
