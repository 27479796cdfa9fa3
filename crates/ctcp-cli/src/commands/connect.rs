//! `ctcp connect`: connects standard input and output to a target.

use std::sync::Arc;

use ctcp::Catalogue;
use ctcp_proxy::client::{ClientLimits, ForwardProxy};

use crate::args::ConnectArgs;
use crate::error::CliError;
use crate::metrics::{self, LinkFigures};
use crate::network;

/// Runs until the target has sent everything, or a signal ends it.
pub(crate) async fn run(args: &ConnectArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    let target = &args.target;
    let listener = metrics::start_if_free(args.common.metrics)?;
    let (endpoint, link) = network::link(&args.remote, args.common.profile(catalogue)?, catalogue)?;
    let _publisher = metrics::publish(listener, LinkFigures::of(&link))?;
    let proxy = ForwardProxy::new(link, ClientLimits::default());
    let join = async {
        tokio::select! {
            joined = proxy.connect_pipes(tokio::io::stdin(), tokio::io::stdout(), target) => Ok(joined),
            signal = super::interrupted_or_hung_up() => Err(CliError::Signal(signal)),
        }
    };
    let joined = super::unless_lost(&endpoint, join).await.flatten();
    drop(proxy);
    super::close(&endpoint, super::FINISHED).await;
    let spliced = joined?.map_err(|error| CliError::failure(format!("{target}: {error}")))?;
    match spliced.failure {
        None => Ok(()),
        Some((_, error)) => Err(CliError::failure(format!("the connection to {target} was cut: {error}"))),
    }
}
