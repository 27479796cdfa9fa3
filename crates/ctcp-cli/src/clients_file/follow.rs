//! Follows the file of clients while the server runs: added clients are accepted, removed ones are disconnected.
//!
//! ```text
//!  every 100 ms: read --> unchanged: nothing
//!                    \--> changed: clients on whole lines are accepted at once
//!                                  after a stable period the file applies, removed clients are disconnected
//!  SIGHUP: the file applies at once
//! ```
//!
//! An editor may empty the file and take some time to write it again. So clients that are missing are removed only
//! after the file has been unchanged for [`STABLE`], or for [`STABLE_EMPTY`] if it is empty. Until then a last line
//! without a newline may be incomplete. A file that is invalid or cannot be read only causes a log line.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctcp::Endpoint;
use ctcp_proxy::server::ReverseProxy;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::Clients;
use crate::error::CliError;

/// How often the file is read.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long a file must be unchanged before removed clients are disconnected. Together with the time to notice the
/// change this is less than a second.
const STABLE: Duration = Duration::from_millis(700);

/// The same for a file that is empty or cannot be read, which is probably being written.
const STABLE_EMPTY: Duration = Duration::from_secs(1);

/// The largest file: some 10,000 clients with names, and small enough to be read often.
const FILE_SIZE_MAX: u64 = 1 << 20;

/// The clients that may connect: those of the command line and those of a file.
#[derive(Debug)]
pub(crate) struct ClientList {
    /// `None` means that every client may connect.
    fixed: Option<Clients>,
    file: Option<PathBuf>,
    present: Clients,
    /// The content that is in force, or that was rejected.
    seen: Result<Vec<u8>, io::ErrorKind>,
    /// The content that was read last, if it differs.
    news: Option<News>,
}

/// A changed file that does not apply yet.
#[derive(Debug)]
struct News {
    found: Result<Vec<u8>, io::ErrorKind>,
    /// When it was first read in this state.
    since: Instant,
}

impl News {
    fn is_stable(&self) -> bool {
        let is_empty = self.found.as_ref().map_or(true, Vec::is_empty);
        self.since.elapsed() >= if is_empty { STABLE_EMPTY } else { STABLE }
    }
}

impl ClientList {
    /// Every client may connect.
    pub(crate) fn everybody() -> Self {
        Self { fixed: None, file: None, present: Clients::default(), seen: Ok(Vec::new()), news: None }
    }

    /// Creates a list of the clients in `fixed` and in the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or a line is invalid.
    pub(crate) async fn read(fixed: Clients, file: Option<PathBuf>) -> Result<Self, CliError> {
        let mut list = Self { present: fixed.clone(), fixed: Some(fixed.clone()), file, ..Self::everybody() };
        if let Some(file) = &list.file {
            let bytes = read(file)
                .await
                .map_err(|error| CliError::failure(format!("cannot read {}: {error}", file.display())))?;
            let clients = parse(file, &bytes).map_err(CliError::usage)?;
            list.present = fixed.with(&clients);
            list.seen = Ok(bytes);
        }
        Ok(list)
    }

    /// The clients that may connect now; `None` means every client.
    pub(crate) fn clients(&self) -> Option<&Clients> {
        self.fixed.as_ref().map(|_| &self.present)
    }

