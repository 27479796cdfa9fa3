//! The assembler of a stream, checked against a plain array.

use ctcp_proto::fuzzing::{Assembler, PagePool};

/// Offsets are below this.
const SIZE: usize = 20_000;

pub fn run(data: &[u8]) {
    let contents: Vec<u8> = (0..SIZE).map(|index| (index * 7 + (index >> 8)) as u8).collect();
    let mut pool = PagePool::default();
    let mut assembler = Assembler::default();
    let mut is_here = vec![false; SIZE];
    let mut read = 0;
    for operation in data.chunks_exact(4) {
        let place = usize::from(u16::from_le_bytes([operation[0], operation[1]])) % SIZE;
        let length = usize::from(u16::from_le_bytes([operation[2], operation[3]])) % 5_000;
        if operation[3] & 0x80 == 0 {
            let end = (place + length).min(SIZE);
            assembler.insert(&mut pool, place as u64, &contents[place..end]);
            is_here[place..end].fill(true);
        } else {
            let mut out = vec![0; length];
            let count = assembler.read(&mut pool, &mut out);
            assert_eq!(out[..count], contents[read..read + count]);
            read += count;
            assert!(count == length || is_here.get(read) != Some(&true), "available bytes are not returned");
        }
        let ready = is_here[read..].iter().take_while(|here| **here).count();
        assert_eq!(assembler.readable(), ready);
        assert_eq!(assembler.ready(), (read + ready) as u64);
        assert_eq!(assembler.buffered(), is_here[read..].iter().filter(|here| **here).count());
    }
    assembler.discard(&mut pool);
    assert_eq!((assembler.buffered(), assembler.pages()), (0, 0));
}
