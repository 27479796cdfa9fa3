//! The sending side of classical TCP in units of symbols: a window, cumulative acknowledgements, fast retransmit, one
//! timer.
//!
//! ```text
//!        unacked              resume                    next
//!           |                    |                       |
//!  acked  [ s   s   s   s   s  | s   s   s   s   s   s ) not sent yet
//!           \_______ window _______________/
//!                                ^ what to send next; below `next` only after a time-out
//! ```
//!
//! An acknowledgement names the oldest symbol that the receiver has not seen. Without coding, this is the oldest symbol
//! it does not have. Everything follows from that number alone: there are no packet numbers and no selective
//! acknowledgements.
//!
//! Sources: RFC 5681 (fast retransmit, window inflation), RFC 6298 (timer), and Brakmo and Peterson 1995. Vegas checks
//! the age of the oldest symbol at a duplicate acknowledgement and after a retransmission, instead of waiting for three
//! duplicates.

use std::collections::VecDeque;

use ctcp_base::Instant;

use ctcp_proto::congestion::{Acked, INITIAL_RTT, Lost, RttEstimator, Sent, TimedOut};
use ctcp_proto::scheme::Signal;
use ctcp_proto::{PacketNumber, SymbolIndex};

use super::timer::{RetransmissionTimer, patience};

/// Number of duplicate acknowledgements that indicate a loss (RFC 5681 3.2).
const DUPLICATES: u32 = 3;
/// Number of acknowledgements after a retransmission at which Vegas checks whether the next symbol is overdue, too.
const LOOKS: u32 = 2;

/// What the source may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    New,
    Again(SymbolIndex),
}

/// The variant of TCP. The papers differ, or are silent, on some details of a source of TCP/NC. There, each variant
/// does what fits the figures printed in its paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheme) enum Reading {
    /// The sink acknowledges each arrival, so that duplicates indicate a loss. A time-out retransmits everything from
    /// the oldest symbol on, as BSD's TCP does.
    TcpNc,
    /// The sink acknowledges only what is new (EOT/PB section II), so duplicates, which our receiver sends
    /// nevertheless, are ignored. A time-out retransmits only the oldest symbol (RFC 6298, 5.4).
    EotPb,
    /// No coding, and TCP as in operating systems: as in [`Reading::TcpNc`], with three additions. A partial
    /// acknowledgement indicates the next loss (RFC 6582), duplicates release new symbols at once (RFC 3042), and with
    /// few symbols in flight fewer duplicates are needed (RFC 5827).
    NewReno,
}

/// The sequence variables of a TCP source.
#[derive(Debug)]
pub(super) struct Sequence {
    unacked: SymbolIndex,
    resume: SymbolIndex,
    /// The symbols from `unacked` to `next`.
    symbols: VecDeque<Sending>,
    duplicates: u32,
    looks: u32,
    /// NewReno's fast recovery ends here, at the end of what had been sent when the loss was detected. Until then, each
    /// new acknowledgement indicates the next loss.
    recovery: Option<SymbolIndex>,
    /// Whether fast retransmit is due.
    is_overdue: bool,
    /// When a symbol was last retransmitted. For symbols sent before, the time until the acknowledgement includes the
    /// repair, of that symbol or of an earlier one. It is therefore not a sample (Karn's algorithm, as in BSD).
    repaired: Option<Instant>,
    rtt: RttEstimator,
    timer: RetransmissionTimer,
    /// The receiver's window: the maximum number of symbols in flight, regardless of congestion control.
    window_max: f64,
    reading: Reading,
    signals: VecDeque<Signal>,
}

/// The times at which a symbol was sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    first: Instant,
    last: Instant,
    is_app_limited: bool,
}

impl Sequence {
    pub(super) fn new(window_max: u32, reading: Reading) -> Self {
        Self {
            unacked: 0,
            resume: 0,
            symbols: VecDeque::new(),
            duplicates: 0,
            looks: 0,
            recovery: None,
            is_overdue: false,
            repaired: None,
            rtt: RttEstimator::new(INITIAL_RTT),
            timer: RetransmissionTimer::default(),
            window_max: f64::from(window_max),
            reading,
            signals: VecDeque::new(),
        }
    }

