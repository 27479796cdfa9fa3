//! Follows the file of clients while the server runs: what is added is let in, what is removed is put out.
//!
//! ```text
//!  every 250 ms: read --> as before: nothing
//!                    \--> new, and the same when read again: take it        SIGHUP: read and take it at once
//! ```
//!
//! A file that is being written is therefore not taken half. One that makes no sense, or cannot be read, changes nothing
//! but the log.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctcp::Endpoint;
use ctcp_proxy::server::ReverseProxy;
use tokio::io::AsyncReadExt;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::Clients;
use crate::error::CliError;

/// How often the file is read. A change is taken when it is read twice, so that it has its effect within a second.
const INTERVAL: Duration = Duration::from_millis(250);

/// Largest file: some 10,000 clients with names, and small enough to be read often.
const FILE_SIZE_MAX: u64 = 1 << 20;

/// Who may connect: those of the command line, and those of a file.
#[derive(Debug)]
pub(crate) struct ClientList {
    /// `None`: everybody.
    fixed: Option<Clients>,
    file: Option<PathBuf>,
    present: Clients,
    /// What is in force, or was refused.
    seen: Result<Vec<u8>, io::ErrorKind>,
    /// What was read last, if it is something else.
    news: Option<Result<Vec<u8>, io::ErrorKind>>,
}

impl ClientList {
    /// Everybody may connect.
    pub(crate) fn everybody() -> Self {
        Self { fixed: None, file: None, present: Clients::default(), seen: Ok(Vec::new()), news: None }
    }

    /// `fixed` may connect, and those of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or a line of it makes no sense.
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

    /// Who may connect now; `None`: everybody.
    pub(crate) fn clients(&self) -> Option<&Clients> {
        self.fixed.as_ref().map(|_| &self.present)
    }

    /// Takes changes over into the endpoint and the proxy, for ever.
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

    /// Reads the file. True: other clients may connect than before.
    async fn look(&mut self, is_asked: bool) -> bool {
        let Some(file) = self.file.clone() else {
            info!("SIGHUP: there is no file of clients (--clients FILE) to be read again");
            return false;
        };
        let found = read(&file).await.map_err(|error| error.kind());
        if !is_asked && found == self.seen {
            self.news = None;
            return false;
        }
        if !is_asked && self.news.as_ref() != Some(&found) {
            self.news = Some(found);
            return false;
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
            warn!("the list of clients is empty: nobody may connect");
        }
        let is_changed = clients != self.present;
        self.present = clients;
        is_changed
    }
}

fn parse(file: &Path, bytes: &[u8]) -> Result<Clients, String> {
    let text = str::from_utf8(bytes).map_err(|_| format!("{}: not a text in UTF-8", file.display()))?;
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

/// Signals that ask a service to read its files again (SIGHUP). While this exists they do not end the process.
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

    #[tokio::test]
    async fn a_change_is_taken_when_it_is_read_twice_and_a_bad_file_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clients");
        std::fs::write(&file, line(1)).expect("a file");
        let fixed = Clients::unnamed([PublicKey([9; 32])]);
        let mut list = ClientList::read(fixed, Some(file.clone())).await.expect("a list");
        assert_eq!((listed(&list), list.look(false).await), (vec![1, 9], false));

        std::fs::write(&file, line(1) + &line(2)).expect("a file");
        assert_eq!((list.look(false).await, listed(&list)), (false, vec![1, 9]));
        assert_eq!((list.look(false).await, listed(&list)), (true, vec![1, 2, 9]));
        assert!(!list.look(false).await);

        for bad in [&b"anna\n"[..], b"\xff\n"] {
            std::fs::write(&file, bad).expect("a file");
            assert!(!list.look(false).await && !list.look(false).await && !list.look(true).await);
            assert_eq!(listed(&list), [1, 2, 9]);
        }
        std::fs::remove_file(&file).expect("it is there");
        assert!(!list.look(false).await && !list.look(false).await);
        assert_eq!(listed(&list), [1, 2, 9]);

        // At once when asked, and removed is removed.
        std::fs::write(&file, line(2)).expect("a file");
        assert_eq!((list.look(true).await, listed(&list)), (true, vec![2, 9]));
        std::fs::write(&file, "").expect("a file");
        assert_eq!((list.look(true).await, listed(&list)), (true, vec![9]));
    }

    #[tokio::test]
    async fn a_server_does_not_start_with_a_file_that_makes_no_sense() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clients");
        let read = |file: &Path| ClientList::read(Clients::default(), Some(file.to_owned()));
        assert!(matches!(read(&file).await, Err(CliError::Failure(_))));
        std::fs::write(&file, "anna\n").expect("a file");
        let Err(CliError::Usage(what)) = read(&file).await else { panic!("it is wrong") };
        assert!(what.ends_with("clients:1: `anna` is no public key"), "{what}");
    }
}
