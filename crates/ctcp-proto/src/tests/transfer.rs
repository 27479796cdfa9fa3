//! A download whose bytes are checked.

use ctcp_base::Instant;

use crate::{Connection, ReadOutcome, StreamId, WriteError};

/// Bytes written or read at once.
const CHUNK: u64 = 65_536;

/// A download.
#[derive(Default)]
pub(super) struct Transfer {
    stream: Option<StreamId>,
    /// The stream at the server.
    pub(super) serving: Option<StreamId>,
    size: u64,
    written: u64,
    pub(super) read: u64,
    pub(super) is_whole: bool,
}

fn pattern(index: u64) -> u8 {
    ((index * 31) ^ (index >> 8) ^ (index >> 16)) as u8
}

impl Transfer {
    /// Asks for so many bytes.
    pub(super) fn request(now: Instant, client: &mut Connection, bytes: u64) -> Self {
        let stream = client.open().expect("a stream");
        client.write(now, stream, b"GET").expect("room");
        client.finish(stream).expect("open");
        Self { stream: Some(stream), size: bytes, ..Self::default() }
    }

    /// Writes as much as the server takes.
    pub(super) fn serve(&mut self, now: Instant, server: &mut Connection) {
        if let Some(id) = server.accept() {
            self.serving = Some(id);
        }
        while let Some(id) = self.serving.filter(|_| self.written < self.size) {
            let end = (self.written + CHUNK).min(self.size);
            let chunk: Vec<u8> = (self.written..end).map(pattern).collect();
            match server.write(now, id, &chunk) {
                Ok(taken) => self.written += taken as u64,
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
            if self.written == self.size {
                server.finish(id).expect("open");
            }
        }
    }

    /// Reads what has arrived.
    pub(super) fn receive(&mut self, client: &mut Connection) {
        let mut scratch = vec![0; CHUNK as usize];
        while let Some(id) = self.stream {
            match client.read(id, &mut scratch) {
                Ok(ReadOutcome::Data(count)) => {
                    let expected = (self.read..).map(pattern);
                    assert!(scratch[..count].iter().copied().eq(expected.take(count)), "bytes as sent");
                    self.read += count as u64;
                }
                Ok(ReadOutcome::Finished) => {
                    assert_eq!(self.read, self.size);
                    self.is_whole = true;
                    break;
                }
                _ => break,
            }
        }
    }
}
