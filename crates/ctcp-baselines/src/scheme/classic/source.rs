//! The sending side of classical TCP, counted in symbols: a window, cumulative acknowledgements, fast retransmit, one timer.
//!
//! ```text
//!        unacked              resume                    next
//!           |                    |                       |
//!  acked  [ s   s   s   s   s  | s   s   s   s   s   s ) not sent yet
//!           \_______ window _______________/
//!                                ^ what to send next; below `next` only behind a time-out
//! ```
//!
//! An acknowledgement names the oldest symbol that the receiver has not seen; without coding that is the oldest it does not have.
//! Everything follows from that number alone: no packet numbers, no selective acknowledgements.
//!
//! Sources: RFC 5681 (fast retransmit, window inflation), RFC 6298 (timer), Brakmo and Peterson 1995 (Vegas looks at the age of the
//! oldest symbol at a duplicate acknowledgement, and behind a retransmission, instead of waiting for three).

use std::collections::VecDeque;

use ctcp_base::Instant;

use ctcp_proto::congestion::{Acked, INITIAL_RTT, Lost, RttEstimator, Sent, TimedOut};
use ctcp_proto::scheme::Signal;
use ctcp_proto::{PacketNumber, SymbolIndex};

use super::timer::{RetransmissionTimer, patience};

/// Duplicate acknowledgements that mean a loss (RFC 5681 3.2).
const DUPLICATES: u32 = 3;
/// Acknowledgements behind a retransmission at which Vegas looks whether the next symbol is overdue, too.
const LOOKS: u32 = 2;

/// What may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    New,
    Again(SymbolIndex),
}

/// Which TCP it is. On what a source of TCP/NC does the two papers differ, or are silent: there, what fits the figures that each prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheme) enum Reading {
    /// The sink acknowledges each arrival, so that duplicates mean a loss; a time-out sends everything again from the oldest symbol on,
    /// as BSD's TCP does.
    TcpNc,
    /// The sink acknowledges only what is new (EOT/PB section II): an acknowledgement of nothing new, which our receiver sends all
    /// the same, has not been. A time-out sends the oldest symbol again and no more (RFC 6298, 5.4).
    EotPb,
    /// No coding, TCP as systems have it: as in [`Reading::TcpNc`], and an acknowledgement of less than was under way at a loss reveals the
    /// next one (RFC 6582), duplicates let new symbols go at once (RFC 3042), and few under way need fewer of them (RFC 5827).
    NewReno,
}

/// The sequence variables of a TCP source.
#[derive(Debug)]
pub(super) struct Sequence {
    unacked: SymbolIndex,
    resume: SymbolIndex,
    /// From `unacked` to `next`.
    symbols: VecDeque<Sending>,
    duplicates: u32,
    looks: u32,
    /// NewReno's fast recovery: up to here, what was sent when the loss was noticed, each acknowledgement reveals the next one.
    recovery: Option<SymbolIndex>,
    /// Fast retransmit is due.
    is_overdue: bool,
    /// When something was sent again last. Round trips of symbols sent before then say how long the repair took, and are
    /// no samples, whether it was that symbol or one before it that was repaired (Karn's algorithm, as BSD has it).
    repaired: Option<Instant>,
    rtt: RttEstimator,
    timer: RetransmissionTimer,
    /// Most symbols under way, whatever congestion control allows: the receiver's window.
    window_max: f64,
    reading: Reading,
    signals: VecDeque<Signal>,
}

/// When a symbol was sent.
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

    /// The oldest symbol that is not acknowledged.
    pub(super) fn unacked(&self) -> SymbolIndex {
        self.unacked
    }

    /// One past the newest symbol.
    pub(super) fn next(&self) -> SymbolIndex {
        self.unacked + self.symbols.len() as u64
    }

    /// Duplicates that mean a loss.
    fn duplicates_needed(&self) -> u32 {
        let others = u32::try_from(self.symbols.len()).unwrap_or(u32::MAX).saturating_sub(1);
        if self.reading == Reading::NewReno { DUPLICATES.min(others).max(1) } else { DUPLICATES }
    }

    /// Symbols sent more than a round trip ago and not acknowledged.
    pub(super) fn overdue(&self, now: Instant) -> u64 {
        let rtt = self.rtt.smoothed();
        self.symbols.iter().take_while(|symbol| now - symbol.first > rtt).count() as u64
    }

    /// What the window of `window` symbols lets go now.
    pub(super) fn wants(&self, window: f64) -> Option<Wanted> {
        if self.is_overdue {
            return Some(Wanted::Again(self.unacked));
        }
        // Each duplicate says that a packet has left the network (RFC 5681 3.2, step 4).
        let is_inflated = self.duplicates >= self.duplicates_needed() || self.reading == Reading::NewReno;
        let inflation = if is_inflated { f64::from(self.duplicates) } else { 0.0 };
        let window = (window + inflation).min(self.window_max);
        let under_way = (self.resume - self.unacked) as f64;
        if under_way + 1.0 > window {
            return None;
        }
        Some(if self.resume < self.next() { Wanted::Again(self.resume) } else { Wanted::New })
    }

    /// A symbol was handed to the network.
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
            is_app_limited: false,
        }));
    }

    /// The window has room, and the application nothing to send.
    pub(super) fn on_app_limited(&mut self) {
        if let Some(newest) = self.symbols.back_mut() {
            newest.is_app_limited = true;
        }
    }

    /// An acknowledgement arrived: the receiver has seen every symbol below `unseen`.
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
                // They let new symbols go, and no more.
            } else if self.duplicates == needed {
                self.retransmit(now);
            } else if self.duplicates < needed {
                self.look_for_overdue(now);
            }
        }
    }

    /// Whether an acknowledgement of nothing new says that a packet has left the network, and counts towards a loss.
    fn counts_duplicates(&self) -> bool {
        match self.reading {
            Reading::TcpNc => !self.symbols.is_empty(),
            Reading::EotPb => false,
            // One for a lone symbol may be for a packet without any.
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

    /// Vegas: the oldest symbol is sent again if it is older than any round trip should take.
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

    /// What congestion control has to be told next.
    pub(super) fn poll_signal(&mut self) -> Option<Signal> {
        self.signals.pop_front()
    }

    /// When the retransmission timer goes off.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.deadline(&self.rtt).filter(|_| !self.symbols.is_empty())
    }

    /// It went off: the oldest symbol is sent again, or everything from there on.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.timer.on_timeout(now);
        self.duplicates = 0;
        self.is_overdue = self.reading == Reading::EotPb;
        self.looks = LOOKS;
        if self.reading != Reading::EotPb {
            self.resume = self.unacked;
        }
        // Duplicates count again at once: some are for what had arrived before, but waiting for `next` would cost a time-out more at each loss.
        self.recovery = None;
        // What is sent again has the numbers that it had: the window grows with the first of it that arrives.
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
