//! CLOSE: code (varint), reason length (varint), reason (UTF-8).

use crate::wire::Malformed;
use crate::wire::frame::{Frame, kind};
use crate::wire::varint::{Reader, varint_length, write_varint};

/// The longest reason that is written or kept. Longer ones are truncated, so that a CLOSE fits any datagram together with an ACK.
pub const CLOSE_REASON_MAX: usize = 256;

pub(super) fn parse<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let code = reader.varint()?;
    let bytes = reader.prefixed()?;
    // The connection is closed even if the text is not valid UTF-8.
    let reason = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    Ok(Frame::Close { by_application: kind == kind::CLOSE_APPLICATION, code, reason: cut(reason) })
}

pub(super) fn write(by_application: bool, code: u64, reason: &str, out: &mut Vec<u8>) {
    out.push(if by_application { kind::CLOSE_APPLICATION } else { kind::CLOSE_TRANSPORT });
    write_varint(out, code);
    let reason = cut(reason);
    write_varint(out, reason.len() as u64);
    out.extend_from_slice(reason.as_bytes());
}

pub(super) fn length(code: u64, reason: &str) -> usize {
    let reason = cut(reason).len();
    1 + varint_length(code) + varint_length(reason as u64) + reason
}

/// The longest prefix of `reason` within the limit that ends at a character boundary.
fn cut(reason: &str) -> &str {
    let end = (0..=reason.len().min(CLOSE_REASON_MAX)).rev().find(|&end| reason.is_char_boundary(end));
    &reason[..end.unwrap_or(0)]
}
