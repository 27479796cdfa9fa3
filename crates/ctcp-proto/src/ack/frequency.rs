//! How often acknowledgements are wanted: what the sender asks of the receiver, in the manner of
//! draft-ietf-quic-ack-frequency (PROTOCOL.md section 4.4).
//!
//! An ACK every second packet is the rule of a small window, where each ACK lets the next packets go. Of a large
//! window a few ACKs a round trip tell as much, and cost a tenth. Only the sender knows its window, so it says how many
//! packets an ACK should cover, how long it may wait, and how long the news of a gap may. A connection begins with the
//! rule for small windows, and returns to it after a pause: a request and its answer are not bulk.

use core::time::Duration;

use ctcp_base::Instant;

/// How long an ACK may wait by default. The sender takes the wait off its samples, so it costs little accuracy;
/// it is 5 ms because a quarter of the papers' 20 ms round trip is what a coded flow can wait for its feedback.
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(5);

/// Whatever the round trip, timers are no finer than this.
pub(crate) const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// The longest delay a sender asks for: as long as QUIC's default. The end of a transfer waits for it.
const ASKED_DELAY_MAX: Duration = Duration::from_millis(25);

/// The longest delay a receiver agrees to, whatever it is asked.
pub(crate) const GRANTED_DELAY_MAX: Duration = Duration::from_millis(250);

/// How many ack-eliciting packets one ACK covers by default.
pub(crate) const PACKETS_PER_ACK: u32 = 2;

/// How many it covers at most, whatever the window or the peer: an ACK of so many is less than a thousandth of what it
/// acknowledges, and fewer ACKs would gain nothing.
pub(crate) const PACKETS_PER_ACK_MAX: u32 = 512;

/// An ACK of so many full packets has less than one percent of their bytes. Larger windows get more ACKs a round trip
/// before they get more packets an ACK.
const PACKETS_WORTH_AN_ACK: f64 = 8.0;

/// The fewest ACKs a round trip, for a small window: no more than a sixth of it waits for its ACK.
const ACKS_A_ROUND_MIN: f64 = 6.0;

/// The most, for a large one.
const ACKS_A_ROUND: f64 = 16.0;

/// The same in slow start, which looks for a queue in the round trips of an eighth of the window and lasts but a few round trips.
const ACKS_A_ROUND_IN_SLOW_START: f64 = 64.0;

/// Below this window every second packet comes later than an ACK may wait.
const WINDOW_MIN: f64 = 4.0;

/// The sender believes a gap when three packets behind it have arrived (RFC 9002 section 6.1.1), that is two after the
/// one that shows it: before, an ACK tells it nothing that it could act on.
const PACKETS_BEHIND_A_GAP: f64 = 2.0;

/// What is asked is asked again when a number changes by more than this part.
const CHANGE: f64 = 0.4;

/// What the frequency depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Packets in flight.
    pub(crate) window: f64,
    pub(crate) is_slow_start: bool,
    pub(crate) round_trip: Duration,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckFrequency {
    /// After so many packets that ask for it.
    pub(crate) packets: u32,
    /// So long after the first of them at the latest.
    pub(crate) delay: Duration,
    /// So long after a gap in the packet numbers appeared, or a packet came that fills one.
    pub(crate) gap_delay: Duration,
}

impl AckFrequency {
    /// What holds on a path of this round trip while nothing else was asked.
    pub(crate) fn default_of(round_trip: Duration) -> Self {
        let delay = (round_trip / 4).clamp(MIN_ACK_DELAY, MAX_ACK_DELAY);
        Self { packets: PACKETS_PER_ACK, delay, gap_delay: Duration::ZERO }
    }

    /// What suits a flow.
    pub(crate) fn of(flow: &Flow) -> Self {
        let &Flow { window, is_slow_start, round_trip } = flow;
        if window < WINDOW_MIN {
            return Self::default_of(round_trip);
        }
        let packets = if is_slow_start {
            window / ACKS_A_ROUND_IN_SLOW_START
        } else {
            (window / ACKS_A_ROUND_MIN).min(PACKETS_WORTH_AN_ACK).max(window / ACKS_A_ROUND)
        };
        let delay = (round_trip / 4).clamp(MIN_ACK_DELAY, ASKED_DELAY_MAX);
        let threshold = round_trip.mul_f64(PACKETS_BEHIND_A_GAP / window);
        Self {
            packets: (packets as u32).clamp(PACKETS_PER_ACK, PACKETS_PER_ACK_MAX),
            delay,
            gap_delay: threshold.max(round_trip / 16).min(delay),
        }
    }

