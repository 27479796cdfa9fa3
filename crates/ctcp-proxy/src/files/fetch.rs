//! The client's side of `get`.

use std::io;
use std::path::Path;

use super::part::{Destination, Part};
use super::receive::receive;
use super::retry::Attempts;
use super::{FileError, FileName, OnProgress, Progress, TransferError, Transferred};
use crate::coded::reset_code;
use crate::link::{Connector, ServerLink};
use crate::request::{GetAccepted, GetRequest, HeadError, Reply, ReplyCode, Request, stream_code};

/// Fetches the file `name` of the server to `destination`, where it appears only when complete and verified. A
/// `destination.part` of an earlier, interrupted call is resumed. If the connection is lost, the transfer waits for a
/// new one.
///
/// # Errors
/// See [`TransferError`]. The part is kept for another call unless its content proved to be wrong.
pub async fn get<K: Connector>(
    link: &ServerLink<K>,
    name: &str,
    destination: &Path,
    on_progress: OnProgress<'_>,
) -> Result<Transferred, TransferError> {
    let name: FileName = name.parse()?;
    let mut attempts = Attempts::default();
    let mut resumed = None;
    loop {
        let mut done = 0;
        let attempt = Attempt { link, name: &name, destination };
        match attempt.run(&mut resumed, &mut done, on_progress).await {
            Ok(transferred) => return Ok(transferred),
            Err(error) => attempts.on_failure(error, done).await?,
        }
    }
}

struct Attempt<'a, K: Connector> {
    link: &'a ServerLink<K>,
    name: &'a FileName,
    destination: &'a Path,
}

impl<K: Connector> Attempt<'_, K> {
    /// `resumed` is set to the bytes that the first attempt found, unless one started over; `done` to the progress of
    /// this one.
    async fn run(
        &self,
        resumed: &mut Option<u64>,
        done: &mut u64,
        on_progress: OnProgress<'_>,
    ) -> Result<Transferred, TransferError> {
        let part = self.open_part().await?;
        let (have, identity) = part.have().unwrap_or_default();
        let request = GetRequest { name: self.name.to_string(), have, identity };
        let mut opened = match self.link.request(&Request::Get(request)).await {
            Ok(opened) => opened,
            Err(error) => {
                part.abandon_if_empty();
                return Err(error.into());
            }
        };
        let accepted = GetAccepted::from_reply(&opened.reply).map_err(TransferError::BadReply)?;
        let GetAccepted { identity: remote, start } = accepted;
        if start != 0 && (start, remote) != (have, identity) {
            let error = io::Error::new(io::ErrorKind::InvalidData, "it starts where nobody asked");
            return Err(TransferError::BadReply(HeadError::Stream(error)));
        }
        let part = if start == 0 { self.begin(part, accepted).await? } else { part };

        *resumed = Some(resumed.map_or(start, |before| before.min(start)));
        *done = start;
        on_progress(Progress { done: *done, total: remote.size });
        let mut on_received = |count: u64| {
            *done = done.saturating_add(count);
            self.link.counters().files_received.add(count);
            on_progress(Progress { done: *done, total: remote.size });
        };
        let hash = receive(&mut opened.stream, part, start, remote.size, &mut on_received).await;
        let hash = hash.map_err(|error| self.judge(error))?;
        Ok(Transferred { size: remote.size, resumed: resumed.unwrap_or(0), hash })
    }

    async fn open_part(&self) -> Result<Part, TransferError> {
        let (destination, name) = (self.destination.to_owned(), self.name.to_string());
        self.blocking(move || Destination::ambient(&destination)?.open_part(&name)).await
    }

    async fn begin(&self, mut part: Part, accepted: GetAccepted) -> Result<Part, TransferError> {
        self.blocking(move || part.begin(accepted.identity).map(|()| part)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, TransferError> {
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.unwrap_or_else(|error| Err(FileError::Io(io::Error::other(error))));
        done.map_err(|error| TransferError::Local(self.destination.to_owned(), error))
    }

    fn judge(&self, error: FileError) -> TransferError {
        match error {
            FileError::Interrupted(error) => judge_stream(error),
            FileError::HashDiffers => TransferError::HashDiffers,
            other => TransferError::Local(self.destination.to_owned(), other),
        }
    }
}

/// Interprets a failure of the server's stream.
pub(super) fn judge_stream(error: io::Error) -> TransferError {
    let refused = |code, text: &str| TransferError::Refused(Reply::failure(code, text));
    match reset_code(&error) {
        Some(stream_code::FILE_CHANGED) => TransferError::RemoteChanged,
        Some(stream_code::FILE_UNREADABLE) => {
            refused(ReplyCode::FileFailure, "the file could not be read to its end")
        }
        Some(stream_code::GAVE_WAY) => refused(ReplyCode::Busy, &FileError::StoodStill.to_string()),
        _ => TransferError::Interrupted(error),
    }
}
