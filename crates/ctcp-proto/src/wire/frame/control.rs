//! Credits, the ends of streams and how often to acknowledge: each a row of varints behind the type.

use core::time::Duration;

use crate::id::StreamId;
use crate::wire::frame::{Frame, kind};
use crate::wire::varint::{Reader, VARINT_MAX, varint_length, write_varint};
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
        kind::STOP_SENDING => Ok(Frame::StopSending { id, code: reader.varint()? }),
        _ => {
            let packets = reader.varint()?;
            let delay = Duration::from_micros(reader.varint()?);
            let gap_delay = Duration::from_micros(reader.varint()?);
            Ok(Frame::AckFrequency { sequence: first, packets, delay, gap_delay })
        }
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

/// The type, the fields, and how many of them there are.
fn fields(frame: &Frame<'_>) -> (u8, [u64; 4], usize) {
    match *frame {
        Frame::MaxData(credit) => (kind::MAX_DATA, [credit, 0, 0, 0], 1),
        Frame::MaxStreamData { id, credit } => (kind::MAX_STREAM_DATA, [id.0, credit, 0, 0], 2),
        Frame::MaxStreams(count) => (kind::MAX_STREAMS, [count, 0, 0, 0], 1),
        Frame::ResetStream { id, code, final_size } => (kind::RESET_STREAM, [id.0, code, final_size, 0], 3),
        Frame::StopSending { id, code } => (kind::STOP_SENDING, [id.0, code, 0, 0], 2),
        Frame::AckFrequency { sequence, packets, delay, gap_delay } => {
            (kind::ACK_FREQUENCY, [sequence, packets, micros(delay), micros(gap_delay)], 4)
        }
        _ => unreachable!("only called for the frames of this file"),
    }
}

/// A duration as it goes on the wire.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).map_or(VARINT_MAX, |micros| micros.min(VARINT_MAX))
}
