//! The output of the demo: lines for people, or one JSON object.

use ctcp::Profile;
use serde::Serialize;

use super::Download;
use crate::args::DemoArgs;

/// Below this size, some 700 packets, the share of the link mostly depends on chance and on the first round trips.
const TELLING_SIZE: u64 = 1_000_000;

/// Formats a number of bytes for people.
fn in_words(bytes: u64) -> String {
    match bytes {
        100_000.. => format!("{:.1} MB", bytes as f64 / 1e6),
        1 => "1 byte".to_owned(),
        _ => format!("{bytes} bytes"),
    }
}

/// The demo's output.
pub(super) struct Report<'a> {
    args: &'a DemoArgs,
    profile: Profile,
}

/// The output of `ctcp demo --json`, which is a contract.
#[derive(Serialize)]
struct Json {
    version: &'static str,
    profile: &'static str,
    rate_bps: u64,
    rtt_ms: f64,
    loss: f64,
    bytes: u64,
    seconds: f64,
    goodput_share: f64,
    verified: bool,
    baseline: Baseline,
}

#[derive(Serialize)]
struct Baseline {
    profile: &'static str,
    /// The duration of the whole download, extrapolated if it was stopped.
    seconds: f64,
    /// True if the download was stopped. Then `seconds` is scaled, and `goodput_share` is that of the part that ran.
    extrapolated: bool,
    goodput_share: f64,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a DemoArgs, profile: Profile) -> Self {
        Self { args, profile }
    }

    pub(super) fn announce(&self) {
        let DemoArgs { size, rate, rtt, loss, .. } = self.args;
        self.line(&format!(
            "A download of {} over a link of {rate}, round trip {} ms, {:.1} % loss each way:",
            in_words(*size),
            rtt.as_secs_f64() * 1e3,
            loss.as_f64() * 100.0
        ));
    }

    /// Prints the download with the requested profile.
    pub(super) fn first(&self, coded: &Download) {
        let kind = if self.profile == Profile::TCP { "without coding" } else { "coded" };
        self.line(&format!(
            "  {kind} ({}): {:.2} s, {:.1} % of the link, every byte verified",
            self.profile.name,
            coded.elapsed.as_secs_f64(),
            self.share(coded) * 100.0
        ));
    }

    /// Prints the uncoded download, if there was one, and the conclusion.
    pub(super) fn finish(&self, first: &Download, uncoded: Option<&Download>) {
        if let Some(uncoded) = uncoded {
            let seconds = self.whole_seconds(uncoded);
            let how = if uncoded.is_complete { "" } else { ", estimated: stopped early" };
            self.line(&format!(
                "  without coding (tcp): {seconds:.1} s, {:.1} % of the link{how}",
                self.share(uncoded) * 100.0
            ));
        }
        if self.args.size < TELLING_SIZE {
            self.line(
                "So few packets tell little: luck and the first round trips count most. Try --size 10mb.",
            );
        }
        if self.args.json {
            self.print_json(&self.json(first, uncoded.unwrap_or(first)));
        }
    }

    /// Goodput as a share of the link's rate.
    fn share(&self, download: &Download) -> f64 {
        let seconds = download.elapsed.as_secs_f64().max(1e-9);
        download.bytes as f64 * 8.0 / seconds / self.args.rate.as_bits_per_second() as f64
    }

    fn whole_seconds(&self, download: &Download) -> f64 {
        download.elapsed.as_secs_f64() * self.args.size as f64 / download.bytes.max(1) as f64
    }

    #[expect(clippy::print_stdout, reason = "the result")]
    fn line(&self, text: &str) {
        if !self.args.json {
            println!("{text}");
        }
    }

    fn json(&self, coded: &Download, uncoded: &Download) -> Json {
        Json {
            version: crate::VERSION,
            profile: self.profile.name.as_str(),
            rate_bps: self.args.rate.as_bits_per_second(),
            rtt_ms: self.args.rtt.as_secs_f64() * 1e3,
            loss: self.args.loss.as_f64(),
            bytes: coded.bytes,
            seconds: coded.elapsed.as_secs_f64(),
            goodput_share: self.share(coded),
            // A download with a wrong byte fails the command and yields no result.
            verified: coded.is_complete,
            baseline: Baseline {
                profile: "tcp",
                seconds: self.whole_seconds(uncoded),
                extrapolated: !uncoded.is_complete,
                goodput_share: self.share(uncoded),
            },
        }
    }

    #[expect(clippy::print_stdout, reason = "the result")]
    fn print_json(&self, json: &Json) {
        match serde_json::to_string(json) {
            Ok(text) => println!("{text}"),
            Err(error) => println!("{{\"error\": \"{error}\"}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn small_downloads_are_shown_in_bytes() {
        let said = [1, 2, 99_999, 100_000, 10_000_000].map(in_words);
        assert_eq!(said, ["1 byte", "2 bytes", "99999 bytes", "0.1 MB", "10.0 MB"]);
    }

    #[test]
    fn the_json_shows_whether_the_uncoded_download_was_complete() {
        let cli = Cli::try_parse_from(["ctcp", "demo", "--size", "1mb"]).expect("valid");
        let Command::Demo(args) = cli.command else { panic!("another command") };
        let download = |bytes, is_complete| Download { bytes, elapsed: Duration::from_secs(4), is_complete };
        for (bytes, is_complete, seconds) in [(250_000, false, 16.0), (1_000_000, true, 4.0)] {
            let json = Report::new(&args, Profile::DEFAULT)
                .json(&download(1_000_000, true), &download(bytes, is_complete));
            let json = serde_json::to_value(json).expect("JSON");
            assert_eq!(json["baseline"]["extrapolated"], !is_complete);
            assert_eq!(json["baseline"]["seconds"], seconds);
        }
    }
}
