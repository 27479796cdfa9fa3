//! The share that a flow takes while it competes, if further paths of its connection may take the rest.

use core::time::Duration;

use ctcp_base::Instant;

use super::Steady;

/// How long a flow counts as competing after it last did: it tries in between whether the others have gone.
const COMPETED: Duration = Duration::from_secs(16);

/// The share of one flow.
#[derive(Debug)]
pub(super) struct Share {
    /// The part of a flow's share that this path takes.
    part: f64,
    /// The connection has further paths.
    pub(super) is_one_of_several: bool,
    competed_at: Option<Instant>,
}

impl Default for Share {
    fn default() -> Self {
        Self { part: 1.0, is_one_of_several: false, competed_at: None }
    }
}

impl Share {
    /// `None` if the connection has one path.
    pub(super) fn set(&mut self, share: Option<f64>) {
        self.part = share.unwrap_or(1.0);
        self.is_one_of_several = share.is_some();
    }

    /// The flow competes now.
    pub(super) fn compete(&mut self, now: Instant) {
        self.competed_at = Some(now);
    }

    /// What seemed to be the queue of others was none.
    pub(super) fn stop(&mut self) {
        self.competed_at = None;
    }

    /// The part of a flow's share that it takes while it competes.
    pub(super) fn part(&self) -> f64 {
        self.part
    }

    pub(super) fn is_competing(&self, now: Instant) -> bool {
        self.competed_at.is_some_and(|at| now.saturating_since(at) < COMPETED)
    }
}

impl Steady {
    /// Whether other flows may fill the queue: this one competed lately, or a path that seemed to be longer was not.
    pub(super) fn may_be_shared(&self, now: Instant) -> bool {
        self.share.is_competing(now) || self.base.was_mistaken(now)
    }
}
