//! `--metrics ADDR:PORT`: what the libraries count, for Prometheus.

use std::net::SocketAddr;

use metrics_exporter_prometheus::PrometheusBuilder;

use crate::error::CliError;

/// Serves metrics at `address`, if there is one. To be called before anything counts.
pub(crate) fn start(address: Option<SocketAddr>) -> Result<(), CliError> {
    let Some(address) = address else { return Ok(()) };
    PrometheusBuilder::new()
        .with_http_listener(address)
        .install()
        .map_err(|error| CliError::failure(format!("cannot serve metrics on {address}: {error}")))
}
