//! Where the body of a request ends (RFC 9112 sections 6 and 7), without changing a byte of it.
//!
//! ```text
//!  chunked:  Size --digits--> SizeLine --LF--> Data(n) --n bytes--> DataEnd --CR LF--> Size
//!                                 | size 0
//!                                 v
//!                             Trailer (lines until an empty one) --> Done
//! ```

use std::io;

/// Longest line of chunk sizes and trailers: they carry nothing that we look at.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// What is still to come of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunked),
}

/// How far the chunks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunked {
    state: State,
    /// Bytes of the present line.
    line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a size; how many there were.
    Size {
        size: u64,
        digits: u8,
    },
    /// Behind the digits: extensions up to the line's end.
    SizeLine {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// CR and LF behind the data.
    DataEnd {
        has_cr: bool,
    },
    /// In a trailer line; whether it has any byte but CR.
    Trailer {
        is_empty: bool,
    },
    Done,
}

impl Framing {
    /// A chunked body from its start.
    #[must_use]
    pub fn chunked() -> Self {
        Self::Chunked(Chunked { state: State::Size { size: 0, digits: 0 }, line: 0 })
    }

    /// Whether nothing is to come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.state == State::Done,
        }
    }

    /// Moves on over `bytes`; how many of them belong to the body.
    ///
    /// # Errors
    /// When they are no valid chunks.
    pub fn advance(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= count as u64;
                Ok(count)
            }
            Self::Chunked(chunked) => chunked.advance(bytes),
        }
    }
}

impl Chunked {
    fn advance(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut position = 0;
        while let Some(byte) = bytes.get(position).copied() {
            if let State::Data { left } = &mut self.state {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - position);
                *left -= count as u64;
                position += count;
                if *left == 0 {
                    self.state = State::DataEnd { has_cr: false };
                }
                continue;
            }
            if self.state == State::Done {
                break;
            }
            self.step(byte)?;
            position += 1;
            self.line = if byte == b'\n' { 0 } else { self.line + 1 };
            if self.line > LINE_BYTES_MAX {
                return Err(invalid("a line between chunks is too long"));
            }
        }
        Ok(position)
    }

    /// One byte of what is not data.
    fn step(&mut self, byte: u8) -> io::Result<()> {
        self.state = match (&self.state, byte) {
            (State::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                let value = char::from(byte).to_digit(16).map_or(0, u64::from);
                let size = size.checked_mul(16).and_then(|size| size.checked_add(value));
                let size = size.ok_or_else(|| invalid("a chunk of more than 2^64 bytes"))?;
                State::Size { size, digits: digits.saturating_add(1) }
            }
            (State::Size { digits: 0, .. }, _) => return Err(invalid("a chunk without a size")),
            (State::Size { size, .. }, b'\r' | b' ' | b'\t' | b';') => State::SizeLine { size: *size },
            (State::Size { .. }, _) => return Err(invalid("a chunk size with a forbidden character")),
            (State::SizeLine { size: 0 }, b'\n') => State::Trailer { is_empty: true },
            (State::SizeLine { size }, b'\n') => State::Data { left: *size },
            (State::DataEnd { has_cr: false }, b'\r') => State::DataEnd { has_cr: true },
            (State::DataEnd { has_cr: true }, b'\n') => State::Size { size: 0, digits: 0 },
            (State::DataEnd { .. }, _) => return Err(invalid("a chunk longer than its size")),
            (State::Trailer { is_empty: true }, b'\n') => State::Done,
            (State::Trailer { .. }, b'\n') => State::Trailer { is_empty: true },
            (State::Trailer { is_empty: true }, b'\r') => State::Trailer { is_empty: true },
            (State::Trailer { .. }, _) => State::Trailer { is_empty: false },
            (other, _) => other.clone(),
        };
        Ok(())
    }
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = b"4;x=y\r\nwiki\r\n0A\r\n0123\r\n6789\r\n0\r\nTrailer: yes\r\n\r\n";

    #[test]
    fn a_chunked_body_ends_behind_its_trailers_however_it_is_cut() {
        let input = [BODY, b"GET http://other/"].concat();
        for cut in 0..=input.len() {
            let mut framing = Framing::chunked();
            let first = framing.advance(&input[..cut]).unwrap();
            assert_eq!(first, cut.min(BODY.len()));
            let second = framing.advance(&input[first..]).unwrap();
            assert_eq!(first + second, BODY.len());
            assert!(framing.is_done());
            assert_eq!(framing.advance(b"more").unwrap(), 0);
        }
    }

    #[test]
    fn what_is_no_chunk_is_an_error() {
        for bytes in
            [&b"\r\n"[..], b"x\r\n", b"1x\r\n", b"1\r\nab", b"1\r\na\rb", b"11111111111111111\r\n", b"-1\r\n"]
        {
            assert!(Framing::chunked().advance(bytes).is_err(), "{bytes:?}");
        }
        let endless = [b"1;".to_vec(), vec![b'x'; LINE_BYTES_MAX + 1]].concat();
        assert!(Framing::chunked().advance(&endless).is_err());
    }

    #[test]
    fn a_length_counts_down() {
        let mut framing = Framing::Length(5);
        assert_eq!(framing.advance(b"abc").unwrap(), 3);
        assert!(!framing.is_done());
        assert_eq!(framing.advance(b"defg").unwrap(), 2);
        assert!(framing.is_done());
    }

    proptest! {
        #[test]
        fn noise_never_takes_more_than_there_is(noise in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(count) = Framing::chunked().advance(&noise) {
                prop_assert!(count <= noise.len());
            }
        }
    }
}
