//! Reassembly of the byte ranges of one stream, which arrive in any order, into reads in order.
//!
//! ```text
//!  offset:  0 ........ read ........ ready ....................... credit
//!           given to   |  in order,  |  gaps and islands         |
//!           the reader |  unread     |  (bits of the pages)      |  refused by flow control
//!  pages:          [  page 0  ][  page 1  ][ none ][  page 3  ]
//! ```
//!
//! Each byte is read exactly once. Duplicate and overlapping ranges are tolerated; the first to arrive wins.
//! There is no list of chunks that a peer could blow up with one-byte ranges: a bit per byte costs an eighth,
//! whatever the ranges. Credit is charged by the highest offset, so the pages of a stream never exceed its
//! credit by more than the page at either end.

use std::collections::VecDeque;

use super::page::{PAGE_SIZE, Page, PagePool};

/// Slots for pages that a stream may keep while it holds no bytes: 8 pointers.
const IDLE_SLOTS: usize = 8;

/// The bytes of one stream between arrival and reading.
#[derive(Default)]
pub struct Assembler {
    /// Slot `i` is the page of offsets from `(read / PAGE_SIZE + i) * PAGE_SIZE`; none while nothing arrived.
    pages: VecDeque<Option<Page>>,
    /// The next offset to read.
    read: u64,
    /// The first offset at or behind `read` that is not here.
    ready: u64,
    /// Bytes here and not read.
    buffered: usize,
}

impl Assembler {
    /// Stores `data` at `offset`. The caller has checked that its end lies within the credit of the stream;
    /// that bounds the memory.
    pub fn insert(&mut self, pool: &mut PagePool, offset: u64, data: &[u8]) {
        let known = usize::try_from(self.ready.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(mut rest) = data.get(known..) else { return };
        let mut at = offset.max(self.ready);
        let first_page = self.read / PAGE_SIZE as u64;
        while !rest.is_empty() {
            let (slot, start) =
                ((at / PAGE_SIZE as u64 - first_page) as usize, (at % PAGE_SIZE as u64) as usize);
            let (piece, behind) = rest.split_at(rest.len().min(PAGE_SIZE - start));
            if slot >= self.pages.len() {
                self.pages.resize_with(slot + 1, || None);
            }
            let page = self.pages[slot].get_or_insert_with(|| pool.take());
            self.buffered += page.insert(start, piece);
            at += piece.len() as u64;
            rest = behind;
        }
        self.extend_ready();
    }

    /// Moves the front of what may be read over everything that is here without a gap.
    fn extend_ready(&mut self) {
        let first_page = self.read / PAGE_SIZE as u64;
        loop {
            let slot = (self.ready / PAGE_SIZE as u64 - first_page) as usize;
            let start = (self.ready % PAGE_SIZE as u64) as usize;
            let Some(Some(page)) = self.pages.get(slot) else { return };
            let run = page.run_from(start);
            self.ready += run as u64;
            if start + run < PAGE_SIZE {
                return;
            }
        }
    }

    /// Copies the next bytes in order into `out` and returns how many: 0 when the next one is not here.
    pub fn read(&mut self, pool: &mut PagePool, out: &mut [u8]) -> usize {
        let wanted = out.len().min(self.readable());
        let mut rest = &mut out[..wanted];
        while !rest.is_empty() {
            let start = (self.read % PAGE_SIZE as u64) as usize;
            let Some(Some(page)) = self.pages.front() else { break };
            let (piece, behind) = rest.split_at_mut((PAGE_SIZE - start).min(rest.len()));
            piece.copy_from_slice(&page.bytes()[start..start + piece.len()]);
            self.read += piece.len() as u64;
            self.buffered -= piece.len();
            if start + piece.len() == PAGE_SIZE {
                self.pages.pop_front().flatten().into_iter().for_each(|page| pool.put(page));
            }
            rest = behind;
        }
        if self.buffered == 0 {
            self.release(pool);
        }
        wanted
    }

    /// Forgets every byte that was not read.
    pub fn discard(&mut self, pool: &mut PagePool) {
        self.buffered = 0;
        self.read = self.ready;
        self.release(pool);
    }

    fn release(&mut self, pool: &mut PagePool) {
        self.pages.drain(..).flatten().for_each(|page| pool.put(page));
        if self.pages.capacity() > IDLE_SLOTS {
            self.pages = VecDeque::new();
        }
    }

    /// Bytes that a read would return now.
    #[must_use]
    pub fn readable(&self) -> usize {
        (self.ready - self.read) as usize
    }

    /// The first offset that is not here: everything below it was read or may be.
    #[must_use]
    pub fn ready(&self) -> u64 {
        self.ready
    }

    /// Bytes here and not read, with or without gaps before them.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffered
    }

    /// Pages held.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages.iter().flatten().count()
    }
}
