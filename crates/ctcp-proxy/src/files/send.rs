//! The sending half of a transfer.
//!
//! A thread reads and hashes alongside the protocol. A bounded queue carries the pieces, and this side writes them to
//! the stream.
//!
//! Requirement: U5

use core::time::Duration;
use std::fs::File;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::beginnings::{Beginning, SLICE};
use super::directory::identity_of;
use super::running_hash::{RunningHash, States};
use super::{CHUNK_BYTES, FileError, Hash, QUEUE_CHUNKS, patience, patiently};
use crate::request::FileIdentity;

/// A file to be sent, starting at `start`.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    pub(super) identity: FileIdentity,
    pub(super) start: u64,
    /// The hash of the data read.
    hash: RunningHash,
}

impl Source {
    /// A file from `start` on, which is at most its size.
    pub(super) fn new(file: File, identity: FileIdentity, start: u64) -> Self {
        Self { file, identity, start, hash: RunningHash::new() }
    }

    /// Uses and stores states of its hash.
    pub(super) fn with_states(mut self, states: &Arc<States>) -> Self {
        self.hash = RunningHash::of(&self.file, self.start, states);
        self
    }
}

impl Beginning for Source {
    fn left(&self) -> u64 {
        self.start.saturating_sub(self.hash.position())
    }

    fn hash_some(&mut self, most: u64) -> Result<(), FileError> {
        let end = self.start.min(self.hash.position().saturating_add(most));
        self.hash.read_up_to(&mut self.file, end)
    }
}

enum Piece {
    /// SHA-256 of the bytes before the start, or of the whole file.
    Hash(Hash),
    Data(Vec<u8>),
}

type Queue = mpsc::Sender<Result<Piece, FileError>>;

/// Sends the file and returns its hash. `on_sent` is called with each number of bytes of the file that was sent.
pub(super) async fn send<W: AsyncWrite + Unpin>(
    writer: &mut W,
    source: Source,
    on_sent: &mut (dyn FnMut(u64) + Send),
) -> Result<Hash, FileError> {
    let patience = patience(source.start);
    let (queue, mut pieces) = mpsc::channel(QUEUE_CHUNKS);
    // Not awaited: it ends when the queue is dropped.
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

/// Writes all data and reports every partial write: on a slow path a piece takes long without being stalled.
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

fn read_pieces(mut source: Source, queue: &Queue) -> Result<(), FileError> {
    while source.left() > 0 {
        source.hash_some(SLICE)?;
        if queue.is_closed() {
            return Ok(());
        }
    }
    let Source { mut file, identity, start, mut hash } = source;
    hash.read_up_to(&mut file, start)?; // also moves the file's position to `start`
    if start > 0 && !give(queue, Piece::Hash(hash.hash())) {
        return Ok(());
    }
    let mut buffer = vec![0; CHUNK_BYTES];
    while hash.position() < identity.size {
        let data = hash.read(&mut file, identity.size, &mut buffer)?.to_vec();
        if !give(queue, Piece::Data(data)) {
            return Ok(());
        }
    }
    if identity_of(&file)? != identity {
        return Err(FileError::Changed);
    }
    give(queue, Piece::Hash(hash.hash()));
    Ok(())
}

/// Queues a piece. Returns false if the receiver is gone.
fn give(queue: &Queue, piece: Piece) -> bool {
    queue.blocking_send(Ok(piece)).is_ok()
}
