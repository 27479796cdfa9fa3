//! One command per file.

pub(crate) mod client;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod files;
pub(crate) mod keygen;
pub(crate) mod relay;
pub(crate) mod server;

use std::time::Duration;

use crate::error::CliError;

/// How long a closing endpoint may take to notify its peers.
const FAREWELL: Duration = Duration::from_secs(1);

/// The reason that a server sees when a client ends regularly.
const FINISHED: &str = "the client has finished";

/// Signal numbers, the same on every Unix.
const SIGINT: u8 = 2;
#[cfg(unix)]
const SIGHUP: u8 = 1;
#[cfg(unix)]
const SIGTERM: u8 = 15;

/// Waits for an interrupt or, on Unix, for a request to terminate; returns the signal's number.
pub async fn interrupted() -> u8 {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = terminate.recv() => SIGTERM,
                _ = tokio::signal::ctrl_c() => SIGINT,
            };
        }
    }
    // Without signals this waits forever.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    SIGINT
}

/// Also waits for SIGHUP: the end of the terminal, or of the calling program. ssh ends its ProxyCommand with it.
async fn interrupted_or_hung_up() -> u8 {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut hang_up) = signal(SignalKind::hangup()) {
            return tokio::select! {
                _ = hang_up.recv() => SIGHUP,
                number = interrupted() => number,
            };
        }
    }
    interrupted().await
}

/// Returns the result of `work`, or an error if the endpoint is lost in the meantime.
async fn unless_lost<T>(endpoint: &ctcp::Endpoint, work: impl Future<Output = T>) -> Result<T, CliError> {
    let failed = |lost: ctcp::EndpointLost| Err(CliError::failure(lost.to_string()));
    tokio::select! {
        outcome = work => match tokio::time::timeout(Duration::ZERO, endpoint.lost()).await {
            Ok(lost) => failed(lost),
            Err(_) => Ok(outcome),
        },
        lost = endpoint.lost() => failed(lost),
    }
}

/// Closes an endpoint and waits a short time until its peers are notified.
async fn close(endpoint: &ctcp::Endpoint, why: &str) {
    close_with(endpoint, 0, why).await;
}

/// The same with a code.
async fn close_with(endpoint: &ctcp::Endpoint, code: u64, why: &str) {
    // A peer that is gone need not be notified.
    let _ = tokio::time::timeout(FAREWELL, endpoint.close(code, why)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_endpoint_fails_the_command_whatever_the_result_of_its_work() {
        let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
        let (other, own) = (runtime(), runtime());
        let endpoint = other.block_on(async {
            ctcp::Endpoint::client(ctcp::ClientConfig::new(ctcp::generate_key().expect("a key")))
        });
        let endpoint = endpoint.expect("an endpoint");
        own.block_on(async {
            assert!(matches!(unless_lost(&endpoint, async { 3 }).await, Ok(3)));
            other.shutdown_background();
            // Like a proxy that serves an endpoint: it ends with the endpoint without knowing that it was lost.
            let work = async { while endpoint.accept().await.is_some() {} };
            let failed = unless_lost(&endpoint, work).await;
            assert!(matches!(failed, Err(CliError::Failure(why)) if why.contains("shut down")));
        });
    }
}