    /// What a receiver makes of it: a peer may ask for anything.
    pub(crate) fn granted(packets: u64, delay: Duration, gap_delay: Duration) -> Self {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX).clamp(1, PACKETS_PER_ACK_MAX);
        let delay = delay.clamp(MIN_ACK_DELAY, GRANTED_DELAY_MAX);
        Self { packets, delay, gap_delay: gap_delay.min(delay) }
    }

    /// Whether the difference is worth a frame.
    fn is_far_from(&self, other: &Self) -> bool {
        let is_far = |one: f64, other: f64| (one - other).abs() > CHANGE * one.max(other);
        is_far(f64::from(self.packets), f64::from(other.packets))
            || is_far(self.delay.as_secs_f64(), other.delay.as_secs_f64())
    }
}

/// A request, numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) sequence: u64,
    pub(crate) frequency: AckFrequency,
}

/// The sender's side: what it asked for, and what it must reckon with.
#[derive(Clone, Debug)]
pub(crate) struct AckRequests {
    /// The last request, if there was any.
    asked: Option<Request>,
    /// When the last request left.
    asked_at: Instant,
    /// The last request was lost.
    is_lost: bool,
    /// The longest delay of all requests that may be in force.
    delay_max: Duration,
    /// When the last packet left that asks for an ACK.
    last_sent: Option<Instant>,
    /// When the sender began to send without pauses.
    busy_since: Instant,
    /// Packets since the last one that asked for an ACK at once.
    since_hurry: u32,
}

impl AckRequests {
    /// Of a peer that said in the handshake by how much it delays.
    pub(crate) fn new(now: Instant, peer_max_ack_delay: Duration) -> Self {
        Self {
            asked: None,
            asked_at: now,
            is_lost: false,
            delay_max: peer_max_ack_delay,
            last_sent: None,
            busy_since: now,
            since_hurry: 0,
        }
    }

    /// By how much an ACK may be late.
    pub(crate) fn delay_max(&self) -> Duration {
        self.delay_max
    }

    /// Packets that count as in flight though they arrived, on average: they wait for the ACK that says so. The window leaves them
    /// out, beyond those of the default rule, or a flow whose ACKs are rare would fill less of the path than its window.
    pub(crate) fn unreported(&self) -> f64 {
        self.asked
            .map_or(0.0, |asked| f64::from(asked.frequency.packets.saturating_sub(PACKETS_PER_ACK)) / 2.0)
    }

    /// A packet leaves now that asks for an ACK.
    pub(crate) fn on_sent(&mut self, now: Instant, round_trip: Duration) {
        if self.is_pause_over(now, round_trip) {
            self.busy_since = now;
        }
        self.last_sent = Some(now);
        self.since_hurry = self.since_hurry.saturating_add(1);
    }

    /// Nothing was sent for a while, and a packet leaves now.
    fn is_pause_over(&self, now: Instant, round_trip: Duration) -> bool {
        self.last_sent.is_none_or(|last| now - last > round_trip.max(ASKED_DELAY_MAX))
    }

    /// The request to put into a packet that leaves now, if something else is wanted than what was asked for last: in
    /// bulk at most one a round trip, for windows rise and fall.
    pub(crate) fn poll(&self, now: Instant, flow: &Flow) -> Option<Request> {
        let round_trip = flow.round_trip;
        let is_bulk = !self.is_pause_over(now, round_trip) && now - self.busy_since >= round_trip;
        if is_bulk && now - self.asked_at < round_trip {
            return None;
        }
        let default = AckFrequency::default_of(round_trip);
        let wanted = if is_bulk { AckFrequency::of(flow) } else { default };
        let last = self.asked.map_or(default, |asked| asked.frequency);
        if !self.is_lost && !wanted.is_far_from(&last) {
            return None;
        }
        Some(Request { sequence: self.asked.map_or(0, |asked| asked.sequence + 1), frequency: wanted })
    }

    /// What [`Self::poll`] returned is in a packet.
    pub(crate) fn on_asked(&mut self, now: Instant, request: Request) {
        self.asked_at = now;
        self.asked = Some(request);
        self.is_lost = false;
        self.delay_max = self.delay_max.max(request.frequency.delay);
    }

    /// The packet with this request arrived.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if let Some(asked) = self.asked.filter(|asked| asked.sequence == sequence) {
            self.delay_max = asked.frequency.delay;
        }
    }

    /// The packet with this request was lost.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        self.is_lost |= self.asked.is_some_and(|asked| asked.sequence == sequence);
    }

    /// Whether the last packet of what there is to send should ask for its ACK at once: only if ACKs are rare, and no
    /// more often than they are wanted anyhow.
    pub(crate) fn should_hurry(&self) -> bool {
        self.asked.is_some_and(|asked| {
            let AckFrequency { packets, delay, .. } = asked.frequency;
            delay > MAX_ACK_DELAY && self.since_hurry >= packets
        })
    }

    /// A packet asked for its ACK at once.
    pub(crate) fn on_hurried(&mut self) {
        self.since_hurry = 0;
    }
}

#[cfg(test)]
mod tests;
