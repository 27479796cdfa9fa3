//! The trace of a run: a hash over every datagram and, optionally, a human-readable log.

use ctcp_base::Instant;

/// The point at which a datagram was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// Offered to a link by its sender.
    Sent,
    /// Delivered to its receiver by the link.
    Delivered,
}

/// Hashes all observed datagrams. Two runs with equal hashes sent and delivered the same bytes at the same times.
#[derive(Clone, Debug)]
pub struct Recorder {
    hash: u64,
    /// Whether datagrams are hashed.
    is_hashing: bool,
    datagrams: u64,
    bytes: u64,
    log: Option<String>,
}

/// 2^64 divided by the golden ratio: odd, with about as many ones as zeros.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The maximum size of the log, so that an endless run does not exhaust the memory.
const LOG_BYTES_MAX: usize = 256 << 20;

impl Default for Recorder {
    fn default() -> Self {
        Self { hash: MULTIPLIER, is_hashing: true, datagrams: 0, bytes: 0, log: None }
    }
}

impl Recorder {
    /// Keeps a readable log from now on.
    pub fn keep_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// Sets whether datagrams are hashed or only counted. In large runs the hash takes a tenth of the time.
    pub fn set_hashing(&mut self, is_hashing: bool) {
        self.is_hashing = is_hashing;
    }

    /// Records that a datagram passed a tap at direction number `way` of a link, whose name is `link`.
    pub fn on_datagram(&mut self, now: Instant, (tap, way): (Tap, usize), link: &str, bytes: &[u8]) {
        if self.is_hashing {
            self.add(now.as_nanos());
            self.add(tap as u64 ^ (way as u64) << 1 ^ (bytes.len() as u64) << 32);
            self.add_bytes(bytes);
        }
        if tap == Tap::Sent {
            self.datagrams += 1;
            self.bytes += bytes.len() as u64;
        }
        self.note(now, || {
            let first = bytes.first().copied().unwrap_or_default();
            let form = if first & 0x80 == 0 { "short" } else { "long" };
            format!("{link} {} {} {form}", if tap == Tap::Sent { "->" } else { "=>" }, bytes.len())
        });
    }

    /// Adds a line to the log, if there is one.
    pub fn note(&mut self, now: Instant, line: impl FnOnce() -> String) {
        if let Some(log) = self.log.as_mut().filter(|log| log.len() < LOG_BYTES_MAX) {
            log.push_str(&format!("{:.6} {}\n", now.as_secs_f64(), line()));
        }
    }

    /// Returns the hash so far. It is meaningless if datagrams are not hashed.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of datagrams sent so far.
    #[must_use]
    pub fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// Returns the bytes of UDP payload sent so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the log, which is empty if none is kept.
    #[must_use]
    pub fn log(&self) -> &str {
        self.log.as_deref().unwrap_or_default()
    }

    /// Hashes four words at a time into separate lanes, so that no multiplication waits for the previous one.
    fn add_bytes(&mut self, bytes: &[u8]) {
        let mut lanes = [self.hash; 4];
        let mut blocks = bytes.chunks_exact(32);
        for block in &mut blocks {
            for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
                let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
                *lane = (*lane ^ word).wrapping_mul(MULTIPLIER).rotate_left(23);
            }
        }
        for lane in lanes {
            self.add(lane);
        }
        for &byte in blocks.remainder() {
            self.add(u64::from(byte));
        }
    }

    fn add(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(23);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_direction_and_every_byte_change_the_hash() {
        let hash = |nanos, tap, way, bytes: &[u8]| {
            let mut recorder = Recorder::default();
            recorder.on_datagram(Instant::from_nanos(nanos), (tap, way), "a", bytes);
            recorder.hash()
        };
        let bytes: Vec<u8> = (0..70).collect();
        let usual = hash(1, Tap::Sent, 0, &bytes);
        assert_eq!(usual, hash(1, Tap::Sent, 0, &bytes));
        assert_ne!(usual, hash(2, Tap::Sent, 0, &bytes));
        assert_ne!(usual, hash(1, Tap::Delivered, 0, &bytes));
        assert_ne!(usual, hash(1, Tap::Sent, 1, &bytes));
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 1;
            assert_ne!(usual, hash(1, Tap::Sent, 0, &other), "byte {place}");
        }
    }

    #[test]
    fn without_a_hash_datagrams_are_still_counted() {
        let mut recorder = Recorder::default();
        let before = recorder.hash();
        recorder.set_hashing(false);
        recorder.on_datagram(Instant::from_millis(1), (Tap::Sent, 0), "up", &[1, 2, 3]);
        assert_eq!((recorder.hash(), recorder.datagrams(), recorder.bytes()), (before, 1, 3));
    }

    #[test]
    fn a_log_is_kept_only_on_request() {
        let mut recorder = Recorder::default();
        recorder.on_datagram(Instant::from_millis(1), (Tap::Sent, 0), "up", &[0x80]);
        assert_eq!(recorder.log(), "");
        recorder.keep_log();
        recorder.on_datagram(Instant::from_millis(2), (Tap::Delivered, 0), "up", &[0x40]);
        assert_eq!(recorder.log(), "0.002000 up => 1 short\n");
        assert_eq!((recorder.datagrams(), recorder.bytes()), (1, 1));
    }
}