    /// Returns the oldest symbol that is not acknowledged.
    pub(super) fn unacked(&self) -> SymbolIndex {
        self.unacked
    }

    /// Returns one past the newest symbol.
    pub(super) fn next(&self) -> SymbolIndex {
        self.unacked + self.symbols.len() as u64
    }

    /// Returns the number of duplicates that indicate a loss.
    fn duplicates_needed(&self) -> u32 {
        let others = u32::try_from(self.symbols.len()).unwrap_or(u32::MAX).saturating_sub(1);
        if self.reading == Reading::NewReno { DUPLICATES.min(others).max(1) } else { DUPLICATES }
    }

    /// Returns the number of symbols sent more than a round trip ago and not acknowledged.
    pub(super) fn overdue(&self, now: Instant) -> u64 {
        let rtt = self.rtt.smoothed();
        self.symbols.iter().take_while(|symbol| now - symbol.first > rtt).count() as u64
    }

    /// Returns what a window of `window` symbols allows to send now.
    pub(super) fn wants(&self, window: f64) -> Option<Wanted> {
        if self.is_overdue {
            return Some(Wanted::Again(self.unacked));
        }
        // Each duplicate means that a packet has left the network (RFC 5681 3.2, step 4).
        let is_inflated = self.duplicates >= self.duplicates_needed() || self.reading == Reading::NewReno;
        let inflation = if is_inflated { f64::from(self.duplicates) } else { 0.0 };
        let window = (window + inflation).min(self.window_max);
        let under_way = (self.resume - self.unacked) as f64;
        if under_way + 1.0 > window {
            return None;
        }
        Some(if self.resume < self.next() { Wanted::Again(self.resume) } else { Wanted::New })
    }

    /// Records that a symbol was passed to the network.
    pub(super) fn on_sent(&mut self, now: Instant, sent: Wanted) {
        let index = match sent {
            Wanted::New => {
                let sending = Sending { first: now, last: now, is_app_limited: false };
                self.symbols.push_back(sending);
                self.next() - 1
            }
            Wanted::Again(index) => {
                if let Some(symbol) = self.symbol(index) {
                    symbol.last = now;
                }
                self.repaired = Some(now);
                index
            }
        };
        self.is_overdue &= index != self.unacked;
        self.resume = self.resume.max(index + 1);
        self.timer.on_sent(now);
        self.signals.push_back(Signal::Sent(Sent {
            now,
            number: PacketNumber(index),
            size: 0,
            in_flight: self.resume - self.unacked,
            rtt: self.rtt.view(now),
        }));
    }

    /// Records that the window has room but the application has no data.
    pub(super) fn on_app_limited(&mut self) {
        if let Some(newest) = self.symbols.back_mut() {
            newest.is_app_limited = true;
        }
    }

    /// Handles an acknowledgement: the receiver has seen every symbol below `unseen`.
    pub(super) fn on_ack(&mut self, now: Instant, unseen: SymbolIndex) {
        if unseen > self.unacked {
            self.on_progress(now, unseen.min(self.next()));
            self.recovery = self.recovery.filter(|&end| self.unacked < end);
            self.is_overdue |= self.recovery.is_some();
            if self.looks > 0 {
                self.looks -= 1;
                self.look_for_overdue(now);
            }
        } else if unseen == self.unacked && self.counts_duplicates() {
            self.duplicates += 1;
            let needed = self.duplicates_needed();
            if self.recovery.is_some() {
                // During recovery, duplicates only release new symbols.
            } else if self.duplicates == needed {
                self.retransmit(now);
            } else if self.duplicates < needed {
                self.look_for_overdue(now);
            }
        }
    }

