//! Log lines about refused clients, limited in rate for each kind of reason, because unknown senders decide how many
//! refusals there are.

use core::num::NonZeroU64;
use core::time::Duration;
use std::net::SocketAddr;

use ctcp_base::Instant;
use ctcp_proto::RefusedClient;

/// The minimum interval between lines about clients whose key is not listed. It is short because an operator may be
/// waiting for the line to copy the key.
const UNLISTED_PAUSE: Duration = Duration::from_secs(1);

/// The minimum interval between lines about clients refused for another reason. Such clients retry again and again.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// When each kind of refusal was last logged.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    unlisted: Seldom,
    without_room: Seldom,
    other_versions: Seldom,
}

impl Refusals {
    /// Logs that the client at this address, with this name if it has one, was refused.
    pub(crate) fn note(
        &mut self,
        at: Instant,
        remote: SocketAddr,
        refused: RefusedClient,
        name: Option<&str>,
    ) {
        let due = match refused {
            RefusedClient::Unlisted(_) => self.unlisted.is_due(at, UNLISTED_PAUSE),
            RefusedClient::OtherVersion(_) => self.other_versions.is_due(at, REFUSED_PAUSE),
            _ => self.without_room.is_due(at, REFUSED_PAUSE),
        };
        let Some(suppressed) = due else { return };
        let key = refused.key().map(tracing::field::display);
        tracing::info!(%remote, client = name, key, suppressed, "refused a client: {refused}");
    }
}

/// Limits a log line to one per interval.
#[derive(Debug, Default)]
struct Seldom {
    said: Option<Instant>,
    suppressed: u64,
}

impl Seldom {
    /// Returns `None` if no line is due, and otherwise how many lines were suppressed since the last one.
    fn is_due(&mut self, at: Instant, pause: Duration) -> Option<Option<NonZeroU64>> {
        if self.said.is_some_and(|said| at.saturating_since(said) < pause) {
            self.suppressed = self.suppressed.saturating_add(1);
            return None;
        }
        self.said = Some(at);
        Some(NonZeroU64::new(core::mem::take(&mut self.suppressed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusal_is_logged_and_those_of_the_pause_are_counted() {
        let mut seldom = Seldom::default();
        let mut now = Instant::ZERO;
        assert_eq!(seldom.is_due(now, REFUSED_PAUSE), Some(None));
        for _ in 0..12 {
            assert_eq!(seldom.is_due(now, REFUSED_PAUSE), None);
        }
        now += REFUSED_PAUSE;
        assert_eq!(seldom.is_due(now, REFUSED_PAUSE), Some(NonZeroU64::new(12)));
        assert_eq!(seldom.is_due(now + REFUSED_PAUSE, REFUSED_PAUSE), Some(None));
    }
}
