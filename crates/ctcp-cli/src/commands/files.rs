//! `ctcp get` and `ctcp put`.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctcp::Catalogue;
use ctcp_proxy::files::{self, FileName, Progress, TransferError, Transferred};
use ctcp_proxy::link::{CtcpConnector, ServerLink};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::{CommonArgs, GetArgs, PutArgs, RemoteArgs};
use crate::error::CliError;
use crate::metrics::{self, LinkFigures};
use crate::network;

/// The output of `--json`, which is a contract.
#[derive(Serialize)]
struct Json<'a> {
    name: &'a str,
    file: Cow<'a, str>,
    profile: &'a str,
    bytes: u64,
    resumed: u64,
    replaced: bool,
    seconds: f64,
    sha256: String,
    verified: bool,
}

/// The name of standard output for `--output`.
const STANDARD_OUTPUT: &str = "-";

/// Fetches a file.
pub(crate) async fn get(args: &GetArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    check_name(&args.name)?;
    if args.output.as_deref() == Some(Path::new(STANDARD_OUTPUT)) {
        return get_to_standard_output(args, catalogue).await;
    }
    let destination = match &args.output {
        Some(file) if file.is_dir() => file.join(last_part(&args.name)?),
        Some(file) => file.clone(),
        None => PathBuf::from(last_part(&args.name)?),
    };
    let replaced = destination.exists();
    let bar = Bar::new(args.json || args.common.log.quiet);
    let get = async |link: &Link| {
        files::get(link, &args.name, &destination, &mut |progress| bar.show(progress)).await
    };
    let done = transfer((&args.remote, &args.common), catalogue, &args.name, get).await;
    let Done { transferred, profile, elapsed } = bar.finish(done)?;
    Report { name: &args.name, file: &destination, profile: &profile, replaced, elapsed }
        .print(args.json, &transferred);
    Ok(())
}

/// Fetches a file into a pipe; the report goes to standard error.
async fn get_to_standard_output(args: &GetArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    if args.json {
        return Err(CliError::usage("--json and `-o -` both write to standard output: use only one"));
    }
    let bar = Bar::new(args.common.log.quiet);
    let get = async |link: &Link| {
        files::get_to(link, &args.name, &mut tokio::io::stdout(), &mut |progress| bar.show(progress)).await
    };
    let done = transfer((&args.remote, &args.common), catalogue, &args.name, get).await;
    let Done { transferred, profile, elapsed } = bar.finish(done).map_err(|error| match error {
        CliError::Failure(text) => {
            CliError::Failure(format!("{text} (the file on standard output is incomplete)"))
        }
        other => other,
    })?;
    if !args.common.log.quiet {
        let file = Path::new(STANDARD_OUTPUT);
        let report = Report { name: &args.name, file, profile: &profile, replaced: false, elapsed };
        report.print_aside(&transferred);
    }
    Ok(())
}

/// Stores a file.
pub(crate) async fn put(args: &PutArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => last_part(&args.file.to_string_lossy())?.to_owned(),
    };
    check_name(&name)?;
    let bar = Bar::new(args.json || args.common.log.quiet);
    let put =
        async |link: &Link| files::put(link, &args.file, &name, &mut |progress| bar.show(progress)).await;
    let done = transfer((&args.remote, &args.common), catalogue, &name, put).await;
    let Done { transferred, profile, elapsed } = bar.finish(done)?;
    Report { name: &name, file: &args.file, profile: &profile, replaced: false, elapsed }
        .print(args.json, &transferred);
    Ok(())
}

type Link = ServerLink<CtcpConnector>;

/// The result of a transfer.
struct Done {
    transferred: Transferred,
    /// The granted profile as text.
    profile: String,
    elapsed: Duration,
}

/// Connects, runs the transfer of the file with this name, and closes the connection whatever the result.
async fn transfer(
    (remote, common): (&RemoteArgs, &CommonArgs),
    catalogue: &Arc<Catalogue>,
    name: &str,
    work: impl AsyncFnOnce(&Link) -> Result<Transferred, TransferError>,
) -> Result<Done, CliError> {
    let listener = metrics::start_if_free(common.metrics)?;
    let (endpoint, link) = network::link(remote, common.profile(catalogue)?, catalogue)?;
    let _publisher = metrics::publish(listener, LinkFigures::of(&link))?;
    let outcome = super::unless_lost(&endpoint, until_interrupted(name, work(&link))).await.flatten();
    let profile = network::granted(&link);
    drop(link);
    super::close(&endpoint, super::FINISHED).await;
    let (transferred, elapsed) = outcome?;
    Ok(Done { transferred, profile, elapsed })
}

