use proptest::prelude::*;

use super::*;
use crate::wire::frame::tests::any_report;
use crate::wire::{Frame, frames};

fn read(bytes: &[u8]) -> Result<DecoderReport, Malformed> {
    match frames(bytes).next() {
        Some(Ok(Frame::DecoderReport(ContextId::Streams, report))) => Ok(report),
        Some(Err(malformed)) => Err(malformed),
        other => panic!("no report: {other:?}"),
    }
}

fn written(report: &DecoderReport, max_length: usize) -> Option<Vec<u8>> {
    let mut out = vec![0xee];
    let fits = report.write_within(ContextId::Streams, &mut out, max_length);
    assert_eq!(fits, out.len() > 1, "something is written exactly if it fits");
    fits.then(|| out.split_off(1))
}

/// The bytes of a report with these numbers.
fn from_numbers(numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![kind::DECODER_REPORT];
    for &number in numbers {
        write_varint(&mut out, number);
    }
    out
}

#[test]
fn intervals_beyond_the_limit_lower_the_reported_end() {
    let report = DecoderReport {
        intervals: (0..40)
            .map(|index| MissingInterval { first: 3 * index, end: 3 * index + 2, missing: 1 })
            .collect(),
        known_end: 150,
        reported_end: 140,
        ..DecoderReport::default()
    };
    let read = read(&written(&report, usize::MAX).expect("no limit")).expect("what we wrote");
    assert_eq!(read.intervals, report.intervals[..REPORT_INTERVALS_MAX]);
    assert_eq!((read.reported_end, read.known_end), (3 * REPORT_INTERVALS_MAX as u64, 150));
}

proptest! {
    #[test]
    fn a_truncated_report_keeps_the_oldest_intervals(report in any_report(), cut in 0.0..1.0f64) {
        let whole = report.encoded_length(ContextId::Streams);
        let budget = (whole as f64 * cut) as usize;
        let end_of = |count: usize| report.intervals.get(count).map_or(report.reported_end, |dropped| dropped.first);
        let smallest =
            DecoderReport { intervals: Vec::new(), reported_end: end_of(0), ..report.clone() }.encoded_length(ContextId::Streams);
        let out = written(&report, budget);
        prop_assert_eq!(out.is_some(), budget >= smallest, "budget {}, smallest {}", budget, smallest);
        let Some(out) = out else { return Ok(()) };
        prop_assert!(out.len() <= budget);
        let cut = read(&out).expect("what we wrote");
        let kept = cut.intervals.len();
        prop_assert_eq!(&cut.intervals[..], &report.intervals[..kept]);
        prop_assert_eq!(cut.reported_end, end_of(kept));
        let rest =
            DecoderReport { intervals: report.intervals.clone(), reported_end: report.reported_end, ..cut };
        prop_assert_eq!(rest, report);
    }
}

#[test]
fn hostile_numbers_are_errors() {
    const MAX: u64 = VARINT_MAX;
    let cases = [
        ("unseen beyond the known end", vec![1, 0, 1, 0, 0, 0]),
        ("unseen beyond the last symbol", vec![1, MAX, 1, 1, 0, 0]),
        ("known end beyond the last symbol", vec![1, MAX, 0, 1, 0, 0]),
        ("reported end beyond the known end", vec![1, 0, 0, 5, 0, 6]),
        ("33 intervals", [&[1, 0, 0, 99, 33][..], &[0, 1, 1].repeat(33), &[99]].concat()),
        ("interval of no symbol", vec![1, 0, 0, 5, 1, 0, 0, 0, 5]),
        ("interval that misses more than it holds", vec![1, 0, 0, 5, 1, 0, 2, 3, 5]),
        ("interval beyond the reported end", vec![1, 0, 0, 5, 1, 0, 4, 1, 3]),
        ("interval beyond the last symbol", vec![1, MAX, 0, 0, 1, MAX, MAX, 1, 0]),
    ];
    for (what, numbers) in cases {
        assert!(read(&from_numbers(&numbers)).is_err(), "{what}");
    }
}

#[test]
fn the_largest_values_are_parsed() {
    const MAX: u64 = VARINT_MAX;
    let report = read(&from_numbers(&[MAX, 0, MAX, MAX, 1, 0, MAX, MAX, MAX])).expect("all within bounds");
    assert_eq!(report.intervals, [MissingInterval { first: 0, end: MAX, missing: MAX }]);
    assert_eq!((report.number, report.known_end), (MAX, MAX));
}
