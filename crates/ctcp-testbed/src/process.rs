//! A program of a peer, started as its users start it. It ends with this process.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::error::TestbedError;

/// The value of `sysconf(_SC_CLK_TCK)` on all Linux systems: the unit of times in `/proc/PID/stat`.
const TICKS_PER_SECOND: f64 = 100.0;

/// A program that runs until it is dropped. Its output goes into an unnamed file.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    said: File,
}

impl Process {
    /// Starts a program from the current thread; the kernel kills it when the thread ends.
    pub(crate) fn start(program: &Path, words: &[String]) -> Result<Self, TestbedError> {
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let file = || -> std::io::Result<(File, File, File)> {
            let said = tempfile::tempfile()?;
            Ok((said.try_clone()?, said.try_clone()?, said))
        };
        let (output, errors, said) = file().map_err(TestbedError::of("cannot make a temporary file"))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn();
        let child = child.map_err(|error| {
            TestbedError::Missing(format!(
                "cannot run `setpriv` ({error}): the testbed needs the package util-linux"
            ))
        })?;
        Ok(Self { child, name, said })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// Returns an error with the last line of output if it has ended.
    pub fn check(&mut self) -> Result<(), TestbedError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(error) => Err(TestbedError::failed(format!("{}: {error}", self.name))),
        }
    }

    /// Returns true if it has finished its work and ended.
    ///
    /// # Errors
    /// Returns an error with the last line of output if it ended without success.
    pub fn is_done(&mut self) -> Result<bool, TestbedError> {
        match self.child.try_wait() {
            Ok(None) => Ok(false),
            Ok(Some(status)) if status.success() => Ok(true),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(error) => Err(TestbedError::failed(format!("{}: {error}", self.name))),
        }
    }

    /// CPU time used so far in seconds, including threads that have ended; `None` once the process has ended.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        cpu_seconds(&fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?)
    }

    /// The sum of the times that its threads were ready without a core, in seconds: the effect of a busy machine.
    #[must_use]
    pub fn waited_seconds(&self) -> f64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let waits = tasks
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|task| waited_seconds(&fs::read_to_string(task.path().join("schedstat")).ok()?));
        waits.sum()
    }

    /// All its output.
    #[must_use]
    pub fn said(&mut self) -> String {
        let mut text = Vec::new();
        // The text is for a person, so unreadable parts are left out.
        let _ = self.said.rewind().and_then(|()| self.said.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    }

    fn ended(&mut self, status: ExitStatus) -> TestbedError {
        let said = self.said();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        TestbedError::failed(format!("{} ended ({status}): {last}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; then only its status is collected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of user and system time from the format of `/proc/PID/stat`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name, in brackets, may contain anything. After it the first field is the state, and the times are the 12th
    // and 13th.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().ok());
    Some(ticks.sum::<Option<u64>>()? as f64 / TICKS_PER_SECOND)
}

/// The second of the three numbers in `/proc/PID/task/TID/schedstat`: nanoseconds that the thread was ready without a
/// core.
fn waited_seconds(schedstat: &str) -> Option<f64> {
    Some(schedstat.split_whitespace().nth(1)?.parse::<u64>().ok()? as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_after_any_name() {
        let stat = "71 (a) (b c) S 1 71 71 0 -1 4194304 100 0 0 0 250 50 7 8 20 0 4 0 100";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("nonsense"), None);
        assert_eq!((waited_seconds("7 1500000000 3\n"), waited_seconds("")), (Some(1.5), None));
    }
}
