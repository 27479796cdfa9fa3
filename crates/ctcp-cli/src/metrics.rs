//! `--metrics ADDR:PORT`: what the libraries count, for Prometheus.

use std::net::SocketAddr;
use std::time::Duration;

use ctcp_proxy::link::{CtcpConnector, LinkState, ServerLink};
use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::task::JoinSet;

use crate::error::CliError;

/// Serves metrics at `address`, if there is one. To be called before anything counts.
pub(crate) fn start(address: Option<SocketAddr>) -> Result<(), CliError> {
    let Some(address) = address else { return Ok(()) };
    PrometheusBuilder::new()
        .with_http_listener(address)
        .install()
        .map_err(|error| CliError::failure(format!("cannot serve metrics on {address}: {error}")))
}

/// How often the figures of the connection are read.
const INTERVAL: Duration = Duration::from_secs(1);

/// Publishes the figures of the link's connection until the answer is dropped; nothing without an `address`.
pub(crate) fn publish(address: Option<SocketAddr>, link: &ServerLink<CtcpConnector>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if address.is_none() {
        return tasks;
    }
    let state = link.state();
    tasks.spawn(async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let connection = match &*state.borrow() {
                LinkState::Connected { connection, .. } => Some(connection.clone()),
                LinkState::Connecting { .. } => None,
            };
            gauge!("ctcp_connected").set(if connection.is_some() { 1.0 } else { 0.0 });
            if let Some(connection) = connection {
                let granted = connection.profile().map(|profile| profile.to_string()).unwrap_or_default();
                gauge!("ctcp_profile_info", "profile" => granted).set(1.0);
                show(&connection.stats());
            }
        }
    });
    tasks
}

fn show(stats: &ctcp::ConnectionStats) {
    gauge!("ctcp_rtt_seconds").set(stats.rtt.smoothed.as_secs_f64());
    gauge!("ctcp_rtt_minimum_seconds").set(stats.rtt.minimum.as_secs_f64());
    gauge!("ctcp_loss_ratio").set(stats.loss);
    gauge!("ctcp_window_packets").set(stats.window);
    gauge!("ctcp_in_flight_packets").set(stats.in_flight as f64);
    gauge!("ctcp_datagram_bytes").set(stats.datagram_size as f64);
    gauge!("ctcp_symbols_outstanding").set(stats.symbols_outstanding as f64);
    counter!("ctcp_datagrams_sent_total").absolute(stats.datagrams_sent);
    counter!("ctcp_datagrams_received_total").absolute(stats.datagrams_received);
    counter!("ctcp_datagrams_dropped_total").absolute(stats.datagrams_dropped);
    counter!("ctcp_bytes_sent_total").absolute(stats.bytes_sent);
    counter!("ctcp_bytes_received_total").absolute(stats.bytes_received);
    counter!("ctcp_packets_lost_total").absolute(stats.packets_lost);
    counter!("ctcp_congestion_marks_total").absolute(stats.congestion_marks);
    counter!("ctcp_spurious_losses_total").absolute(stats.spurious_losses);
    counter!("ctcp_timeouts_total").absolute(stats.timeouts);
    counter!("ctcp_symbols_sent_total").absolute(stats.symbols_sent);
    counter!("ctcp_repairs_sent_total").absolute(stats.repairs_sent);
    counter!("ctcp_symbols_decoded_total").absolute(stats.symbols_decoded);
    counter!("ctcp_repairs_received_total").absolute(stats.repairs_received);
    counter!("ctcp_redundant_received_total").absolute(stats.redundant_received);
    counter!("ctcp_window_stalls_total").absolute(stats.window_stalls);
    counter!("ctcp_migrations_total").absolute(stats.migrations);
}