    /// Returns whether a duplicate means that a packet has left the network, and counts towards a loss.
    fn counts_duplicates(&self) -> bool {
        match self.reading {
            Reading::TcpNc => !self.symbols.is_empty(),
            Reading::EotPb => false,
            // A duplicate for a single symbol may acknowledge a packet without symbols.
            Reading::NewReno => self.symbols.len() > 1,
        }
    }

    fn on_progress(&mut self, now: Instant, unseen: SymbolIndex) {
        self.duplicates = 0;
        self.is_overdue = false;
        let mut has_sample = false;
        let newest = PacketNumber(self.next().saturating_sub(1));
        for index in self.unacked..unseen {
            let Some(symbol) = self.symbols.pop_front() else { break };
            self.unacked = index + 1;
            let is_sample = self.repaired.is_none_or(|repaired| symbol.first > repaired);
            let sample = is_sample.then(|| now - symbol.first);
            if let Some(sample) = sample {
                has_sample = true;
                self.rtt.on_sample(now, sample, core::time::Duration::ZERO);
            }
            self.signals.push_back(Signal::Acked(Acked {
                now,
                number: PacketNumber(index),
                sent_time: symbol.first,
                sample,
                size: 0,
                in_flight: self.symbols.len() as u64,
                largest_sent: newest,
                rtt: self.rtt.view(now),
                loss_average: 0.0,
                is_app_limited: symbol.is_app_limited,
                delivery_rate: None,
                ecn_ce: false,
            }));
        }
        self.resume = self.resume.max(self.unacked);
        self.timer.on_ack(now, !self.symbols.is_empty(), has_sample);
    }

    /// Vegas: retransmits the oldest symbol if it is older than any round trip should take.
    fn look_for_overdue(&mut self, now: Instant) {
        if self.reading == Reading::NewReno {
            return;
        }
        let Some(oldest) = self.symbols.front() else { return };
        if self.rtt.has_sample() && now - oldest.last > patience(&self.rtt) {
            self.retransmit(now);
        }
    }

    fn retransmit(&mut self, now: Instant) {
        let Some(oldest) = self.symbols.front() else { return };
        self.is_overdue = true;
        self.looks = LOOKS;
        self.recovery = (self.reading == Reading::NewReno).then(|| self.next());
        self.signals.push_back(Signal::Lost(Lost {
            now,
            number: PacketNumber(self.unacked),
            sent_time: oldest.last,
            size: 0,
            in_flight: self.symbols.len() as u64,
            largest_sent: PacketNumber(self.next().saturating_sub(1)),
            rtt: self.rtt.view(now),
            loss_average: 0.0,
        }));
    }

    /// Returns the next signal for congestion control.
    pub(super) fn poll_signal(&mut self) -> Option<Signal> {
        self.signals.pop_front()
    }

    /// Returns when the retransmission timer expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.deadline(&self.rtt).filter(|_| !self.symbols.is_empty())
    }

    /// Handles the expiry of the timer: retransmits the oldest symbol, or everything starting with it.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.timer.on_timeout(now);
        self.duplicates = 0;
        self.is_overdue = self.reading == Reading::EotPb;
        self.looks = LOOKS;
        if self.reading != Reading::EotPb {
            self.resume = self.unacked;
        }
        // Duplicates count again at once. Some refer to earlier arrivals, but waiting for `next` would cost a time-out
        // per loss.
        self.recovery = None;
        // Retransmissions keep their numbers, and the window grows with the first of them that is acknowledged.
        let is_again = self.reading == Reading::NewReno;
        let largest = if is_again { self.unacked } else { self.next() };
        self.signals.push_back(Signal::TimedOut(TimedOut {
            now,
            in_flight: self.symbols.len() as u64,
            largest_sent: PacketNumber(largest.saturating_sub(1)),
            rtt: self.rtt.view(now),
        }));
    }

    fn symbol(&mut self, index: SymbolIndex) -> Option<&mut Sending> {
        self.symbols.get_mut(usize::try_from(index.checked_sub(self.unacked)?).ok()?)
    }
}

#[cfg(test)]
mod tests;
