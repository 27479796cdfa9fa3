//! The sending half of a transfer.
//!
//! A thread reads and hashes beside the protocol, a bounded queue carries the pieces, and this side writes them to the
//! stream.
//!
//! Requirement: U5

use core::time::Duration;
use std::fs::File;
use std::io::{self, Read};

use ring::digest::{Context, SHA256};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::directory::identity_of;
use super::{CHUNK_BYTES, FileError, Hash, QUEUE_CHUNKS, hash_of, patience, patiently};
use crate::request::FileIdentity;

/// A file to be sent from `start` on.
pub(super) struct Source {
    pub(super) file: File,
    pub(super) identity: FileIdentity,
    pub(super) start: u64,
}

enum Piece {
    /// SHA-256 of what lies before the start, or of everything.
    Hash(Hash),
    Data(Vec<u8>),
}

type Queue = mpsc::Sender<Result<Piece, FileError>>;

/// Sends the file and returns its hash. `on_sent` is told each number of bytes of the file that went out.
pub(super) async fn send<W: AsyncWrite + Unpin>(
    writer: &mut W,
    source: Source,
    on_sent: &mut (dyn FnMut(u64) + Send),
) -> Result<Hash, FileError> {
    let patience = patience(source.start);
    let (queue, mut pieces) = mpsc::channel(QUEUE_CHUNKS);
    // Not waited for: it ends when the queue is dropped.
    tokio::task::spawn_blocking(move || read(source, &queue));
    let mut last = None;
    while let Some(piece) = pieces.recv().await {
        match piece? {
            Piece::Hash(hash) => {
                patiently(patience, writer.write_all(&hash)).await.map_err(FileError::Interrupted)?;
                last = Some(hash);
            }
            Piece::Data(data) => {
                write(writer, &data, patience, on_sent).await.map_err(FileError::Interrupted)?;
            }
        }
    }
    last.ok_or_else(|| FileError::Io(io::Error::other("the reader of the file is gone")))
}

/// Writes all, and tells of each little: on a slow path a piece takes long, and is no stall.
async fn write<W: AsyncWrite + Unpin>(
    writer: &mut W,
    mut data: &[u8],
    patience: Duration,
    on_sent: &mut (dyn FnMut(u64) + Send),
) -> io::Result<()> {
    while !data.is_empty() {
        let count = patiently(patience, writer.write(data)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        data = data.get(count..).unwrap_or_default();
        on_sent(count as u64);
    }
    Ok(())
}

fn read(source: Source, queue: &Queue) {
    if let Err(error) = read_pieces(source, queue) {
        let _ = queue.blocking_send(Err(error));
    }
}

fn read_pieces(source: Source, queue: &Queue) -> Result<(), FileError> {
    let Source { mut file, identity, start } = source;
    let mut context = Context::new(&SHA256);
    let mut position = 0u64;
    let mut buffer = vec![0; CHUNK_BYTES];
    while position < identity.size {
        if position == start && start > 0 && !give(queue, Piece::Hash(hash_of(&context))) {
            return Ok(());
        }
        let end = if position < start { start } else { identity.size };
        let wanted = usize::try_from(end - position).unwrap_or(usize::MAX).min(buffer.len());
        let count = file.read(buffer.get_mut(..wanted).unwrap_or_default())?;
        if count == 0 {
            return Err(FileError::Changed);
        }
        let data = buffer.get(..count).unwrap_or_default();
        context.update(data);
        let is_wanted =
            if position >= start { give(queue, Piece::Data(data.to_vec())) } else { !queue.is_closed() };
        if !is_wanted {
            return Ok(());
        }
        position = position.saturating_add(count as u64);
    }
    // Everything was there before: its hash is still compared as the beginning's.
    if start > 0 && start == identity.size && !give(queue, Piece::Hash(hash_of(&context))) {
        return Ok(());
    }
    if identity_of(&file)? != identity {
        return Err(FileError::Changed);
    }
    give(queue, Piece::Hash(hash_of(&context)));
    Ok(())
}

/// False when nobody takes pieces any more.
fn give(queue: &Queue, piece: Piece) -> bool {
    queue.blocking_send(Ok(piece)).is_ok()
}
