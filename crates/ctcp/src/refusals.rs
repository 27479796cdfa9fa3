//! Log lines about clients that were refused: once in a while for each kind of reason, since strangers decide how many
//! there are.

use core::num::NonZeroU64;
use core::time::Duration;
use std::net::SocketAddr;

use ctcp_base::Instant;
use ctcp_proto::RefusedClient;

/// At most one line in so long about clients whose key is not listed: somebody may be waiting for it to copy the key.
const UNLISTED_PAUSE: Duration = Duration::from_secs(1);

/// At most one line in so long about clients that were refused for another reason. Each of them tries again and again.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// What was said about clients that were refused.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    unlisted: Seldom,
    without_room: Seldom,
    other_versions: Seldom,
}

impl Refusals {
    /// A client at this address was refused; it has this name.
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

/// One line, and then none for a pause.
#[derive(Debug, Default)]
struct Seldom {
    said: Option<Instant>,
    suppressed: u64,
}

impl Seldom {
    /// Whether it is said now, and how many were not since the last one.
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
    fn the_first_is_said_and_those_of_the_pause_are_counted() {
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
