//! PADDING, RESET_TOKEN, KEY_SHARE, PATH_CHALLENGE, PATH_RESPONSE, PATH_ABANDON and ARRIVED.

use crate::id::PathId;
use crate::wire::Malformed;
use crate::wire::frame::{Frame, kind};
use crate::wire::varint::Reader;

/// Skips the zeros after the first one and returns the length of the whole run.
pub(super) fn parse_padding(reader: &mut Reader<'_>) -> usize {
    let more = reader.peek().iter().take_while(|&&byte| byte == kind::PADDING).count();
    reader.bytes(more).map_or(1, |zeros| 1 + zeros.len())
}

pub(super) fn parse_id(reader: &mut Reader<'_>) -> Result<PathId, Malformed> {
    u8::try_from(reader.varint()?).map(PathId).map_err(|_| Malformed::new("path id above 255"))
}

pub(super) fn parse_arrived<'a>(contents: &[u8]) -> Result<Frame<'a>, Malformed> {
    let mut reader = Reader::new(contents);
    let (path, largest) = (parse_id(&mut reader)?, reader.varint()?);
    if !reader.is_empty() {
        return Err(Malformed::new("more bytes than fields"));
    }
    Ok(Frame::Arrived { path, largest })
}

pub(super) fn write(kind: u8, data: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(data);
}
