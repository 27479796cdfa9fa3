//! Counts recent events of very many networks in constant memory: a count-min sketch (Cormode and Muthukrishnan, 2005) with conservative
//! update, over the current and the previous time window.
//!
//! ```text
//!  HMAC(secret, network) -> one column in each row;  count = the smallest of its cells
//!
//!  row 0   [ ][ ][3][ ][ ]       Collisions only increase a count. The secret prevents an attacker from
//!  row 1   [7][ ][ ][ ][ ]       choosing networks that collide with another.
//!  row 2   [ ][ ][ ][ ][3]
//! ```

use core::fmt;
use core::time::Duration;

use ctcp_base::Instant;
use ring::hmac;

use super::networks::Network;

/// The length of a window. Counts are dropped after two windows.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// With 10,000 networks at once in 16384 columns, one in 20 new networks has a collision in every row.
const ROWS: usize = 4;
const COLUMNS: usize = 1 << 14;

/// The cells of a network: one column per row.
pub(super) type Cells = [usize; ROWS];

/// The counts of one window: 128 kB.
type Counts = [Vec<u16>; ROWS];

/// The sketch described in the module documentation.
pub(super) struct Sketch {
    key: hmac::Key,
    began: Instant,
    current: Counts,
    previous: Counts,
}

impl Sketch {
    pub(super) fn new(secret: [u8; 32], now: Instant) -> Self {
        let empty = || core::array::from_fn(|_| vec![0; COLUMNS]);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            began: now,
            current: empty(),
            previous: empty(),
        }
    }

    /// The cells in which a network is counted.
    pub(super) fn cells(&self, network: Network) -> Cells {
        let tag = hmac::sign(&self.key, &network.to_bytes());
        let (words, _) = tag.as_ref().as_chunks::<8>();
        core::array::from_fn(|row| {
            let word = words.get(row).copied().unwrap_or_default();
            (u64::from_be_bytes(word) % COLUMNS as u64) as usize
        })
    }

    /// An estimate of the count within the last [`WINDOW`], which is never too small.
    pub(super) fn count(&mut self, now: Instant, cells: &Cells) -> u32 {
        self.turn(now);
        let age = (now - self.began).min(WINDOW);
        let rest = (WINDOW - age).as_millis() as u32;
        let counts = cells.iter().enumerate().map(|(row, &column)| {
            let before = u32::from(self.previous[row][column]) * rest;
            u32::from(self.current[row][column]) + before.div_ceil(WINDOW.as_millis() as u32)
        });
        counts.min().unwrap_or(0)
    }

    /// Increments the count.
    pub(super) fn add(&mut self, now: Instant, cells: &Cells) {
        self.turn(now);
        let counts = cells.iter().enumerate().map(|(row, &column)| self.current[row][column]);
        let more = counts.min().unwrap_or(0).saturating_add(1);
        for (row, &column) in self.current.iter_mut().zip(cells) {
            row[column] = row[column].max(more);
        }
    }

    /// Begins the next window if the current one is over.
    fn turn(&mut self, now: Instant) {
        if now - self.began < WINDOW {
            return;
        }
        core::mem::swap(&mut self.current, &mut self.previous);
        self.current.iter_mut().for_each(|row| row.fill(0));
        if now - self.began >= 2 * WINDOW {
            self.previous.iter_mut().for_each(|row| row.fill(0));
            self.began = now;
        } else {
            self.began += WINDOW;
        }
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sketch(..)")
    }
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;

    const NOW: Instant = Instant::from_secs(100);

    fn host(index: u32) -> Network {
        Network::host_of(IpAddr::from(index.to_be_bytes()))
    }

    #[test]
    fn a_count_is_never_too_small_and_seldom_too_large() {
        let mut sketch = Sketch::new([1; 32], NOW);
        for index in 0..2_000 {
            let cells = sketch.cells(host(index));
            (0..=index % 5).for_each(|_| sketch.add(NOW, &cells));
        }
        let mut wrong = 0;
        for index in 0..2_000 {
            let cells = sketch.cells(host(index));
            let count = sketch.count(NOW, &cells);
            assert!(count > index % 5);
            wrong += u32::from(count > index % 5 + 1);
        }
        assert!(wrong < 20, "{wrong} of 2000");
        let newcomer = sketch.cells(host(77_777));
        assert_eq!(sketch.count(NOW, &newcomer), 0);
    }

    #[test]
    fn counts_fade_over_the_next_window() {
        let mut sketch = Sketch::new([1; 32], NOW);
        let cells = sketch.cells(host(1));
        (0..100).for_each(|_| sketch.add(NOW, &cells));
        let counts: Vec<u32> = [0, 9, 10, 15, 19, 20, 1_000]
            .map(|seconds| sketch.count(NOW + Duration::from_secs(seconds), &cells))
            .to_vec();
        assert_eq!(counts, [100, 100, 100, 50, 10, 0, 0]);
    }
}
