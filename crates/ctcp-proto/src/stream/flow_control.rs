//! Flow control: how many bytes and streams either side may send or open, as absolute totals (RFC 9000 section 4).
//!
//! ```text
//!  read by the application      received (highest offset)       limit = what was announced
//!  ------------|------------------------|-------------------------------|
//!              |<---------------------- window ------------------------>|
//! ```
//!
//! A byte is charged when it enters a symbol and never again, so repairs need no credit. The receiver announces a new limit once at least
//! half a window was read since the last one. So credit costs few packets, and a reader that stops also stops the sender. Invariant:
//! `read <= received <= limit`, hence buffered data never exceeds the window.
//!
//! A window starts small and grows fourfold, up to a ceiling, when half of it is read: the first time at any speed, later within a few round
//! trips. Otherwise it would soon stop the sender. A sender in slow start doubles what it sends each round trip. What is read lags by one, and by two where packets are lost, so
//! doubling the window would not keep up. So the window suits a long fat path, and a reader that stalls early occupies little memory:
//! 1 MiB at a server, 4 MiB at a client, which shares its memory with no one.
//!
//! Readers that stop must not block others, so unread data must not use up the share of the others. The connection's window therefore also
//! doubles when half of it is unread. What a stream's window may grow to falls with the amount of unread data
//! ([`ReceiveCredit::share_for_stream`]).

use core::time::Duration;

use ctcp_base::Instant;

use crate::error::{TransportError, TransportErrorCode};

/// The largest limit: the largest varint.
pub(crate) const LIMIT_MAX: u64 = (1 << 62) - 1;

/// The largest number of streams of one initiator (RFC 9000 section 4.6), since ids are varints with two bits for the type.
pub(crate) const STREAMS_MAX: u64 = 1 << 60;

/// A window is too small if half of it is read within this many round trips. On lossy paths data becomes readable in bursts, a round trip
/// or two apart for each repair.
const FAST_ROUNDS: u32 = 6;

/// How much larger such a window becomes.
const GROWTH: u64 = 4;

/// The credit that the peer grants, of one stream or of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendCredit {
    limit: u64,
    used: u64,
}

impl SendCredit {
    /// Credit for the first `limit` bytes.
    #[must_use]
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit: limit.min(LIMIT_MAX), used: 0 }
    }

    /// Applies a limit from the peer. Limits never shrink; a smaller one arrived out of order.
    pub(crate) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit.min(LIMIT_MAX));
    }

    /// Bytes that may be sent now.
    #[must_use]
    pub(crate) fn available(&self) -> u64 {
        self.limit - self.used
    }

    /// Bytes sent so far.
    #[must_use]
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Charges `bytes` that the peer counts although they were not sent under this credit. If it is too small, all of it is used up.
    pub(crate) fn force(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes).min(LIMIT_MAX);
        self.limit = self.limit.max(self.used);
    }

    /// Charges `bytes`, which are at most [`Self::available`].
    pub(crate) fn charge(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available(), "bytes were packed beyond the credit");
        self.used = (self.used + bytes).min(self.limit);
    }
}

/// The inputs of a decision on announcing credit.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The current time.
    pub now: Instant,
    /// The smoothed round-trip time.
    pub rtt: Duration,
}

/// The credit granted to the peer, of one stream or of the connection (whose `received` is the sum over all streams).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveCredit {
    window: u64,
    limit: u64,
    received: u64,
    read: u64,
    /// When a limit was last announced; zero for never.
    announced: Instant,
}

impl ReceiveCredit {
    /// Grants `window` bytes more than were read.
    #[must_use]
    pub(crate) fn new(window: u64) -> Self {
        let window = window.min(LIMIT_MAX);
        Self { window, limit: window, received: 0, read: 0, announced: Instant::ZERO }
    }

    /// Charges `bytes` that arrived. Returns an error if the peer was not allowed to send them.
    pub(crate) fn charge(&mut self, bytes: u64) -> Result<(), TransportError> {
        let received = self.received.checked_add(bytes).filter(|&received| received <= self.limit);
        self.received = received.ok_or(TransportError::new(
            TransportErrorCode::FlowControl,
            "more bytes than the credit allows",
        ))?;
        Ok(())
    }

    /// Records that the application read `bytes`, or that they were discarded.
    pub(crate) fn on_read(&mut self, bytes: u64) {
        self.read += bytes;
        debug_assert!(self.read <= self.received, "read more than was received");
    }

    /// Bytes announced and not read, which may have to be buffered.
    #[must_use]
    pub(crate) fn promised(&self) -> u64 {
        self.limit - self.read
    }

    /// How many bytes ahead of the reader the peer may be.
    #[must_use]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Counts all received bytes as read. Returns how many of them were unread.
    pub(crate) fn read_all(&mut self) -> u64 {
        let unread = self.received - self.read;
        self.read = self.received;
        unread
    }

