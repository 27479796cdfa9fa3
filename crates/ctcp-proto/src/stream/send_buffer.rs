//! Bytes that an application wrote and that are not in a symbol yet: a queue of pages.
//!
//! A byte leaves the queue when it is packed; from then on the coding window keeps its symbol.

use std::collections::VecDeque;

use super::page::{PAGE_SIZE, Page, PagePool};

/// A queue of bytes.
#[derive(Default)]
pub(crate) struct SendBuffer {
    pages: VecDeque<Page>,
    /// Bytes of the first page that have been removed.
    head: u32,
    length: u32,
}

impl SendBuffer {
    /// The number of bytes in the queue.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether the queue is empty.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends as much of `data` as keeps the queue within `limit` bytes. Returns how much was appended.
    pub(crate) fn write(&mut self, pool: &mut PagePool, data: &[u8], limit: usize) -> usize {
        let accepted = data.len().min(limit.saturating_sub(self.len()));
        let mut rest = &data[..accepted];
        while !rest.is_empty() {
            let start = (self.head as usize + self.len()) % PAGE_SIZE;
            if start == 0 {
                self.pages.push_back(pool.take());
            }
            let Some(page) = self.pages.back_mut() else { break };
            let (piece, behind) = rest.split_at(rest.len().min(PAGE_SIZE - start));
            page.bytes_mut()[start..start + piece.len()].copy_from_slice(piece);
            self.length += piece.len() as u32;
            rest = behind;
        }
        accepted
    }

    /// Removes and returns the first `count` bytes, at most [`Self::len`]. The result borrows a buffer of the pool.
    pub(crate) fn take<'a>(&mut self, pool: &'a mut PagePool, count: usize) -> &'a [u8] {
        let mut left = count.min(self.len());
        let mut joined = pool.take_scratch();
        while left > 0 {
            let Some(page) = self.pages.front() else { break };
            let start = self.head as usize;
            let piece = &page.bytes()[start..PAGE_SIZE.min(start + left)];
            joined.extend_from_slice(piece);
            left -= piece.len();
            self.length -= piece.len() as u32;
            self.head += piece.len() as u32;
            if self.head as usize == PAGE_SIZE {
                self.head = 0;
                self.pages.pop_front().into_iter().for_each(|page| pool.put(page));
            }
        }
        if self.is_empty() {
            self.clear(pool);
        }
        pool.put_scratch(joined)
    }

    /// Discards all bytes and returns all pages to the pool.
    pub(crate) fn clear(&mut self, pool: &mut PagePool) {
        self.pages.drain(..).for_each(|page| pool.put(page));
        if self.pages.capacity() > 8 {
            self.pages = VecDeque::new();
        }
        (self.head, self.length) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_they_came() {
        let (mut pool, mut buffer, mut out) = (PagePool::default(), SendBuffer::default(), Vec::new());
        let bytes: Vec<u8> = (0..20_000_u32).map(|byte| (byte % 251) as u8).collect();
        let mut written = 0;
        for step in 1..400 {
            written += buffer.write(&mut pool, &bytes[written..(written + step).min(bytes.len())], 3000);
            out.extend_from_slice(buffer.take(&mut pool, step / 2 + 1));
        }
        out.extend_from_slice(buffer.take(&mut pool, usize::MAX));
        assert_eq!(out, bytes[..written]);
        assert!(written > 10_000);
    }

    #[test]
    fn a_full_buffer_accepts_nothing_and_an_empty_one_holds_no_page() {
        let (mut pool, mut buffer) = (PagePool::default(), SendBuffer::default());
        assert_eq!(buffer.write(&mut pool, &[1; 5000], 4500), 4500);
        assert_eq!(buffer.write(&mut pool, &[1; 5000], 4500), 0);
        assert_eq!(buffer.write(&mut pool, &[1; 5000], 100), 0);
        assert_eq!(buffer.take(&mut pool, 4500), [1; 4500]);
        assert!(buffer.is_empty() && buffer.pages.is_empty());
    }
}