/// Refuses names that no server accepts as wrong usage, before connecting.
fn check_name(name: &str) -> Result<(), CliError> {
    match name.parse::<FileName>() {
        Ok(_) => Ok(()),
        Err(error) => Err(CliError::usage(format!("`{name}`: {error}"))),
    }
}

/// The last component of a name.
fn last_part(name: &str) -> Result<&str, CliError> {
    let last = name.rsplit('/').next().unwrap_or_default();
    if last.is_empty() || last == "." || last == ".." {
        return Err(CliError::usage(format!("`{name}` does not end in the name of a file")));
    }
    Ok(last)
}

async fn until_interrupted(
    name: &str,
    transfer: impl Future<Output = Result<Transferred, TransferError>>,
) -> Result<(Transferred, Duration), CliError> {
    let start = tokio::time::Instant::now();
    tokio::select! {
        outcome = transfer => match outcome {
            Ok(transferred) => Ok((transferred, start.elapsed())),
            Err(error @ TransferError::Refused(_)) => Err(CliError::failure(format!("{name}: {error}"))),
            Err(error) => Err(CliError::failure(error.to_string())),
        },
        _ = super::interrupted() => {
            Err(CliError::failure("interrupted; run the same command again"))
        }
    }
}

/// A transfer that succeeded.
struct Report<'a> {
    name: &'a str,
    /// The local file.
    file: &'a Path,
    profile: &'a str,
    /// Whether an existing file was replaced.
    replaced: bool,
    elapsed: Duration,
}

impl Report<'_> {
    #[expect(clippy::print_stdout, reason = "the result")]
    fn print(&self, as_json: bool, transferred: &Transferred) {
        if !as_json {
            println!("{}", self.line(transferred));
        } else if let Ok(text) = serde_json::to_string(&self.json(transferred)) {
            println!("{text}");
        }
    }

    #[expect(clippy::print_stderr, reason = "standard output is the file's")]
    fn print_aside(&self, transferred: &Transferred) {
        eprintln!("{}", self.line(transferred));
    }

    fn line(&self, transferred: &Transferred) -> String {
        let Self { name, file, profile, replaced, elapsed } = self;
        let travelled = transferred.size - transferred.resumed;
        let seconds = elapsed.as_secs_f64();
        let rate = travelled as f64 * 8.0 / seconds.max(1e-9) / 1e6;
        let resumed = match transferred.resumed {
            0 => String::new(),
            bytes => format!(", {bytes} bytes were there already"),
        };
        let replaced = if *replaced { format!(", replaced {}", file.display()) } else { String::new() };
        format!(
            "{name}: {} bytes in {seconds:.2} s ({rate:.1} Mbit/s, profile {profile}), verified{resumed}{replaced}",
            transferred.size
        )
    }

    fn json(&self, transferred: &Transferred) -> Json<'_> {
        Json {
            name: self.name,
            file: self.file.to_string_lossy(),
            profile: self.profile,
            bytes: transferred.size,
            resumed: transferred.resumed,
            replaced: self.replaced,
            seconds: self.elapsed.as_secs_f64(),
            sha256: transferred.hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            // An unverified file would be an error.
            verified: true,
        }
    }
}

/// A progress bar on standard error, if that is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new(is_hidden: bool) -> Self {
        if is_hidden || !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, progress: Progress) {
        self.0.set_length(progress.total);
        self.0.set_position(progress.done);
    }

    /// Clears the bar whatever the outcome.
    fn finish<T>(&self, outcome: Result<T, CliError>) -> Result<T, CliError> {
        self.0.finish_and_clear();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_directory_are_wrong_usage() {
        for wrong in ["..", "../x", "/etc/passwd", "a/../b", ""] {
            assert!(matches!(check_name(wrong), Err(CliError::Usage(_))), "{wrong}");
        }
        assert!(check_name("a/b.iso").is_ok());
    }

    #[test]
    fn the_last_part_of_a_name_is_the_file_name() {
        assert_eq!(last_part("a/b.iso").ok(), Some("b.iso"));
        assert_eq!(last_part("b").ok(), Some("b"));
        for wrong in ["", "a/", "..", "a/."] {
            assert!(last_part(wrong).is_err(), "{wrong}");
        }
    }
}