    /// Applies changes to the endpoint and the proxy, forever.
    pub(crate) async fn follow(mut self, hangups: &mut Hangups, endpoint: &Endpoint, proxy: &ReverseProxy) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_asked = tokio::select! {
                () = hangups.next() => true,
                _ = ticks.tick(), if self.file.is_some() => false,
            };
            if self.look(is_asked).await
                && let Some(clients) = self.clients()
            {
                clients.name_in(endpoint, proxy);
                endpoint.set_clients(clients.policy());
            }
        }
    }

    /// Reads the file. Returns true if the set of clients has changed.
    async fn look(&mut self, is_asked: bool) -> bool {
        let Some(file) = self.file.clone() else {
            info!("SIGHUP: no clients file to read again (the server was started without --clients)");
            return false;
        };
        let found = read(&file).await.map_err(|error| error.kind());
        if !is_asked && found == self.seen {
            self.news = None;
            return false;
        }
        if !is_asked {
            match &self.news {
                Some(news) if news.found == found && news.is_stable() => {}
                Some(news) if news.found == found => return false,
                _ => {
                    let is_changed = found.as_ref().is_ok_and(|bytes| self.take_added(bytes));
                    self.news = Some(News { found, since: Instant::now() });
                    return is_changed;
                }
            }
        }
        self.news = None;
        let is_changed = match &found {
            Ok(bytes) => self.take(&file, bytes),
            Err(error) => {
                warn!("cannot read {}: {error}; the clients stay as they are", file.display());
                false
            }
        };
        self.seen = found;
        is_changed
    }

    /// Accepts the clients on the whole lines of a file that may be incomplete. Returns true if there are new ones.
    fn take_added(&mut self, bytes: &[u8]) -> bool {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = str::from_utf8(bytes.get(..end).unwrap_or_default());
        let Some(clients) = text.ok().and_then(|text| Clients::parse(text).ok()) else { return false };
        let mut is_changed = false;
        for client in clients.without(&self.present) {
            info!(client, "a client was added to the list");
            is_changed = true;
        }
        if is_changed {
            self.present = self.present.clone().with(&clients);
        }
        is_changed
    }

    fn take(&mut self, file: &Path, bytes: &[u8]) -> bool {
        let clients = match parse(file, bytes) {
            Ok(clients) => self.fixed.clone().unwrap_or_default().with(&clients),
            Err(what) => {
                warn!("{what}; the clients stay as they are");
                return false;
            }
        };
        for client in clients.without(&self.present) {
            info!(client, "a client was added to the list");
        }
        for client in self.present.without(&clients) {
            info!(client, "a client was removed from the list, its connections are closed");
        }
        info!(clients = clients.0.len(), "read {}", file.display());
        if clients.is_empty() {
            warn!("the list of clients is empty: no client may connect");
        }
        let is_changed = clients != self.present;
        self.present = clients;
        is_changed
    }
}

fn parse(file: &Path, bytes: &[u8]) -> Result<Clients, String> {
    let text =
        str::from_utf8(bytes).map_err(|_| format!("{}: this is not a text file in UTF-8", file.display()))?;
    Clients::parse(text).map_err(|(line, what)| format!("{}:{line}: {what}", file.display()))
}

async fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    tokio::fs::File::open(file).await?.take(FILE_SIZE_MAX + 1).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 > FILE_SIZE_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a file of clients has at most 1 MiB"));
    }
    Ok(bytes)
}

