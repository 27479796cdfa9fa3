//! Sets the version of the command: that of the manifest, and the commit if it is known.
//!
//! In a checkout the commit comes from git, in a published package from the file that Cargo adds. A tarball has
//! neither; its builder can set `CTCP_COMMIT` in the environment.

use std::path::Path;
use std::process::Command;

/// The number of digits of the commit that are shown.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CTCP_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let named = std::env::var("CTCP_COMMIT").ok().filter(|commit| !commit.is_empty());
    match named.or_else(of_package).or_else(of_checkout) {
        Some(commit) => println!("cargo::rustc-env=CTCP_VERSION={version} ({})", shortened(&commit)),
        None => println!("cargo::rustc-env=CTCP_VERSION={version}"),
    }
}

fn shortened(commit: &str) -> &str {
    commit.get(..DIGITS).unwrap_or(commit)
}

/// Reads the commit from the file that Cargo added when it packaged this crate.
fn of_package() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(str::to_owned)
}

/// The commit of the checkout that contains this crate. A checkout that merely surrounds it does not count.
fn of_checkout() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // Everything that moves HEAD is logged there.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

/// Runs git; `None` if it is not installed or fails.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
