//! When an interrupted transfer is retried, and when it is given up.
//!
//! Three things are bounded: consecutive attempts without progress, the time for which a busy server is retried, and
//! restarts because the content differed. Attempts that make progress continue without limit.

use core::time::Duration;

use tokio::time::{Instant, sleep};

use super::{FileError, TransferError};
use crate::link::LinkError;
use crate::request::ReplyCode;

/// Consecutive attempts without progress before a transfer is given up. In each, the link waits for a connection.
pub const FRUITLESS_ATTEMPTS_MAX: u32 = 5;

/// How often a transfer starts over because the content differs: once for a stale part, and again for a file that is
/// being written. Beyond that a person should look into it.
const RESTARTS_MAX: u32 = 3;

/// The pause before the second attempt without progress; it doubles each time.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a busy server is retried: other transfers end, or are stopped when they stall.
pub const BUSY_PATIENCE: Duration = Duration::from_secs(60);

/// The pause before a busy server is retried, in addition to the time it takes to reply.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// How a failed attempt continues.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// It resumes.
    Interrupted,
    /// It waits for a free slot.
    Busy,
    /// It starts over.
    Differs,
    /// It cannot be retried.
    Final,
}

/// The attempts of one transfer.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    total: u32,
    fruitless: u32,
    restarts: u32,
    /// When the server first was busy, without any progress since then.
    busy_since: Option<Instant>,
    /// The largest number of bytes ever present.
    best: u64,
}

impl Attempts {
    /// Waits before the next attempt, or returns the error. `done` is the progress of the failed attempt.
    pub(super) async fn on_failure(&mut self, error: TransferError, done: u64) -> Result<(), TransferError> {
        let is_first = self.total == 0;
        self.total += 1;
        if done > self.best {
            self.busy_since = None;
        }
        let kind = kind(&error);
        match kind {
            Kind::Busy => return self.on_busy(error, done).await,
            // The server was never reached, most likely because of a wrong address or key. The link has waited already.
            Kind::Interrupted if is_first && matches!(error, TransferError::Link(_)) => return Err(error),
            Kind::Interrupted => {
                self.fruitless = if done > self.best { 0 } else { self.fruitless + 1 };
                self.best = self.best.max(done);
            }
            Kind::Differs => {
                self.restarts += 1;
                self.best = 0;
            }
            Kind::Final => return Err(error),
        }
        if self.fruitless >= FRUITLESS_ATTEMPTS_MAX || self.restarts >= RESTARTS_MAX {
            return Err(TransferError::GaveUp(self.total, Box::new(error)));
        }
        if kind == Kind::Differs {
            tracing::warn!("{error}; starting over");
        } else {
            tracing::info!(%error, "trying again");
        }
        sleep(PAUSE * 2u32.pow(self.fruitless)).await;
        Ok(())
    }

    async fn on_busy(&mut self, error: TransferError, done: u64) -> Result<(), TransferError> {
        self.best = self.best.max(done);
        let since = match self.busy_since {
            Some(since) => since,
            None => {
                let seconds = BUSY_PATIENCE.as_secs();
                tracing::warn!("{error}; asking again for {seconds} seconds");
                *self.busy_since.insert(Instant::now())
            }
        };
        if since.elapsed() >= BUSY_PATIENCE {
            return Err(TransferError::GaveUp(self.total, Box::new(error)));
        }
        sleep(BUSY_PAUSE).await;
        Ok(())
    }
}

/// Returns true if the data that arrived is of no use.
pub(super) fn starts_over(error: &TransferError) -> bool {
    kind(error) == Kind::Differs
}

fn kind(error: &TransferError) -> Kind {
    match error {
        TransferError::Interrupted(_)
        | TransferError::Link(LinkError::Unreachable(_) | LinkError::Lost(_) | LinkError::Silent) => {
            Kind::Interrupted
        }
        TransferError::Refused(reply) => match reply.code {
            ReplyCode::ContentDiffers => Kind::Differs,
            ReplyCode::Busy => Kind::Busy,
            ReplyCode::TooManyStreams => Kind::Interrupted,
            _ => Kind::Final,
        },
        TransferError::RemoteChanged
        | TransferError::HashDiffers
        | TransferError::Local(_, FileError::PrefixDiffers | FileError::Changed) => Kind::Differs,
        _ => Kind::Final,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::request::Reply;

    fn interrupted() -> TransferError {
        TransferError::Interrupted(io::ErrorKind::ConnectionReset.into())
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_with_progress_continue_and_others_end() {
        let mut attempts = Attempts::default();
        for done in 1..100 {
            attempts.on_failure(interrupted(), done).await.unwrap();
        }
        let mut fruitless = 0;
        while attempts.on_failure(interrupted(), 99).await.is_ok() {
            fruitless += 1;
        }
        assert_eq!(fruitless, FRUITLESS_ATTEMPTS_MAX - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn content_that_keeps_differing_is_given_up() {
        let mut attempts = Attempts::default();
        let mut restarts = 0;
        while attempts.on_failure(TransferError::HashDiffers, 1_000_000 * restarts).await.is_ok() {
            restarts += 1;
        }
        assert_eq!(restarts, u64::from(RESTARTS_MAX) - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_retried_for_a_while_and_longer_while_there_is_progress() {
        let busy = || TransferError::Refused(Reply::failure(ReplyCode::Busy, "too many"));
        let mut attempts = Attempts::default();
        let begun = Instant::now();
        for done in 1..100 {
            attempts.on_failure(busy(), done).await.unwrap();
        }
        assert!(begun.elapsed() > BUSY_PATIENCE);
        let begun = Instant::now();
        let error = loop {
            if let Err(error) = attempts.on_failure(busy(), 99).await {
                break error;
            }
        };
        assert!(
            begun.elapsed() <= BUSY_PATIENCE + BUSY_PAUSE && begun.elapsed() + BUSY_PAUSE >= BUSY_PATIENCE
        );
        assert!(error.to_string().contains("the server is busy: too many"), "{error}");
    }

    #[tokio::test]
    async fn refusals_and_servers_that_were_never_reached_are_final() {
        let refused = TransferError::Refused(Reply::failure(ReplyCode::FileNotFound, ""));
        assert!(Attempts::default().on_failure(refused, 0).await.is_err());
        let unreachable = || TransferError::Link(LinkError::Unreachable("no answer".into()));
        assert!(Attempts::default().on_failure(unreachable(), 0).await.is_err());
        let mut attempts = Attempts::default();
        attempts.on_failure(interrupted(), 5).await.unwrap();
        attempts.on_failure(unreachable(), 5).await.unwrap();
        let not_admitted = TransferError::Link(LinkError::NotAdmitted("not on the list".into()));
        assert!(attempts.on_failure(not_admitted, 5).await.is_err());
    }
}
