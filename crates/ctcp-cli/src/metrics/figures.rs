//! The metrics of a client and of a server, each with its name, kind and description.

use core::fmt;
use std::sync::Arc;

use ctcp::{Connection, Endpoint, PathStats};
use ctcp_proxy::counters::Counters;
use ctcp_proxy::link::{CtcpConnector, LinkState, ServerLink};
use ctcp_proxy::relay::Relay;
use ctcp_proxy::server::ReverseProxy;
use ctcp_proxy::traffic::{TOTALS, Traffic, TrafficStats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::sync::watch;

/// The labels of a metric.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The metrics of a client: its proxies and its connection to the server.
pub(crate) struct LinkFigures {
    counters: Arc<Counters>,
    traffic: Arc<Traffic>,
    state: watch::Receiver<LinkState<Connection>>,
}

impl LinkFigures {
    pub(crate) fn of(link: &ServerLink<CtcpConnector>) -> Self {
        Self { counters: link.counters().clone(), traffic: link.traffic().clone(), state: link.state() }
    }
}

impl fmt::Debug for LinkFigures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LinkFigures").finish_non_exhaustive()
    }
}

impl Collector for LinkFigures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (granted, paths) = match &*self.state.borrow() {
            LinkState::Connected { connection, .. } => {
                (connection.profile().map(|profile| profile.to_string()), connection.paths())
            }
            LinkState::Connecting { .. } => (None, Vec::new()),
        };
        let mut page = Page(encoder);
        page.build()?;
        let connected = f64::from(u8::from(granted.is_some()));
        page.gauge("ctcp_connected", "Whether there is a connection to the server", [(vec![], connected)])?;
        if let Some(granted) = &granted {
            let sample = (vec![("profile", granted.as_str())], 1.0);
            page.gauge("ctcp_profile_info", "The profile that the server granted", [sample])?;
        }
        page.traffic(&[(vec![], self.traffic.stats())])?;
        page.paths(&paths)?;
        page.proxy(&self.counters)
    }
}

/// The metrics of a server: its proxy, its clients and its socket.
pub(crate) struct ServerFigures {
    proxy: Arc<ReverseProxy>,
    endpoint: Endpoint,
}

impl ServerFigures {
    pub(crate) fn of(proxy: &Arc<ReverseProxy>, endpoint: &Endpoint) -> Self {
        Self { proxy: proxy.clone(), endpoint: endpoint.clone() }
    }
}

impl fmt::Debug for ServerFigures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerFigures").finish_non_exhaustive()
    }
}

impl Collector for ServerFigures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let clients = self.proxy.clients().stats();
        let mut page = Page(encoder);
        page.build()?;
        let clients: Vec<_> =
            clients.iter().map(|(name, stats)| (vec![("client", name.as_str())], stats.clone())).collect();
        page.traffic(&clients)?;
        page.proxy(self.proxy.counters())?;
        page.endpoint(&self.endpoint)
    }
}

/// The metrics of a relay: the connections of its clients, those to the next stops, and its socket.
#[derive(Debug)]
pub(crate) struct RelayFigures {
    relay: Arc<Relay>,
    endpoint: Endpoint,
}

impl RelayFigures {
    pub(crate) fn of(relay: &Arc<Relay>, endpoint: &Endpoint) -> Self {
        Self { relay: relay.clone(), endpoint: endpoint.clone() }
    }
}

impl Collector for RelayFigures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let [clients, stops] = self.relay.traffic();
        let mut page = Page(encoder);
        page.build()?;
        page.traffic(&[
            (vec![("towards", "clients")], clients.stats()),
            (vec![("towards", "stops")], stops.stats()),
        ])?;
        let counters = self.relay.counters();
        let open = counters.streams_open.value() as f64;
        page.gauge("ctcp_relay_ways", "Clients that are being carried to a stop", [(vec![], open)])?;
        for (name, help, count) in [
            ("ctcp_relay_ways_opened", "Ways opened so far", &counters.streams_total),
            ("ctcp_relay_ways_refused", "Ways that were refused", &counters.streams_failed),
        ] {
            page.counter(name, help, [(vec![], count.value())])?;
        }
        page.endpoint(&self.endpoint)
    }
}

