use proptest::prelude::*;

use super::*;

fn frame(id: u64, offset: u64, data: &[u8], fin: bool) -> StreamFrame<'_> {
    StreamFrame { id: StreamId(id), offset, data, fin }
}

fn read(symbol: &[u8]) -> Result<Vec<StreamFrame<'_>>, Malformed> {
    frames_in_symbol(symbol)?.collect()
}

#[test]
fn the_last_frame_has_no_length_when_the_symbol_is_full() {
    let mut builder = SymbolBuilder::new(16);
    builder.push(frame(4, 0, b"abc", false));
    // Type, stream, length and three bytes.
    assert_eq!(builder.remaining(), 16 - 2 - 6);
    assert_eq!(builder.max_data_length(StreamId(8), 70), Some(8 - 4));
    builder.push(frame(8, 70, b"wxyz", true));
    assert_eq!((builder.remaining(), builder.max_data_length(StreamId(0), 0)), (0, None));
    let symbol = builder.finish();
    assert_eq!(symbol, [0, 14, 0x0a, 4, 3, b'a', b'b', b'c', 0x0d, 8, 0x40, 70, b'w', b'x', b'y', b'z']);
    assert_eq!(read(&symbol), Ok(vec![frame(4, 0, b"abc", false), frame(8, 70, b"wxyz", true)]));
}

#[test]
fn a_frame_that_leaves_no_room_for_its_length_ends_the_content() {
    let mut exact = SymbolBuilder::new(2 + 2 + 2 + 64);
    exact.push(frame(0, 0, &[7; 64], false));
    assert_eq!(exact.finish()[2..6], [0x0a, 0, 0x40, 64]);
    // Room for 64 bytes and one more; their length takes two bytes.
    let mut builder = SymbolBuilder::new(2 + 2 + 64 + 1);
    builder.push(frame(0, 0, &[7; 64], false));
    assert_eq!(builder.remaining(), 0);
    let symbol = builder.finish();
    assert_eq!(symbol.len(), 2 + 2 + 64);
    assert_eq!(read(&symbol), Ok(vec![frame(0, 0, &[7; 64], false)]));
}

#[test]
fn an_empty_symbol_has_no_frames() {
    let builder = SymbolBuilder::new(2);
    assert!(builder.is_empty());
    assert_eq!(builder.max_data_length(StreamId(0), 0), None);
    let symbol = builder.finish();
    assert_eq!(symbol, [0, 0]);
    assert_eq!(read(&symbol), Ok(Vec::new()));
}

#[test]
fn restored_zeros_after_the_content_are_not_frames() {
    let mut builder = SymbolBuilder::new(100);
    builder.push(frame(1, 5, b"data", true));
    let mut symbol = builder.finish();
    symbol.resize(100, 0);
    assert_eq!(read(&symbol), Ok(vec![frame(1, 5, b"data", true)]));
    symbol[99] = 1;
    assert!(read(&symbol).is_err(), "a byte after the content");
}

#[test]
fn anything_but_a_stream_frame_is_an_error() {
    for first in 0..=u8::MAX {
        // Complete with and without an offset, with and without a length.
        let outcome = read(&[0, 5, first, 0, 2, 1, 9]).is_ok();
        assert_eq!(outcome, (0x08..=0x0f).contains(&first), "{first:#04x}");
    }
    assert!(read(&[]).is_err(), "no length");
    assert!(read(&[0]).is_err(), "half a length");
    assert!(read(&[0, 3, 0x08, 1]).is_err(), "content that is not there");
    assert!(read(&[0, 4, 0x0a, 1, 2, 0]).is_err(), "data that is not there");
}

#[test]
fn no_stream_byte_lies_beyond_the_last_offset() {
    let symbol = |offset: u64, data: &[u8]| {
        let mut out = vec![0, 0, 0x0c, 0];
        write_varint(&mut out, offset);
        out.extend_from_slice(data);
        out[1] = out.len() as u8 - 2;
        out
    };
    assert_eq!(read(&symbol(VARINT_MAX - 2, b"ab")), Ok(vec![frame(0, VARINT_MAX - 2, b"ab", false)]));
    assert!(read(&symbol(VARINT_MAX - 1, b"ab")).is_err());
}

/// Streams, offsets, the fraction of the room to use, and whether the stream ends.
fn any_pieces() -> impl Strategy<Value = Vec<(u64, u64, f64, bool)>> {
    let number = || (0u32..40, any::<u64>()).prop_map(|(bits, noise)| noise & ((1 << bits) - 1));
    let share = prop_oneof![Just(1.0), 0.0..1.0f64];
    prop::collection::vec((number(), number(), share, any::<bool>()), 0..12)
}

proptest! {
    #[test]
    fn pushed_frames_are_parsed_in_order(capacity in 2usize..3_000, pieces in any_pieces()) {
        let data = [0xa5; 3_000];
        let mut builder = SymbolBuilder::new(capacity);
        let mut pushed = Vec::new();
        for (id, offset, share, fin) in pieces {
            let Some(room) = builder.max_data_length(StreamId(id), offset) else { continue };
            let frame = frame(id, offset, &data[..(room as f64 * share) as usize], fin);
            builder.push(frame);
            pushed.push(frame);
        }
        let symbol = builder.finish();
        prop_assert!(symbol.len() <= capacity);
        prop_assert_eq!(read(&symbol), Ok(pushed));
        for length in 0..symbol.len() {
            prop_assert!(read(&symbol[..length]).is_err());
        }
    }

    #[test]
    fn taking_all_the_room_fills_the_symbol(capacity in 40usize..20_000, id in 0u64..100_000, offset in 0u64..1 << 40) {
        let data = vec![1; 20_000];
        let mut builder = SymbolBuilder::new(capacity);
        let room = builder.max_data_length(StreamId(id), offset).expect("40 bytes hold every header");
        builder.push(frame(id, offset, &data[..room], false));
        prop_assert_eq!(builder.finish().len(), capacity);
    }
}
