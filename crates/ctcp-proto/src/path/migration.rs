//! Addresses of a path that are being validated, and challenges to answer.

use super::validation::PathValidation;
use crate::network::NetworkPath;

/// Maximum number of challenges that wait for an answer. A peer sends one for each address that it validates, and two such addresses are
/// possible when this side moves twice.
const RESPONSES_MAX: usize = 4;

/// An address that the peer may have moved to.
pub(crate) struct Candidate {
    pub(crate) network: NetworkPath,
    pub(crate) validation: PathValidation,
}

/// The address being validated and the challenges to answer.
#[derive(Default)]
pub(crate) struct Migration {
    pub(crate) candidate: Option<Candidate>,
    responses: Vec<(NetworkPath, [u8; 8])>,
}

impl Migration {
    /// Queues the answer to a challenge that came from `network`.
    pub(crate) fn on_challenge(&mut self, network: NetworkPath, data: [u8; 8]) {
        if self.responses.len() < RESPONSES_MAX {
            self.responses.push((network, data));
        }
    }

    /// The next challenge to answer and where.
    pub(crate) fn poll_response(&mut self) -> Option<(NetworkPath, [u8; 8])> {
        self.responses.pop()
    }
}
