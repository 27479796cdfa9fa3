//! The receiving half of a transfer.
//!
//! This side reads the stream and queues every read at once, however small, so that decoded data is written to the disk
//! as it arrives. A thread hashes and writes it, verifies it, and renames the file.
//!
//! Requirement: U4, U9

use core::mem;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use super::part::Part;
use super::{CHUNK_BYTES, FileError, Hash, QUEUE_CHUNKS, patience, patiently};

enum Piece {
    /// SHA-256 of the bytes before the start.
    PrefixHash(Hash),
    Data(Vec<u8>),
    /// SHA-256 of the whole file: the last piece.
    WholeHash(Hash),
}

/// Receives the bytes from `start` to `size` into the part, verifies and commits it, and returns its hash. The part was
/// started for this content, or holds `start` bytes of it. `on_received` is called with each number of bytes.
pub(super) async fn receive<R: AsyncRead + Unpin>(
    reader: &mut R,
    part: Part,
    start: u64,
    size: u64,
    on_received: &mut (dyn FnMut(u64) + Send),
) -> Result<Hash, FileError> {
    let (queue, pieces) = mpsc::channel(QUEUE_CHUNKS);
    let writer = tokio::task::spawn_blocking(move || write(part, start, pieces));
    let read = read_pieces(reader, &queue, start, size, on_received).await;
    drop(queue);
    let written = writer.await.map_err(|error| FileError::Io(io::Error::other(error)))?;
    match (written, read) {
        (Ok(Some(hash)), _) => Ok(hash),
        (Err(error), _) => Err(error),
        (Ok(None), Err(error)) => Err(FileError::Interrupted(error)),
        (Ok(None), Ok(())) => Err(FileError::Interrupted(io::ErrorKind::UnexpectedEof.into())),
    }
}

async fn read_pieces<R: AsyncRead + Unpin>(
    reader: &mut R,
    queue: &mpsc::Sender<Piece>,
    start: u64,
    size: u64,
    on_received: &mut (dyn FnMut(u64) + Send),
) -> io::Result<()> {
    // If the writing thread is gone it has failed, and returns the error itself.
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    let patience = patience(start);
    if start > 0 {
        let mut hash = Hash::default();
        patiently(patience, reader.read_exact(&mut hash)).await?;
        queue.send(Piece::PrefixHash(hash)).await.map_err(gone)?;
    }
    let mut left = size.saturating_sub(start);
    let mut buffer = Vec::new();
    while left > 0 {
        buffer.reserve(CHUNK_BYTES);
        let mut rest = (&mut *reader).take(left.min(CHUNK_BYTES as u64));
        let count = patiently(patience, rest.read_buf(&mut buffer)).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left = left.saturating_sub(count as u64);
        queue.send(Piece::Data(mem::take(&mut buffer))).await.map_err(gone)?;
        on_received(count as u64);
    }
    let mut hash = Hash::default();
    patiently(patience, reader.read_exact(&mut hash)).await?;
    queue.send(Piece::WholeHash(hash)).await.map_err(gone)
}

/// Returns `None` if the pieces ended before the last one: the part is kept for another attempt.
fn write(mut part: Part, start: u64, mut pieces: mpsc::Receiver<Piece>) -> Result<Option<Hash>, FileError> {
    if start > 0 {
        part.resume(start)?;
    }
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::PrefixHash(hash) => {
                if hash != part.hash() {
                    part.discard();
                    return Err(FileError::PrefixDiffers);
                }
            }
            Piece::Data(data) => {
                if let Err(error) = part.write_all(&data) {
                    if part.is_servers() && matches!(error, FileError::NoSpace) {
                        part.discard();
                    }
                    return Err(error);
                }
                part.update_hash(&data);
            }
            Piece::WholeHash(hash) => {
                if hash != part.hash() {
                    part.discard();
                    return Err(FileError::HashDiffers);
                }
                part.commit()?;
                return Ok(Some(hash));
            }
        }
    }
    part.keep_hash();
    Ok(None)
}
