//! Pages: the one unit of memory in which streams hold bytes, both those that wait to be sent and those that
//! wait to be read. A stream without bytes holds no page, so idle streams cost their state alone; a page given
//! back is kept for the next stream, so that a running connection does not ask the allocator for every packet.
//!
//! A page remembers one bit for each byte: is it here? Out-of-order ranges therefore need no list of chunks,
//! and no order or size in which a peer sends them costs more than an eighth on top of the pages touched.

/// Bytes in a page. Small enough that thousands of streams holding one byte each stay within the same order
/// as the connection's window (1024 streams: 2.3 MiB), large enough that a symbol touches two pages at most.
pub(super) const PAGE_SIZE: usize = 2048;

/// Pages kept for reuse. A symbol touches two, its reader returns them: a few are enough to keep the
/// allocator out of the steady state, and an idle connection does not sit on more than 18 KiB.
const SPARE_PAGES: usize = 8;

const BITS: usize = u64::BITS as usize;

/// One page, owned by whoever holds this handle.
pub(super) struct Page(Box<Contents>);

struct Contents {
    /// Bit `i % 64` of word `i / 64` says whether byte `i` is here.
    present: [u64; PAGE_SIZE / BITS],
    bytes: [u8; PAGE_SIZE],
}

impl Page {
    fn new() -> Self {
        Self(Box::new(Contents { present: [0; PAGE_SIZE / BITS], bytes: [0; PAGE_SIZE] }))
    }

    /// Stores at `start` those bytes of `data` that are not here yet (the first to arrive wins) and returns
    /// how many were new. `start + data.len()` is at most [`PAGE_SIZE`].
    pub(super) fn insert(&mut self, start: usize, data: &[u8]) -> usize {
        let Contents { present, bytes } = &mut *self.0;
        let (mut at, mut rest, mut new) = (start, data, 0);
        while !rest.is_empty() {
            let (word, bit) = (at / BITS, at % BITS);
            let (piece, behind) = rest.split_at(rest.len().min(BITS - bit));
            let mask = (u64::MAX >> (BITS - piece.len())) << bit;
            let missing = mask & !present[word];
            let target = &mut bytes[at..at + piece.len()];
            if missing == mask {
                target.copy_from_slice(piece);
            } else {
                for (index, byte) in
                    piece.iter().enumerate().filter(|(index, _)| missing >> (bit + index) & 1 == 1)
                {
                    target[index] = *byte;
                }
            }
            present[word] |= mask;
            new += missing.count_ones() as usize;
            at += piece.len();
            rest = behind;
        }
        new
    }

    /// How many bytes are here without a gap from `start` on. `start` is below [`PAGE_SIZE`].
    pub(super) fn run_from(&self, start: usize) -> usize {
        let mut at = start;
        while at < PAGE_SIZE {
            let bit = at % BITS;
            let run = (!(self.0.present[at / BITS] >> bit)).trailing_zeros() as usize;
            at += run.min(BITS - bit);
            if run < BITS - bit {
                break;
            }
        }
        at - start
    }

    /// The page's bytes, here or not.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The same to write into, for those that fill a page from its front and need no bits.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0.bytes
    }
}

/// Where pages come from and go back to: one for all the streams of a connection.
#[derive(Default)]
pub struct PagePool {
    spare: Vec<Page>,
    /// Where the bytes of one frame are joined when they come from several pages.
    scratch: Vec<u8>,
}

impl PagePool {
    /// An empty page.
    pub(super) fn take(&mut self) -> Page {
        self.spare.pop().map_or_else(Page::new, |mut page| {
            page.0.present.fill(0);
            page
        })
    }

    /// Takes a page back.
    pub(super) fn put(&mut self, page: Page) {
        if self.spare.len() < SPARE_PAGES {
            self.spare.push(page);
        }
    }

    /// An empty buffer that keeps its memory from use to use, at most a symbol.
    pub(super) fn take_scratch(&mut self) -> Vec<u8> {
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        scratch
    }

    /// Takes the buffer back and shows what is in it.
    pub(super) fn put_scratch(&mut self, scratch: Vec<u8>) -> &[u8] {
        self.scratch = scratch;
        &self.scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_to_arrive_win() {
        let mut page = Page::new();
        assert_eq!(page.insert(62, b"bbbb"), 4);
        assert_eq!(page.insert(60, b"aaaaaaaa"), 4);
        assert_eq!(&page.bytes()[60..68], b"aabbbbaa");
    }

    #[test]
    fn a_run_ends_at_the_first_gap_or_at_the_end_of_the_page() {
        let mut page = Page::new();
        assert_eq!(page.run_from(0), 0);
        page.insert(0, &[1; 200]);
        page.insert(201, &[1; PAGE_SIZE - 201]);
        assert_eq!(page.run_from(0), 200);
        assert_eq!(page.run_from(63), 137);
        assert_eq!(page.run_from(200), 0);
        assert_eq!(page.run_from(201), PAGE_SIZE - 201);
        assert_eq!(page.run_from(PAGE_SIZE - 1), 1);
    }

    #[test]
    fn a_page_from_the_pool_is_empty_and_the_pool_is_bounded() {
        let mut pool = PagePool::default();
        for _ in 0..2 * SPARE_PAGES {
            let mut page = Page::new();
            page.insert(0, &[7; PAGE_SIZE]);
            pool.put(page);
        }
        assert_eq!(pool.spare.len(), SPARE_PAGES);
        assert_eq!(pool.take().run_from(0), 0);
    }
}
