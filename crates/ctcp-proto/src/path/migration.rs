//! Addresses of a path that are being validated, and challenges to answer.

use super::copies::Copies;
use super::validation::PathValidation;
use crate::network::NetworkPath;

/// Maximum number of challenges that wait for an answer. A peer sends one for each address that it validates, and two such addresses are
/// possible when this side moves twice.
const RESPONSES_MAX: usize = 4;

/// Announcements of a new address. They permit a server to send six full datagrams before the address is validated.
const ANNOUNCEMENTS: u8 = 2;

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
}

impl Candidate {
    /// An address from which a first datagram of `size` bytes came.
    pub(crate) fn new(network: NetworkPath, size: u64) -> Self {
        let validation = PathValidation::new();
        let (largest, is_announced, copies) = (0, false, Copies::default());
        let mut candidate = Self { network, validation, largest, is_announced, copies };
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
    announcements: u8,
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
    pub(crate) fn poll_announcement(&mut self, is_flowing: bool) -> bool {
        let is_due = is_flowing && self.announcements > 0;
        self.announcements = if is_due { self.announcements - 1 } else { 0 };
        is_due
    }

    /// The next challenge to answer and where.
    pub(crate) fn poll_response(&mut self) -> Option<(NetworkPath, [u8; 8])> {
        self.responses.pop()
    }
}
