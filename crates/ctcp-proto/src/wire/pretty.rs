//! One-line formatting of frames for traces. Payloads are shown by their length only.

use core::fmt;

use crate::id::ContextId;
use crate::wire::{Combination, DecoderReport, Frame, PathAck};

impl fmt::Display for Frame<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Padding(count) => write!(formatter, "PADDING {count}"),
            Self::Ping => formatter.write_str("PING"),
            Self::PathAck(ack) => ack.fmt(formatter),
            Self::DecoderReport(context, report) => {
                report.fmt(formatter)?;
                in_context(*context, formatter)
            }
            Self::Combination(context, combination) => {
                combination.fmt(formatter)?;
                in_context(*context, formatter)
            }
            Self::MaxData(credit) => write!(formatter, "MAX_DATA {credit}"),
            Self::MaxStreamData { id, credit } => write!(formatter, "MAX_STREAM_DATA {id} {credit}"),
            Self::MaxStreams(count) => write!(formatter, "MAX_STREAMS {count}"),
            Self::ResetStream { id, code, final_size } => {
                write!(formatter, "RESET_STREAM {id} code {code} final size {final_size}")
            }
            Self::StopSending { id, code } => write!(formatter, "STOP_SENDING {id} code {code}"),
            Self::KeyShare(_) => formatter.write_str("KEY_SHARE"),
            // The token is a secret.
            Self::ResetToken(_) => formatter.write_str("RESET_TOKEN"),
            Self::NewTicket(ticket) => write!(formatter, "NEW_TICKET for {} s", ticket.lifetime),
            Self::PathPreference(preference) => write!(formatter, "PATH_PREFERENCE {preference}"),
            Self::AckFrequency(frequency) => write!(
                formatter,
                "ACK_FREQUENCY {} packets, {} us{}",
                frequency.packets,
                frequency.delay.as_micros(),
                if frequency.hurries_at_gaps { ", gaps at once" } else { "" },
            ),
            Self::Arrived { path, largest } => write!(formatter, "ARRIVED {largest} on {path}"),
            Self::PathAbandon(id) => write!(formatter, "PATH_ABANDON {}", id.0),
            Self::NewConnectionId { path, id } => {
                write!(formatter, "NEW_CONNECTION_ID {id:?} for {path}")
            }
            Self::PathChallenge(data) => {
                write!(formatter, "PATH_CHALLENGE {:016x}", u64::from_be_bytes(*data))
            }
            Self::PathResponse(data) => write!(formatter, "PATH_RESPONSE {:016x}", u64::from_be_bytes(*data)),
            Self::Close { by_application, code, reason } => {
                let who = if *by_application { "application" } else { "transport" };
                // The peer's text is escaped, so that it cannot forge lines of a trace.
                write!(formatter, "CLOSE by the {who} code {code} {reason:?}")
            }
            Self::Skippable { kind, contents } => {
                write!(formatter, "UNKNOWN {kind:#x} ({} bytes)", contents.len())
            }
        }
    }
}

/// Names the context, unless it is that of the streams.
fn in_context(context: ContextId, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    if context == ContextId::Streams { Ok(()) } else { write!(formatter, " of {context}") }
}

impl fmt::Display for Combination<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { index, floor, symbol } => {
                write!(formatter, "SOURCE {index} floor {floor} ({} bytes)", symbol.len())
            }
            Self::Coded { first, length, density, key, floor, payload } => {
                let end = first + u64::from(*length);
                let bytes = payload.len();
                write!(
                    formatter,
                    "CODED [{first}, {end}) key {key} density {density} floor {floor} ({bytes} bytes)"
                )
            }
            Self::Recoded { first, coefficients, floor, payload } => {
                let end = first + coefficients.len() as u64;
                write!(formatter, "RECODED [{first}, {end}) floor {floor} ({} bytes)", payload.len())
            }
            Self::Segment { first, length, key, floor, offset, total, piece, .. } => {
                let end = first + u64::from(*length);
                let until = usize::from(*offset) + piece.len();
                write!(
                    formatter,
                    "SEGMENT [{first}, {end}) key {key} floor {floor} (bytes {offset}..{until} of {total})"
                )
            }
        }
    }
}

impl fmt::Display for PathAck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PATH_ACK {}", self.path)?;
        for (start, end) in self.ranges.iter() {
            if start == end {
                write!(formatter, " {end}")?;
            } else {
                write!(formatter, " {end}..{start}")?;
            }
        }
        write!(formatter, " delay {} us", self.delay.as_micros())?;
        match &self.ecn {
            Some(ecn) => write!(formatter, " ecn {} {} {}", ecn.ect0, ecn.ect1, ecn.ce),
            None => Ok(()),
        }
    }
}

impl fmt::Display for DecoderReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, oldest_undecoded, oldest_unseen, known_end, intervals, reported_end } = self;
        write!(formatter, "DECODER_REPORT {number}")?;
        write!(formatter, " undecoded {oldest_undecoded} unseen {oldest_unseen} known {known_end}")?;
        for interval in intervals {
            write!(formatter, " [{}, {}) misses {}", interval.first, interval.end, interval.missing)?;
        }
        write!(formatter, " reported {reported_end}")
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::id::PathId;
    use crate::wire::{AckRanges, EcnCounts, MissingInterval};

    #[test]
    fn an_acknowledgement_is_one_line() {
        let ack = PathAck {
            path: PathId(1),
            ranges: AckRanges::from_descending([(8, 9), (3, 3)]).expect("two ranges"),
            delay: Duration::from_micros(25),
            ecn: Some(EcnCounts { ect0: 1, ect1: 0, ce: 2 }),
        };
        assert_eq!(Frame::PathAck(ack).to_string(), "PATH_ACK path 1 9..8 3 delay 25 us ecn 1 0 2");
    }

    #[test]
    fn a_report_is_one_line() {
        let report = DecoderReport {
            number: 12,
            oldest_undecoded: 4,
            oldest_unseen: 5,
            known_end: 9,
            intervals: vec![MissingInterval { first: 4, end: 6, missing: 1 }],
            reported_end: 9,
        };
        assert_eq!(
            Frame::DecoderReport(ContextId::Streams, report).to_string(),
            "DECODER_REPORT 12 undecoded 4 unseen 5 known 9 [4, 6) misses 1 reported 9"
        );
    }

    #[test]
    fn a_close_cannot_forge_a_line() {
        let close = Frame::Close { by_application: true, code: 7, reason: "bye\nPING" };
        assert_eq!(close.to_string(), r#"CLOSE by the application code 7 "bye\nPING""#);
    }

    #[test]
    fn a_combination_shows_its_range_and_not_its_bytes() {
        let coded = Frame::Combination(
            ContextId::Streams,
            Combination::Coded { first: 7, length: 3, density: 15, key: 2, floor: 5, payload: &[1, 2] },
        );
        assert_eq!(coded.to_string(), "CODED [7, 10) key 2 density 15 floor 5 (2 bytes)");
        let (first, length, density, key, floor) = (7, 3, 15, 2, 5);
        let segment = Frame::Combination(
            ContextId::Streams,
            Combination::Segment {
                first,
                length,
                density,
                key,
                floor,
                offset: 10,
                total: 90,
                piece: &[1, 2],
            },
        );
        assert_eq!(segment.to_string(), "SEGMENT [7, 10) key 2 floor 5 (bytes 10..12 of 90)");
    }
}
