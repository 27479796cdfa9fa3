//! Reassembly of the byte ranges of one stream, which arrive in any order, into ordered reads.
//!
//! ```text
//!  offset:  0 ........ read ........ ready ....................... credit
//!           given to   |  in order,  |  gaps and islands         |
//!           the reader |  unread     |  (bits of the pages)      |  refused by flow control
//!  pages:          [  page 0  ][  page 1  ][ none ][  page 3  ]
//! ```
//!
//! Each byte is read exactly once. Duplicate and overlapping ranges are tolerated; the first to arrive wins. One bit per byte records what
//! has arrived, which adds an eighth to the memory. A list of chunks could be inflated by a peer with one-byte ranges. Credit is charged by
//! the highest offset, so the pages of a stream exceed its credit by at most one page at either end.

use std::collections::VecDeque;

use super::page::{PAGE_SIZE, Page, PagePool};

/// Capacity for pages that an empty stream may keep: 8 pointers.
const IDLE_SLOTS: usize = 8;

/// The bytes of one stream between arrival and reading.
#[derive(Default)]
pub struct Assembler {
    /// Slot `i` is the page at offset `(read / PAGE_SIZE + i) * PAGE_SIZE`, or `None` if nothing of it has arrived.
    pages: VecDeque<Option<Page>>,
    /// The next offset to read.
    read: u64,
    /// The first missing offset at or after `read`.
    ready: u64,
    /// Bytes received and not read.
    buffered: usize,
}

impl Assembler {
    /// Stores `data` at `offset`. The caller has checked that the data ends within the credit of the stream, which bounds the memory.
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

    /// Advances `ready` to the next gap.
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

    /// Copies the next bytes in order into `out`. Returns how many; 0 if the next byte is missing.
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

    /// Discards all bytes that were not read.
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

    /// The number of bytes that can be read now.
    #[must_use]
    pub fn readable(&self) -> usize {
        (self.ready - self.read) as usize
    }

    /// The first missing offset. Everything below it was read or can be read.
    #[must_use]
    pub fn ready(&self) -> u64 {
        self.ready
    }

    /// The number of bytes received and not read, including those after gaps.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffered
    }

    /// The number of pages in use.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages.iter().flatten().count()
    }
}
