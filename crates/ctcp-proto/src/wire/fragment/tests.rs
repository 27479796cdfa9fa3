use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;

fn all(symbol: &[u8]) -> Result<Vec<Fragment<'_>>, Malformed> {
    fragments_in_symbol(symbol)?.collect()
}

#[test]
fn a_whole_message_costs_three_bytes_and_the_content_length_two() {
    let mut builder = FragmentBuilder::reusing(vec![9; 7], 100);
    assert!(builder.is_empty());
    assert_eq!(builder.room_for(5, 4, 0), Some(4));
    builder.push(Fragment { message: 5, total: 4, offset: 0, data: b"ping" });
    let symbol = builder.finish();
    assert_eq!(symbol, [0, 7, 0x10, 5, 4, b'p', b'i', b'n', b'g']);
    assert_eq!(all(&symbol), Ok(vec![Fragment { message: 5, total: 4, offset: 0, data: b"ping" }]));
}

#[test]
fn a_message_that_does_not_fit_is_cut() {
    let message = [7; 300];
    let mut builder = FragmentBuilder::reusing(Vec::new(), 256);
    let count = builder.room_for(0, message.len(), 0).expect("there is room");
    assert_eq!(count, 256 - 2 - 7);
    builder.push(Fragment { message: 0, total: 300, offset: 0, data: &message[..count] });
    assert_eq!(builder.room_for(1, 10, 0), None);
    let first = builder.finish();
    let mut builder = FragmentBuilder::reusing(Vec::new(), 256);
    assert_eq!(builder.room_for(0, 300, count), Some(300 - count));
    builder.push(Fragment { message: 0, total: 300, offset: count, data: &message[count..] });
    // An empty message has only a header.
    assert_eq!(builder.room_for(1, 0, 0), Some(0));
    builder.push(Fragment { message: 1, total: 0, offset: 0, data: &[] });
    let second = builder.finish();
    let (first, second) = (all(&first).expect("valid"), all(&second).expect("valid"));
    assert_eq!(first[0].data.len() + second[0].data.len(), 300);
    assert_eq!((second[0].offset, second[1].is_whole(), second[1].total), (count, true, 0));
}

#[test]
fn malformed_fragments_are_refused() {
    let cases: [&[u8]; 7] = [
        &[0, 9, 0x10, 0, 1, 7],
        &[0, 1, 0x10],
        &[0, 3, 0x08, 0, 0],
        &[0, 3, 0x12, 0, 0],
        // Part of 2 bytes from 1, two bytes long.
        &[0, 7, 0x11, 0, 2, 1, 2, 7, 7],
        // A part of 65,536 bytes.
        &[0, 8, 0x11, 0, 0x80, 1, 0, 0, 0, 0],
        &[0, 3, 0x10, 0, 0, 1],
    ];
    for case in cases {
        assert!(all(case).is_err(), "{case:?}");
    }
}

proptest! {
    #[test]
    fn noise_never_panics_and_keeps_the_invariant(bytes in vec(any::<u8>(), 0..80)) {
        let length = bytes.len() as u16;
        let symbol = [&length.to_be_bytes()[..], &bytes].concat();
        for fragment in fragments_in_symbol(&symbol).expect("the length is right").flatten() {
            prop_assert!(fragment.offset + fragment.data.len() <= fragment.total);
            prop_assert!(fragment.total <= MESSAGE_SIZE_MAX);
        }
    }

    #[test]
    fn what_was_pushed_is_parsed(
        messages in vec((any::<u32>(), 0usize..2000), 1..20), capacity in 64usize..1500, skip in 0usize..100,
    ) {
        let contents = vec![3; 2000];
        let mut builder = FragmentBuilder::reusing(Vec::new(), capacity);
        let mut pushed = Vec::new();
        for (message, total) in messages {
            let (message, offset) = (u64::from(message), skip.min(total));
            let Some(count) = builder.room_for(message, total, offset) else { break };
            let fragment = Fragment { message, total, offset, data: &contents[offset..offset + count] };
            builder.push(fragment);
            pushed.push(fragment);
        }
        let symbol = builder.finish();
        prop_assert!(symbol.len() <= capacity);
        prop_assert_eq!(all(&symbol), Ok(pushed));
    }
}
