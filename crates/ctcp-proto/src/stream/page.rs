//! Pages: the unit of memory for buffered stream bytes, both to be sent and to be read. A stream without bytes holds no page, so an idle
//! stream costs only its state. Returned pages are reused, so that a running connection does not allocate for every packet.
//!
//! A page has one bit per byte that records whether the byte has arrived. Out-of-order ranges therefore need no list of chunks. Whatever
//! the order and size of the ranges, the cost is the touched pages plus an eighth.

/// Bytes in a page. It is small enough that thousands of streams with one byte each need about as much memory as the connection's window
/// (1024 streams: 2.3 MiB). It is large enough that a symbol touches at most two pages.
pub(super) const PAGE_SIZE: usize = 2048;

/// Number of pages kept for reuse: what a read or a write of the application and a batch of datagrams move at a time, so that a running
/// transfer allocates none.
const SPARE_PAGES: usize = 128;

/// Number of pages that an idle connection keeps: 18 KiB.
const SPARE_PAGES_IDLE: usize = 8;

const BITS: usize = u64::BITS as usize;

/// A page of memory.
pub(super) struct Page(Box<Contents>);

struct Contents {
    /// Bit `i % 64` of word `i / 64` records whether byte `i` has arrived.
    present: [u64; PAGE_SIZE / BITS],
    bytes: [u8; PAGE_SIZE],
}

impl Page {
    fn new() -> Self {
        Self(Box::new(Contents { present: [0; PAGE_SIZE / BITS], bytes: [0; PAGE_SIZE] }))
    }

    /// Stores those bytes of `data` at `start` that have not arrived yet. Returns how many were new. `start + data.len()` is at most
    /// [`PAGE_SIZE`].
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

    /// The number of contiguous bytes that have arrived from `start` on. `start` is below [`PAGE_SIZE`].
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

    /// All bytes of the page, including those that have not arrived.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Mutable access to the bytes, for users that fill a page in order and do not need the bits.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0.bytes
    }
}

/// A pool of pages shared by all streams of a connection.
#[derive(Default)]
pub struct PagePool {
    spare: Vec<Page>,
    /// Buffer in which the bytes of one frame are joined if they come from several pages.
    scratch: Vec<u8>,
}

impl PagePool {
    /// Returns an empty page.
    pub(super) fn take(&mut self) -> Page {
        self.spare.pop().map_or_else(Page::new, |mut page| {
            page.0.present.fill(0);
            page
        })
    }

    /// Returns a page to the pool.
    pub(super) fn put(&mut self, page: Page) {
        if self.spare.len() < SPARE_PAGES {
            self.spare.push(page);
        }
    }

    /// Bytes of memory beyond that of an idle connection.
    pub(super) fn memory(&self) -> usize {
        self.spare.len().saturating_sub(SPARE_PAGES_IDLE) * size_of::<Contents>()
    }

    /// Frees most of the spare pages.
    pub(super) fn shrink(&mut self) {
        self.spare.truncate(SPARE_PAGES_IDLE);
        self.spare.shrink_to_fit();
    }

    /// Takes the scratch buffer, cleared. Its capacity is reused and grows to at most a symbol.
    pub(super) fn take_scratch(&mut self) -> Vec<u8> {
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        scratch
    }

    /// Puts the scratch buffer back and returns its contents.
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
        pool.shrink();
        assert_eq!(pool.spare.len(), SPARE_PAGES_IDLE);
    }
}