/// Receives the signal to reread files (SIGHUP). While this exists the signal does not end the process.
#[derive(Debug)]
pub(crate) struct Hangups(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

impl Hangups {
    pub(crate) fn new() -> Self {
        #[cfg(unix)]
        return Self(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok());
        #[cfg(not(unix))]
        Self()
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use ctcp::PublicKey;

    use super::*;

    fn line(byte: u8) -> String {
        format!("{}\n", PublicKey([byte; 32]))
    }

    fn listed(list: &ClientList) -> Vec<u8> {
        list.present.0.keys().map(|key| key.0[0]).collect()
    }

    /// A list that follows a file with the first client, besides one client of the command line.
    async fn following(file: &Path) -> ClientList {
        std::fs::write(file, line(1)).expect("a file");
        let fixed = Clients::unnamed([PublicKey([9; 32])]);
        let list = ClientList::read(fixed, Some(file.to_owned())).await.expect("a list");
        assert_eq!(listed(&list), [1, 9]);
        list
    }

    /// Checks the file at the usual interval for this time; returns true if the clients changed.
    async fn look_for(list: &mut ClientList, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut is_changed = list.look(false).await;
        while Instant::now() < end {
            tokio::time::advance(INTERVAL).await;
            is_changed |= list.look(false).await;
        }
        is_changed
    }

    #[tokio::test(start_paused = true)]
    async fn an_added_client_is_accepted_at_once_and_a_removed_one_is_disconnected_within_a_second() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clients");
        let mut list = following(&file).await;
        assert!(!list.look(false).await);
        std::fs::write(&file, line(1) + &line(2)).expect("a file");
        assert_eq!((list.look(false).await, listed(&list)), (true, vec![1, 2, 9]));
        assert!(!look_for(&mut list, Duration::from_secs(5)).await);

        for (text, at_once, later) in [
            (line(2) + &line(3), &[1, 2, 3, 9][..], &[2, 3, 9][..]),
            ("# nobody\n".to_owned(), &[2, 3, 9], &[9]),
        ] {
            std::fs::write(&file, &text).expect("a file");
            list.look(false).await;
            assert_eq!(listed(&list), at_once);
            assert!(look_for(&mut list, Duration::from_millis(900)).await);
            assert_eq!(listed(&list), later);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn emptying_and_slowly_rewriting_the_file_disconnects_no_client() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clients");
        let mut list = following(&file).await;
        // The file is renamed away, emptied, has half a line, and the first of two lines.
        let pause = Duration::from_millis(600);
        std::fs::remove_file(&file).expect("it is there");
        assert!(!look_for(&mut list, pause).await);
        for (text, is_new) in [("", false), (&line(2)[..20], false), (&line(2), true)] {
            std::fs::write(&file, text).expect("a file");
            assert_eq!(look_for(&mut list, pause).await, is_new, "{text:?}");
            assert!(listed(&list).starts_with(&[1]));
        }
        std::fs::write(&file, line(2) + &line(1)).expect("a file");
        look_for(&mut list, Duration::from_secs(5)).await;
        assert_eq!(listed(&list), [1, 2, 9]);
        // A last line needs no newline if the file stays unchanged, and a file that stays empty applies.
        std::fs::write(&file, line(3).trim_end()).expect("a file");
        assert!(!list.look(false).await);
        assert!(look_for(&mut list, Duration::from_secs(1)).await);
        assert_eq!(listed(&list), [3, 9]);
        std::fs::write(&file, "").expect("a file");
        assert!(look_for(&mut list, Duration::from_millis(1200)).await);
        assert_eq!(listed(&list), [9]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_invalid_file_changes_nothing_and_a_signal_rereads_the_file_at_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clients");
        let mut list = following(&file).await;
        for bad in [&b"anna\n"[..], b"\xff\n"] {
            std::fs::write(&file, bad).expect("a file");
            assert!(!look_for(&mut list, Duration::from_secs(3)).await && !list.look(true).await);
            assert_eq!(listed(&list), [1, 9]);
        }
        std::fs::remove_file(&file).expect("it is there");
        assert!(!look_for(&mut list, Duration::from_secs(3)).await);
        assert_eq!(listed(&list), [1, 9]);

        std::fs::write(&file, line(2)).expect("a file");
        assert_eq!((list.look(true).await, listed(&list)), (true, vec![2, 9]));
        std::fs::write(&file, "").expect("a file");
        assert_eq!((list.look(true).await, listed(&list)), (true, vec![9]));
    }

    #[tokio::test]
    async fn a_server_does_not_start_with_an_invalid_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clients");
        let read = |file: &Path| ClientList::read(Clients::default(), Some(file.to_owned()));
        assert!(matches!(read(&file).await, Err(CliError::Failure(_))));
        std::fs::write(&file, "anna\n").expect("a file");
        let Err(CliError::Usage(what)) = read(&file).await else { panic!("the file is invalid") };
        assert!(what.ends_with("clients:1: `anna` is not a public key"), "{what}");
    }
}
