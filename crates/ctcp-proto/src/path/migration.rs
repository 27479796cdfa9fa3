//! Addresses of a path that are being validated, and challenges to answer.

use core::time::Duration;

use ctcp_base::Instant;

use super::copies::Copies;
use super::validation::PathValidation;
use crate::id::{ContextId, SymbolIndex};
use crate::network::NetworkPath;

/// Maximum number of challenges that wait for an answer. A peer sends one for each address that it validates, and two such addresses are
/// possible when this side moves twice.
const RESPONSES_MAX: usize = 4;

/// Announcements of a new address. They permit a server to send a challenge and five full datagrams before the address is validated.
const ANNOUNCEMENTS: u8 = 2;

/// The most announcements in a second. Addresses and routes may change many times a second, and each move is several changes.
const ANNOUNCEMENTS_PER_SECOND: u8 = 32;

/// An address that the peer may have moved to.
pub(crate) struct Candidate {
    pub(crate) network: NetworkPath,
    pub(crate) validation: PathValidation,
    /// The largest datagram that came from there, in bytes.
    pub(crate) largest: u64,
    /// Whether the client announced the address, so that data precedes the validation.
    pub(crate) is_announced: bool,
    /// Copies of the oldest data in flight, which is lost if the client has left its old address.
    pub(crate) copies: Copies,
    /// The symbols of those that were sent.
    pub(crate) ahead: Vec<(ContextId, SymbolIndex)>,
}

impl Candidate {
    /// An address from which a first datagram of `size` bytes came.
    pub(crate) fn new(network: NetworkPath, size: u64) -> Self {
        let mut candidate = Self {
            network,
            validation: PathValidation::new(),
            largest: 0,
            is_announced: false,
            copies: Copies::default(),
            ahead: Vec::new(),
        };
        candidate.on_received(size);
        candidate
    }

    /// A datagram of `size` bytes came from the address.
    pub(crate) fn on_received(&mut self, size: u64) {
        self.validation.on_received(size);
        self.largest = self.largest.max(size);
    }
}

/// The address being validated and the challenges to answer.
#[derive(Default)]
pub(crate) struct Migration {
    pub(crate) candidate: Option<Candidate>,
    responses: Vec<(NetworkPath, [u8; 8])>,
    /// Announcements to send.
    announcements: u8,
    /// Announcements sent in the second that began then.
    announced: Option<(Instant, u8)>,
}

impl Migration {
    /// Queues the answer to a challenge that came from `network`.
    pub(crate) fn on_challenge(&mut self, network: NetworkPath, data: [u8; 8]) {
        if self.responses.len() < RESPONSES_MAX {
            self.responses.push((network, data));
        }
    }

    /// This side may have a new address.
    pub(crate) fn announce(&mut self) {
        self.announcements = ANNOUNCEMENTS;
    }

    /// Whether to announce the address once more. `is_flowing` if data arrives: it may be lost at the old address.
    pub(crate) fn poll_announcement(&mut self, now: Instant, is_flowing: bool) -> bool {
        if self.announcements == 0 {
            return false;
        }
        let this_second = self.announced.filter(|(began, _)| now < *began + Duration::from_secs(1));
        let (began, sent) = this_second.unwrap_or((now, 0));
        if !is_flowing || sent >= ANNOUNCEMENTS_PER_SECOND {
            self.announcements = 0;
            return false;
        }
        self.announcements -= 1;
        self.announced = Some((began, sent + 1));
        true
    }

    /// Whether the peer announced an address that is not validated yet.
    pub(crate) fn is_announced(&self) -> bool {
        self.candidate.as_ref().is_some_and(|candidate| candidate.is_announced)
    }

    /// The next challenge to answer and where.
    pub(crate) fn poll_response(&mut self) -> Option<(NetworkPath, [u8; 8])> {
        self.responses.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_announced_twice_if_data_arrives_and_a_limited_number_of_times_a_second() {
        let mut migration = Migration::default();
        let after = |millis| Instant::from_secs(1) + Duration::from_millis(millis);
        let mut announce = |now, is_flowing| {
            migration.announce();
            (0..10).filter(|_| migration.poll_announcement(now, is_flowing)).count()
        };
        assert_eq!(announce(after(0), false), 0);
        assert_eq!(announce(after(0), true), 2);
        let sent: usize = (1..20).map(|number| announce(after(20 * number), true)).sum();
        assert_eq!(sent, 30);
        assert_eq!(announce(after(1_000), true), 2);
    }
}
