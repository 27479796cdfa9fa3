//! Is the peer really at the address its packets come from? (RFC 9000 section 8.2, PROTOCOL.md section 6)
//!
//! ```text
//!               start             response matches
//!   Unvalidated -----> Challenged ----------------> Validated
//!                        |    ^
//!                timeout |    | again, at most CHALLENGES_MAX
//!                        +----+----> Failed
//! ```
//!
//! Until the address is validated at most three times the bytes that came from it are sent there, so that a
//! spoofed source address gains an attacker little.

use core::time::Duration;

use ctcp_base::Instant;

/// The anti-amplification factor of RFC 9000 section 8.1.
const AMPLIFICATION: u64 = 3;

/// How often a challenge is sent before the address is given up: with doubling intervals half a minute's worth at
/// most, and enough for a path that loses a third of its packets (both ways) to pass with 99.9 %.
pub(crate) const CHALLENGES_MAX: u32 = 10;

/// The longest interval between two challenges.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Unvalidated,
    /// `deadline` is `None` once it passed: the next challenge waits for bytes it may spend.
    Challenged {
        data: Vec<u64>,
        deadline: Option<Instant>,
    },
    Validated,
    Failed,
}

/// Validates one remote address.
#[derive(Clone, Debug)]
pub(crate) struct PathValidation {
    state: State,
    received: u64,
    sent: u64,
}

impl PathValidation {
    /// An address nobody vouches for.
    pub(crate) fn new() -> Self {
        Self { state: State::Unvalidated, received: 0, sent: 0 }
    }

    /// A datagram of `bytes` came from the address.
    pub(crate) fn on_received(&mut self, bytes: u64) {
        self.received = self.received.saturating_add(bytes);
    }

    /// A datagram of `bytes` went to it.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// Whether `bytes` may be sent to it.
    pub(crate) fn can_send(&self, bytes: u64) -> bool {
        let budget = self.received.saturating_mul(AMPLIFICATION);
        self.is_validated() || self.sent.saturating_add(bytes) <= budget
    }

    /// Whether the peer proved that it receives there.
    pub(crate) fn is_validated(&self) -> bool {
        self.state == State::Validated
    }

    /// Whether the peer did not answer in time.
    #[cfg(test)]
    pub(crate) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// The challenge that was sent last.
    #[cfg(test)]
    pub(crate) fn last_challenge(&self) -> Option<u64> {
        if let State::Challenged { data, .. } = &self.state { data.last().copied() } else { None }
    }

    /// Whether a PATH_CHALLENGE should be sent as soon as [`Self::can_send`] allows.
    pub(crate) fn wants_challenge(&self) -> bool {
        matches!(self.state, State::Unvalidated | State::Challenged { deadline: None, .. })
    }

    /// A PATH_CHALLENGE with `data` (unpredictable, new each time) leaves; `interval` is the path's probe time-out.
    pub(crate) fn on_challenge_sent(&mut self, now: Instant, challenge: u64, interval: Duration) {
        let mut data = match core::mem::replace(&mut self.state, State::Unvalidated) {
            State::Challenged { data, .. } => data,
            State::Unvalidated => Vec::new(),
            decided @ (State::Validated | State::Failed) => {
                self.state = decided;
                return;
            }
        };
        let doubled = interval.saturating_mul(1 << data.len().min(16));
        let deadline = now + doubled.min(INTERVAL_MAX.max(interval));
        data.push(challenge);
        self.state = State::Challenged { data, deadline: Some(deadline) };
    }

    /// A PATH_RESPONSE arrived. Returns whether it validates the address. Any challenge of this round will do: the
    /// answer to the first may come after the second was sent.
    pub(crate) fn on_response(&mut self, response: u64) -> bool {
        let is_answer = matches!(&self.state, State::Challenged { data, .. } if data.contains(&response));
        if is_answer {
            self.state = State::Validated;
        }
        is_answer
    }

    /// When to call [`Self::on_timeout`].
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Challenged { deadline, .. } => deadline,
            _ => None,
        }
    }

    /// The deadline may have passed. Returns `true` when the address has to be given up; otherwise
    /// [`Self::wants_challenge`] says whether to ask again.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        let State::Challenged { data, deadline } = &mut self.state else { return false };
        if deadline.is_none_or(|deadline| deadline > now) {
            return false;
        }
        if data.len() >= CHALLENGES_MAX as usize {
            self.state = State::Failed;
            return true;
        }
        *deadline = None;
        false
    }
}

#[cfg(test)]
mod tests;