    /// One past the highest byte received, or the sum of these over all streams for the connection.
    #[must_use]
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The latest announced limit.
    #[must_use]
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes received and not read.
    #[must_use]
    pub(crate) fn unread(&self) -> u64 {
        self.received - self.read
    }

    /// Doubles the window, up to `ceiling`, when half of it is unread, so that the other readers keep their share. Returns whether there is
    /// more to announce.
    pub(crate) fn widen_for_unread(&mut self, ceiling: u64) -> bool {
        if self.unread() < self.window / 2 || self.window >= ceiling {
            return false;
        }
        self.window = (2 * self.window).min(ceiling);
        true
    }

    /// What the window of one stream may grow to if all streams together may buffer `ceiling` bytes: an eighth of three quarters of
    /// `ceiling` minus the unread bytes. So fast readers that stop one after the other never use it all up. The last quarter is for the
    /// initial windows.
    #[must_use]
    pub(crate) fn share_for_stream(&self, ceiling: u64) -> u64 {
        (ceiling - ceiling / 4).saturating_sub(self.unread()) / 8
    }

    /// Whether enough was read to announce a new limit.
    #[must_use]
    pub(crate) fn is_announcement_due(&self) -> bool {
        self.next_limit() - self.limit >= (self.window / 2).max(1)
    }

    /// Grants and returns the limit to announce now. The window grows, up to `ceiling`, if it is read fast, and the first time.
    pub(crate) fn announce(&mut self, pace: Pace, ceiling: u64) -> u64 {
        let is_first = self.announced == Instant::ZERO;
        let is_fast = is_first || pace.now - self.announced < FAST_ROUNDS * pace.rtt;
        if is_fast && self.read >= self.window / 2 {
            self.window = self.window.saturating_mul(GROWTH).min(ceiling.max(self.window));
        }
        self.announced = pace.now;
        self.limit = self.next_limit();
        self.limit
    }

    fn next_limit(&self) -> u64 {
        // Never below the announced limit, since `read` and the window only grow.
        self.read.saturating_add(self.window).min(LIMIT_MAX)
    }
}

/// How many streams the peer may open: a total that grows as streams close, so that a fixed number can be open at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamAllowance {
    concurrent: u64,
    /// Maximum of `concurrent`.
    ceiling: u64,
    opened: u64,
    closed: u64,
    limit: u64,
}

impl StreamAllowance {
    /// `concurrent` streams may be open at a time, which grows up to `ceiling` with use.
    #[must_use]
    pub(crate) fn new(concurrent: u64, ceiling: u64) -> Self {
        let concurrent = concurrent.min(STREAMS_MAX);
        Self {
            concurrent,
            ceiling: ceiling.clamp(concurrent, STREAMS_MAX),
            opened: 0,
            closed: 0,
            limit: concurrent,
        }
    }

    /// How many streams may be open at a time.
    #[must_use]
    pub(crate) fn concurrent(&self) -> u64 {
        self.concurrent
    }

    /// Doubles the number of concurrent streams if more than half of them are open. Returns whether that changed anything.
    pub(crate) fn widen(&mut self) -> bool {
        if self.opened - self.closed <= self.concurrent / 2 || self.concurrent >= self.ceiling {
            return false;
        }
        self.concurrent = (2 * self.concurrent).min(self.ceiling);
        true
    }

    /// Opens the peer's stream number `index` and all streams below it. Returns the range of new ones, which is empty if it was already
    /// open.
    pub(crate) fn open_up_to(&mut self, index: u64) -> Result<core::ops::Range<u64>, TransportError> {
        if index >= self.limit {
            return Err(TransportError::new(TransportErrorCode::StreamLimit, "more streams than allowed"));
        }
        let first = self.opened;
        self.opened = self.opened.max(index + 1);
        Ok(first..self.opened)
    }

    /// The number of streams that the peer has opened.
    #[must_use]
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// A stream of the peer was released.
    pub(crate) fn on_closed(&mut self) {
        self.closed += 1;
        debug_assert!(self.closed <= self.opened, "more streams ended than were opened");
    }

    /// The latest announced limit.
    #[must_use]
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether a new limit is worth a frame. It is not while the peer may still open more than half of its streams; below that, it is for
    /// every stream that closes.
    #[must_use]
    pub(crate) fn is_announcement_due(&self) -> bool {
        self.next_limit() > self.limit && self.limit - self.opened <= self.concurrent / 2
    }

    /// Grants and returns the limit to announce now.
    pub(crate) fn announce(&mut self) -> u64 {
        self.limit = self.next_limit();
        self.limit
    }

