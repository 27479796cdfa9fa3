//! Which bytes of a short header are hidden (PROTOCOL.md 2.2, after RFC 9001 section 5.4). The mask itself
//! comes from the cipher.
//!
//! ```text
//!  | first byte | destination id | path | number 1..3 | sealed ...
//!    mask[0]                       mask[1]  mask[2..5]
//!    & 0x3f                      |<-- 4 bytes -->|<-- sample, 16 bytes -->|
//! ```
//!
//! The sample starts behind the longest packet number, so that both sides find it without knowing the length.

use crate::id::{ConnectionId, PathId};
use crate::wire::header::{NUMBER_LENGTH, ShortHeader};
use crate::wire::{Malformed, TruncatedNumber};

/// The bits of the first byte that are hidden.
const HIDDEN_BITS: u8 = 0x3f;
/// From the end of the destination id to the sample: path id and longest packet number.
const SAMPLE_OFFSET: usize = 1 + TruncatedNumber::LENGTH_MAX;
/// One AES block, or counter and nonce of ChaCha20.
const SAMPLE_LENGTH: usize = 16;

/// The bytes of a sealed datagram from which the mask is made.
///
/// # Errors
/// When the datagram is too short to hold them.
pub fn header_sample(datagram: &[u8], destination_length: usize) -> Result<&[u8; SAMPLE_LENGTH], Malformed> {
    let start = destination_length.checked_add(1 + SAMPLE_OFFSET);
    let tail = start.and_then(|start| datagram.get(start..));
    tail.and_then(<[u8]>::first_chunk).ok_or(Malformed::new("datagram without a header sample"))
}

/// Hides the header of a sealed datagram.
///
/// # Panics
/// When the datagram is shorter than its header: [`DatagramBuilder`](crate::wire::DatagramBuilder) makes longer ones.
pub fn protect_header(datagram: &mut [u8], destination_length: usize, mask: [u8; 5]) {
    let number_length = usize::from(datagram[0] & NUMBER_LENGTH);
    datagram[0] ^= mask[0] & HIDDEN_BITS;
    apply(datagram, destination_length, number_length, mask).expect("a sealed datagram holds its header");
}

/// Uncovers the header of a datagram in place and reads it. On error the header is left half uncovered and the
/// datagram is of no more use. Nothing is authentic before the payload was opened.
///
/// # Errors
/// When the datagram is too short or a bit is not as this version has it.
pub fn unprotect_header(
    datagram: &mut [u8],
    destination_length: usize,
    mask: [u8; 5],
) -> Result<ShortHeader, Malformed> {
    if destination_length > ConnectionId::MAX {
        return Err(Malformed::new("connection id above 20 bytes"));
    }
    let first = datagram.first_mut().ok_or(Malformed::TRUNCATED)?;
    *first ^= mask[0] & HIDDEN_BITS;
    let number_length = usize::from(*first & NUMBER_LENGTH);
    apply(datagram, destination_length, number_length, mask)?;
    ShortHeader::parse(datagram, destination_length)
}

/// Applies bytes 1 to 4 of the mask to path id and packet number; it is its own inverse.
fn apply(
    datagram: &mut [u8],
    destination_length: usize,
    number_length: usize,
    mask: [u8; 5],
) -> Result<(), Malformed> {
    let start = 1 + destination_length;
    let hidden = datagram.get_mut(start..start + size_of::<PathId>() + number_length);
    for (byte, mask) in hidden.ok_or(Malformed::TRUNCATED)?.iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
    }
    Ok(())
}
