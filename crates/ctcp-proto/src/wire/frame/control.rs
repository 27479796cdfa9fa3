//! Frames for credit and for the end of streams: the type followed by varints.

use crate::id::StreamId;
use crate::wire::frame::{Frame, kind};
use crate::wire::varint::{Reader, varint_length, write_varint};
use crate::wire::{Malformed, STREAMS_MAX};

pub(super) fn parse<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let first = reader.varint()?;
    let id = StreamId(first);
    match kind {
        kind::MAX_DATA => Ok(Frame::MaxData(first)),
        kind::MAX_STREAM_DATA => Ok(Frame::MaxStreamData { id, credit: reader.varint()? }),
        kind::MAX_STREAMS if first > STREAMS_MAX => Err(Malformed::new("more streams than there are ids")),
        kind::MAX_STREAMS => Ok(Frame::MaxStreams(first)),
        kind::RESET_STREAM => {
            let code = reader.varint()?;
            Ok(Frame::ResetStream { id, code, final_size: reader.varint()? })
        }
        _ => Ok(Frame::StopSending { id, code: reader.varint()? }),
    }
}

pub(super) fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let (kind, fields, count) = fields(frame);
    out.push(kind);
    for &field in &fields[..count] {
        write_varint(out, field);
    }
}

pub(super) fn length(frame: &Frame<'_>) -> usize {
    let (_, fields, count) = fields(frame);
    1 + fields[..count].iter().map(|&field| varint_length(field)).sum::<usize>()
}

/// The type, the fields and the number of fields in use.
fn fields(frame: &Frame<'_>) -> (u8, [u64; 3], usize) {
    match *frame {
        Frame::MaxData(credit) => (kind::MAX_DATA, [credit, 0, 0], 1),
        Frame::MaxStreamData { id, credit } => (kind::MAX_STREAM_DATA, [id.0, credit, 0], 2),
        Frame::MaxStreams(count) => (kind::MAX_STREAMS, [count, 0, 0], 1),
        Frame::ResetStream { id, code, final_size } => (kind::RESET_STREAM, [id.0, code, final_size], 3),
        Frame::StopSending { id, code } => (kind::STOP_SENDING, [id.0, code, 0], 2),
        _ => unreachable!("only called for the frames of this file"),
    }
}