/// Encodes the response to one request.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn counter<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, u64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, samples, ConstCounter::new)
    }

    fn gauge<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, f64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, samples, ConstGauge::new)
    }

    fn family<'l, V, M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
        metric: impl Fn(V) -> M,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in samples {
            if labels.is_empty() {
                return metric(value).encode(family);
            }
            metric(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn build(&mut self) -> fmt::Result {
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        self.gauge("ctcp_build_info", "The version of this program", [(version, 1.0)])
    }

    /// The connections of a server's clients, or of a client, which has no labels.
    fn traffic(&mut self, peers: &[(Labels<'_>, TrafficStats)]) -> fmt::Result {
        type Read = fn(&TrafficStats) -> f64;
        let gauges: [(&str, &str, Read); 8] = [
            ("ctcp_connections", "Open connections", |stats| stats.connections as f64),
            ("ctcp_rtt_seconds", "Smoothed round-trip time, maximum over connections", |stats| {
                stats.round_trip.as_secs_f64()
            }),
            (
                "ctcp_rtt_minimum_seconds",
                "Minimum round-trip time of the last ten seconds (smoothed if there were no samples), maximum over connections",
                |stats| stats.round_trip_minimum.as_secs_f64(),
            ),
            ("ctcp_loss_ratio", "Average loss of packets sent, maximum over connections", |stats| stats.loss),
            ("ctcp_window_packets", "Congestion window in packets", |stats| stats.window),
            ("ctcp_in_flight_packets", "Packets in flight", |stats| stats.in_flight as f64),
            ("ctcp_datagram_bytes", "Largest UDP payload that the path carries", |stats| {
                stats.datagram_size as f64
            }),
            ("ctcp_symbols_outstanding", "Symbols sent that the peer may still lack", |stats| {
                stats.symbols_outstanding as f64
            }),
        ];
        for (name, help, read) in gauges {
            self.gauge(name, help, peers.iter().map(|(labels, stats)| (labels.clone(), read(stats))))?;
        }
        let opened = peers.iter().map(|(labels, stats)| (labels.clone(), stats.connections_total));
        self.counter("ctcp_connections_opened", "Connections so far", opened)?;
        for (index, total) in TOTALS.iter().enumerate() {
            let samples = peers.iter().map(|(labels, stats)| (labels.clone(), stats.totals[index]));
            self.counter(total.name, total.help, samples)?;
        }
        Ok(())
    }

    /// The socket of a server or relay, and its handshakes.
    fn endpoint(&mut self, endpoint: &Endpoint) -> fmt::Result {
        let stats = endpoint.stats();
        self.gauge(
            "ctcp_half_open_handshakes",
            "Handshakes of clients that have not proved their key yet",
            [(vec![], stats.half_open as f64)],
        )?;
        for (name, help, value) in [
            (
                "ctcp_clients_refused",
                "Handshakes refused because the client's key is not listed",
                stats.refused,
            ),
            ("ctcp_strangers_dropped", "Datagrams of unknown senders that were dropped", stats.dropped),
            ("ctcp_cookies_sent", "Cookies requested from unknown senders under load", stats.cookies),
        ] {
            self.counter(name, help, [(vec![], value)])?;
        }
        Ok(())
    }

    /// The open paths of a client's connection.
    fn paths(&mut self, paths: &[PathStats]) -> fmt::Result {
        type Level = fn(&PathStats) -> f64;
        type Total = fn(&PathStats) -> u64;
        let names: Vec<[String; 3]> = paths
            .iter()
            .map(|path| {
                let local = path.local.map_or_else(String::new, |local| local.to_string());
                [path.id.0.to_string(), local, path.remote.to_string()]
            })
            .collect();
        let labelled = || {
            let labels = names.iter().map(|[id, local, remote]| {
                vec![("path", id.as_str()), ("local", local.as_str()), ("remote", remote.as_str())]
            });
            labels.zip(paths)
        };
        let levels: [(&str, &str, Level); 4] = [
            ("ctcp_path_usable", "Whether the peer has answered on the path and it is not avoided", |path| {
                f64::from(u8::from(path.is_usable()))
            }),
            ("ctcp_path_rtt_seconds", "Smoothed round-trip time of the path", |path| {
                path.rtt.smoothed.as_secs_f64()
            }),
            ("ctcp_path_loss_ratio", "Average loss of packets sent on the path", |path| path.loss),
            ("ctcp_path_window_packets", "Congestion window of the path", |path| path.window),
        ];
        for (name, help, read) in levels {
            self.gauge(name, help, labelled().map(|(labels, path)| (labels, read(path))))?;
        }
        let totals: [(&str, &str, Total); 4] = [
            ("ctcp_path_bytes_sent", "Bytes of UDP payload sent on the path", |path| path.bytes_sent),
            ("ctcp_path_bytes_received", "Bytes of UDP payload received on the path", |path| {
                path.bytes_received
            }),
            ("ctcp_path_combinations_received", "Symbols and combinations received on the path", |path| {
                path.combinations_received
            }),
            (
                "ctcp_path_redundant_received",
                "Those of them that carried nothing new: what the path wasted",
                |path| path.redundant_received,
            ),
        ];
        for (name, help, read) in totals {
            self.counter(name, help, labelled().map(|(labels, path)| (labels, read(path))))?;
        }
        Ok(())
    }

    fn proxy(&mut self, counters: &Counters) -> fmt::Result {
        let side = || vec![("side", counters.side)];
        let towards = |direction| vec![("side", counters.side), ("direction", direction)];
        for (name, help, level) in [
            ("ctcp_proxy_connections", "Open coded connections", &counters.connections),
            ("ctcp_proxy_streams_open", "Requests being served", &counters.streams_open),
            ("ctcp_proxy_udp_associations", "Open UDP associations", &counters.udp.associations),
        ] {
            self.gauge(name, help, [(side(), level.value() as f64)])?;
        }
        for (name, help, count) in [
            ("ctcp_proxy_connections_opened", "Coded connections so far", &counters.connections_total),
            ("ctcp_proxy_streams", "Requests so far", &counters.streams_total),
            ("ctcp_proxy_streams_failed", "Requests that were refused or cut", &counters.streams_failed),
            (
                "ctcp_proxy_targets_refused",
                "Targets that the server's rules refused",
                &counters.targets_refused,
            ),
        ] {
            self.counter(name, help, [(side(), count.value())])?;
        }
        let both = |one: (&'static str, u64), other: (&'static str, u64)| {
            [one, other].map(|(direction, value)| (towards(direction), value))
        };
        self.counter(
            "ctcp_proxy_bytes",
            "Bytes of applications: upstream is towards targets, downstream from them",
            both(("upstream", counters.upstream.value()), ("downstream", counters.downstream.value())),
        )?;
        self.udp(counters)?;
        self.counter(
            "ctcp_files_bytes",
            "Bytes of files",
            both(("sent", counters.files_sent.value()), ("received", counters.files_received.value())),
        )
    }

    fn udp(&mut self, counters: &Counters) -> fmt::Result {
        let (side, udp) = (counters.side, &counters.udp);
        let both = |upstream: u64, downstream: u64| {
            [("upstream", upstream), ("downstream", downstream)]
                .map(|(direction, value)| (vec![("side", side), ("direction", direction)], value))
        };
        self.counter(
            "ctcp_proxy_udp_datagrams",
            "UDP datagrams of applications: upstream is towards targets, downstream from them",
            both(udp.upstream.value(), udp.downstream.value()),
        )?;
        self.counter(
            "ctcp_proxy_udp_bytes",
            "Bytes of these datagrams",
            both(udp.bytes_upstream.value(), udp.bytes_downstream.value()),
        )?;
        let dropped =
            udp.all_dropped().map(|(reason, count)| (vec![("side", side), ("reason", reason)], count));
        self.counter("ctcp_proxy_udp_dropped", "UDP datagrams dropped, by reason", dropped)
    }
}
