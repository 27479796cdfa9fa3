//! The client's side of `put`.

use core::pin::pin;
use core::time::Duration;
use std::fs::File;
use std::io;
use std::path::Path;

use tokio::io::{AsyncWriteExt, split};
use tokio::time::timeout;

use super::directory::identity_of;
use super::retry::Attempts;
use super::send::{Source, send};
use super::{FileError, FileName, Hash, OnProgress, Progress, TransferError, Transferred};
use crate::link::{Connector, ServerLink};
use crate::request::{FileIdentity, HeadError, PutAccepted, PutRequest, Reply, Request};

/// How long the client waits for the reason after the server stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Stores the local file `source` at the server under `name`, where it appears only when complete and verified. Data of
/// an earlier, interrupted call is used. If the connection is lost, the transfer waits for a new one.
///
/// # Errors
/// See [`TransferError`]. The server keeps what arrived, so that another call can resume.
pub async fn put<K: Connector>(
    link: &ServerLink<K>,
    source: &Path,
    name: &str,
    on_progress: OnProgress<'_>,
) -> Result<Transferred, TransferError> {
    let name: FileName = name.parse()?;
    let mut attempts = Attempts::default();
    let mut resumed = None;
    loop {
        let mut done = 0;
        let attempt = Attempt { link, name: &name, source };
        match attempt.run(&mut resumed, &mut done, on_progress).await {
            Ok(transferred) => return Ok(transferred),
            Err(error) => attempts.on_failure(error, done).await?,
        }
    }
}

struct Attempt<'a, K: Connector> {
    link: &'a ServerLink<K>,
    name: &'a FileName,
    source: &'a Path,
}

impl<K: Connector> Attempt<'_, K> {
    /// As in `get`.
    async fn run(
        &self,
        resumed: &mut Option<u64>,
        done: &mut u64,
        on_progress: OnProgress<'_>,
    ) -> Result<Transferred, TransferError> {
        let (file, identity) = self.open().await?;
        let request = PutRequest { name: self.name.to_string(), identity };
        let opened = self.link.request(&Request::Put(request)).await?;
        let PutAccepted { start } =
            PutAccepted::from_reply(&opened.reply).map_err(TransferError::BadReply)?;
        if start > identity.size {
            return Err(bad_reply("it has more than there is"));
        }
        *resumed = Some(resumed.map_or(start, |before| before.min(start)));
        *done = start;
        on_progress(Progress { done: *done, total: identity.size });
        let mut on_sent = |count: u64| {
            *done = done.saturating_add(count);
            self.link.counters().files_sent.add(count);
            on_progress(Progress { done: *done, total: identity.size });
        };
        let source = Source::new(file, identity, start);
        let hash = self.exchange(opened.stream, source, &mut on_sent).await?;
        Ok(Transferred { size: identity.size, resumed: resumed.unwrap_or(0), hash })
    }

    /// Sends everything and waits for the verdict, which comes early if the server cannot continue.
    async fn exchange<S: crate::coded::CodedStream>(
        &self,
        stream: S,
        source: Source,
        on_sent: &mut (dyn FnMut(u64) + Send),
    ) -> Result<Hash, TransferError> {
        let (mut reader, mut writer) = split(stream);
        let mut verdict = pin!(Reply::read(&mut reader));
        let mut sending = pin!(async {
            let hash = send(&mut writer, source, on_sent).await?;
            // A server that has everything may stop reading, even before the end; its verdict tells.
            let _ = writer.shutdown().await;
            Ok::<Hash, FileError>(hash)
        });
        let (sent, verdict) = tokio::select! {
            early = &mut verdict => {
                judge(early)?;
                // An early success arrived before our own last write returned. If it is false, that write fails.
                (sending.await, Ok(()))
            }
            sent = &mut sending => match sent {
                Ok(_) => (sent, judge(verdict.await)),
                Err(_) => (sent, last_words(verdict).await),
            }
        };
        match sent {
            Ok(hash) => verdict.map(|()| hash),
            Err(FileError::Interrupted(error)) => {
                Err(verdict.err().unwrap_or(TransferError::Interrupted(error)))
            }
            Err(error) => Err(TransferError::Local(self.source.to_owned(), error)),
        }
    }

    async fn open(&self) -> Result<(File, FileIdentity), TransferError> {
        let path = self.source.to_owned();
        let open = move || {
            // Checked before opening, because opening a pipe would block and opening a device could have any effect.
            if !std::fs::metadata(&path)?.is_file() {
                return Err(FileError::NotAFile);
            }
            let file = File::open(&path)?;
            let identity = identity_of(&file)?;
            Ok((file, identity))
        };
        let opened = tokio::task::spawn_blocking(open).await;
        let opened = opened.unwrap_or_else(|error| Err(FileError::Io(io::Error::other(error))));
        opened.map_err(|error| TransferError::Local(self.source.to_owned(), error))
    }
}

/// Waits a limited time for the server's reason to stop reading.
async fn last_words(verdict: impl Future<Output = Result<Reply, HeadError>>) -> Result<(), TransferError> {
    match timeout(LAST_WORDS, verdict).await {
        Ok(Ok(reply)) => judge(Ok(reply)),
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

fn judge(verdict: Result<Reply, HeadError>) -> Result<(), TransferError> {
    match verdict {
        Ok(reply) if reply.is_success() => Ok(()),
        Ok(reply) => Err(TransferError::Refused(reply)),
        Err(HeadError::Stream(error)) => Err(TransferError::Interrupted(error)),
        Err(error) => Err(TransferError::BadReply(error)),
    }
}

fn bad_reply(text: &'static str) -> TransferError {
    TransferError::BadReply(HeadError::Stream(io::Error::new(io::ErrorKind::InvalidData, text)))
}
