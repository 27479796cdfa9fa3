//! The client's side of `get` into a pipe: data is passed on at once, and nothing is stored.
//!
//! If the connection is lost, the transfer waits for a new one and resumes, since the hash of the written data is
//! known. Written data cannot be taken back. So if the content turns out to differ, an error tells the user that the
//! reader of the pipe has wrong data.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::fetch::judge_stream;
use super::retry::{Attempts, starts_over};
use super::running_hash::RunningHash;
use super::{
    CHUNK_BYTES, FileName, Hash, OnProgress, Progress, TransferError, Transferred, patience, patiently,
};
use crate::link::{Connector, ServerLink};
use crate::request::{FileIdentity, GetAccepted, GetRequest, Request};

/// Fetches the file `name` of the server into `writer`, which is flushed at the end.
///
/// # Errors
/// See [`TransferError`]. Unless it is [`TransferError::WroteOther`], the written data is the beginning of the file.
pub async fn get_to<K: Connector, W: AsyncWrite + Unpin>(
    link: &ServerLink<K>,
    name: &str,
    writer: &mut W,
    on_progress: OnProgress<'_>,
) -> Result<Transferred, TransferError> {
    let name: FileName = name.parse()?;
    let mut attempts = Attempts::default();
    let mut poured = Poured { hash: RunningHash::new(), identity: FileIdentity::default() };
    loop {
        let outcome = poured.attempt(link, &name, writer, on_progress).await;
        let done = poured.hash.position();
        match outcome {
            Ok(hash) => return Ok(Transferred { size: done, resumed: 0, hash }),
            Err(error) if done > 0 && starts_over(&error) => {
                return Err(TransferError::WroteOther(Box::new(error)));
            }
            Err(error) => attempts.on_failure(error, done).await?,
        }
    }
}

/// The data written so far.
struct Poured {
    hash: RunningHash,
    identity: FileIdentity,
}

impl Poured {
    async fn attempt<K: Connector, W: AsyncWrite + Unpin>(
        &mut self,
        link: &ServerLink<K>,
        name: &FileName,
        writer: &mut W,
        on_progress: OnProgress<'_>,
    ) -> Result<Hash, TransferError> {
        let have = self.hash.position();
        let request = GetRequest { name: name.to_string(), have, identity: self.identity };
        let mut opened = link.request(&Request::Get(request)).await?;
        let GetAccepted { identity, start } =
            GetAccepted::from_reply(&opened.reply).map_err(TransferError::BadReply)?;
        if have > 0 && (start, identity) != (have, self.identity) {
            return Err(TransferError::RemoteChanged);
        }
        self.identity = identity;
        let stream = &mut opened.stream;
        if start > 0 && read_hash(stream, start).await? != self.hash.hash() {
            return Err(TransferError::HashDiffers);
        }
        on_progress(Progress { done: have, total: identity.size });
        let mut buffer = vec![0; CHUNK_BYTES];
        while self.hash.position() < identity.size {
            let left = usize::try_from(identity.size - self.hash.position()).unwrap_or(usize::MAX);
            let wanted = left.min(buffer.len());
            let read =
                patiently(patience(start), stream.read(buffer.get_mut(..wanted).unwrap_or_default())).await;
            let count = read.map_err(judge_stream)?;
            if count == 0 {
                return Err(TransferError::Interrupted(io::ErrorKind::UnexpectedEof.into()));
            }
            let data = buffer.get(..count).unwrap_or_default();
            writer.write_all(data).await.map_err(TransferError::Output)?;
            self.hash.update(data);
            link.counters().files_received.add(count as u64);
            on_progress(Progress { done: self.hash.position(), total: identity.size });
        }
        let hash = read_hash(stream, start).await?;
        if hash != self.hash.hash() {
            return Err(TransferError::HashDiffers);
        }
        writer.flush().await.map_err(TransferError::Output)?;
        Ok(hash)
    }
}

async fn read_hash<S: AsyncRead + Unpin>(stream: &mut S, start: u64) -> Result<Hash, TransferError> {
    let mut hash = Hash::default();
    patiently(patience(start), stream.read_exact(&mut hash)).await.map_err(judge_stream)?;
    Ok(hash)
}
