//! One command a file.

pub(crate) mod client;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod files;
pub(crate) mod keygen;
pub(crate) mod server;

use std::time::Duration;

use crate::error::CliError;

/// How long a closing endpoint may take to tell its peers.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a server reads of a client that ends in order.
const FINISHED: &str = "the client has finished";

/// Numbers of signals, the same on every Unix.
const SIGINT: u8 = 2;
#[cfg(unix)]
const SIGHUP: u8 = 1;
#[cfg(unix)]
const SIGTERM: u8 = 15;

/// Waits for an interrupt or, on Unix, for a request to terminate; answers the signal's number.
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
    // Without signals there is nothing to wait for but the end.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    SIGINT
}

/// The same, or the end of the terminal or of the program that this one works for: ssh ends its ProxyCommand by it.
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

/// What comes of `work`; or, when the endpoint is lost meanwhile, that as the reason of failure.
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

/// Tells the peers of an endpoint, as far as they can be told quickly.
async fn close(endpoint: &ctcp::Endpoint, why: &str) {
    // A peer that is gone needs no farewell.
    let _ = tokio::time::timeout(FAREWELL, endpoint.close(0, why)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_endpoint_fails_the_command_whatever_its_work_came_to() {
        let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
        let (other, own) = (runtime(), runtime());
        let endpoint = other.block_on(async {
            ctcp::Endpoint::client(ctcp::ClientConfig::new(ctcp::generate_key().expect("a key")))
        });
        let endpoint = endpoint.expect("an endpoint");
        own.block_on(async {
            assert!(matches!(unless_lost(&endpoint, async { 3 }).await, Ok(3)));
            other.shutdown_background();
            // As a proxy does that serves an endpoint: it ends with it and knows nothing of its loss.
            let work = async { while endpoint.accept().await.is_some() {} };
            let failed = unless_lost(&endpoint, work).await;
            assert!(matches!(failed, Err(CliError::Failure(why)) if why.contains("shut down")));
        });
    }
}