    fn next_limit(&self) -> u64 {
        self.closed.saturating_add(self.concurrent).min(STREAMS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time in milliseconds after the start, on a path with a round trip of 100 ms.
    fn at(millis: u64) -> Pace {
        Pace { now: Instant::from_millis(millis), rtt: Duration::from_millis(100) }
    }

    #[test]
    fn a_window_grows_while_it_is_read_within_six_round_trips_up_to_its_ceiling() {
        let mut credit = ReceiveCredit::new(100);
        let mut limits = Vec::new();
        for (millis, bytes) in [(1, 49), (2, 1), (602, 200), (1_201, 200), (1_300, 800)] {
            credit.charge(bytes).unwrap();
            credit.on_read(bytes);
            limits.push(credit.announce(at(millis), 2_000) - credit.received());
        }
        assert_eq!(limits, [100, 400, 400, 1_600, 2_000]);
        let mut credit = ReceiveCredit::new(100);
        credit.charge(50).unwrap();
        credit.on_read(50);
        assert_eq!(credit.announce(at(10_000), 2_000), 450, "the first time at any speed");
    }

    #[test]
    fn a_window_of_which_half_is_unread_doubles_up_to_its_ceiling() {
        let mut credit = ReceiveCredit::new(100);
        let mut limits = Vec::new();
        for bytes in [49, 1, 49, 1, 200] {
            credit.charge(bytes).unwrap();
            limits.push(credit.widen_for_unread(350).then(|| credit.announce(at(0), 350)));
        }
        assert_eq!(limits, [None, Some(200), None, Some(350), None]);
    }

    #[test]
    fn fast_readers_that_stop_one_after_the_other_leave_room_for_the_next() {
        const MIB: u64 = 1 << 20;
        let mut credit = ReceiveCredit::new(1024 * MIB);
        for _ in 0..200 {
            let window = credit.share_for_stream(1024 * MIB).min(16 * MIB);
            credit.charge(window).unwrap();
        }
        assert!(credit.unread() <= 768 * MIB, "{} bytes unread", credit.unread());
    }

    #[test]
    fn limits_from_the_peer_never_shrink() {
        let mut credit = SendCredit::new(10);
        credit.charge(4);
        credit.raise(7);
        assert_eq!(credit.available(), 6);
        credit.raise(u64::MAX);
        assert_eq!(credit.available(), LIMIT_MAX - 4);
    }

    #[test]
    fn a_new_limit_is_due_when_half_the_window_was_read() {
        let mut credit = ReceiveCredit::new(100);
        credit.charge(100).unwrap();
        credit.on_read(49);
        assert!(!credit.is_announcement_due());
        credit.on_read(1);
        assert!(credit.is_announcement_due());
        assert_eq!(credit.announce(at(0), 100), 150);
        assert!(!credit.is_announcement_due());
        assert_eq!(credit.limit(), 150);
    }

    #[test]
    fn one_byte_beyond_the_limit_is_a_fault_and_charges_nothing() {
        let mut credit = ReceiveCredit::new(100);
        credit.charge(99).unwrap();
        assert_eq!(credit.charge(2).unwrap_err().code, TransportErrorCode::FlowControl);
        assert_eq!(credit.charge(u64::MAX).unwrap_err().code, TransportErrorCode::FlowControl);
        assert_eq!(credit.received(), 99);
        assert_eq!(credit.read_all(), 99);
        assert_eq!(credit.read_all(), 0);
    }

    #[test]
    fn ended_streams_make_room_for_new_ones_and_for_no_more() {
        let mut allowance = StreamAllowance::new(4, 4);
        assert_eq!(allowance.open_up_to(3).unwrap(), 0..4);
        assert_eq!(allowance.open_up_to(4).unwrap_err().code, TransportErrorCode::StreamLimit);
        assert!(!allowance.is_announcement_due());
        allowance.on_closed();
        assert!(allowance.is_announcement_due());
        assert_eq!(allowance.announce(), 5);
        assert_eq!(allowance.open_up_to(4).unwrap(), 4..5);
        assert_eq!(allowance.open_up_to(2).unwrap(), 5..5);
        assert_eq!(allowance.open_up_to(5).unwrap_err().code, TransportErrorCode::StreamLimit);
    }

    #[test]
    fn a_peer_that_uses_half_of_its_streams_gets_twice_as_many() {
        let mut allowance = StreamAllowance::new(16, 50);
        let mut limits = Vec::new();
        for opened in [8, 9, 17, 33] {
            allowance.open_up_to(opened - 1).unwrap();
            allowance.widen();
            limits.push(allowance.announce());
        }
        assert_eq!(limits, [16, 32, 50, 50]);
    }

    #[test]
    fn a_peer_with_plenty_of_allowance_is_not_told_of_every_ended_stream() {
        let mut allowance = StreamAllowance::new(100, 100);
        allowance.open_up_to(9).unwrap();
        allowance.on_closed();
        assert!(!allowance.is_announcement_due());
        allowance.open_up_to(49).unwrap();
        assert!(allowance.is_announcement_due());
    }
}
