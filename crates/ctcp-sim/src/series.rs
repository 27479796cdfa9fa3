//! Time series: the state of connections and links at the end of each bin of a chosen width.
//!
//! A sample is taken between two events and only reads, so that sampling does not change a run. Bin n covers the time
//! from n widths after the start up to, but not including, n + 1 widths. The last bin is complete when the run has
//! ended.

use core::time::Duration;
use std::collections::BTreeMap;

use ctcp_base::Instant;

use crate::ledger::ConnectionName;
use crate::link::{Direction, DuplexLink, LinkId};
use crate::node::host::Peer;
use crate::node::{Host, NodeId};

/// The state of a connection at the end of a bin, as seen by one side. All zero before the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectionSample {
    /// Congestion window in packets.
    pub window: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Average loss of what this side sends.
    pub loss: f64,
    /// Packets in flight.
    pub in_flight: u64,
    /// Bytes that this side's application has read so far.
    pub bytes_read: u64,
    /// Symbols decoded so far.
    pub symbols_decoded: u64,
    /// New symbols sent so far.
    pub symbols_sent: u64,
    /// Combinations and retransmitted symbols sent so far.
    pub repairs_sent: u64,
    /// Packets lost so far.
    pub packets_lost: u64,
}

/// The state of one direction of a link at the end of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaySample {
    /// Queued packets, including the one being transmitted.
    pub queued: u64,
    /// Packets dropped by the queue so far.
    pub dropped: u64,
    /// Packets lost by the loss model so far.
    pub lost: u64,
    /// Packets delivered so far.
    pub delivered: u64,
}

/// All samples of a run.
#[derive(Clone, Debug)]
pub struct Series {
    start: Instant,
    width: Duration,
    bins: usize,
    hosts: Vec<NodeId>,
    connections: BTreeMap<(NodeId, ConnectionName), Vec<ConnectionSample>>,
    ways: Vec<((LinkId, Direction), Vec<WaySample>)>,
}

impl Series {
    pub(crate) fn new(
        start: Instant,
        width: Duration,
        hosts: Vec<NodeId>,
        ways: Vec<(LinkId, Direction)>,
    ) -> Self {
        // With a width of zero, sampling would never end.
        let width = width.max(Duration::from_nanos(1));
        let ways = ways.into_iter().map(|way| (way, Vec::new())).collect();
        Self { start, width, bins: 0, hosts, connections: BTreeMap::new(), ways }
    }

    /// Returns the width of a bin.
    #[must_use]
    pub fn width(&self) -> Duration {
        self.width
    }

    /// Returns the number of complete bins.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Returns every connection of a watched host by its name, with one sample per bin up to its end.
    pub fn connections(&self, host: NodeId) -> impl Iterator<Item = (ConnectionName, &[ConnectionSample])> {
        let mine = self.connections.iter().filter(move |((node, _), _)| *node == host);
        mine.map(|((_, name), samples)| (*name, &samples[..]))
    }

    /// Returns the samples of a host with a single connection, or nothing if it had none.
    #[must_use]
    pub fn connection(&self, host: NodeId) -> &[ConnectionSample] {
        self.connections(host).next().map_or(&[], |(_, samples)| samples)
    }

    /// Returns the samples of one direction of a link, or nothing if it was not watched.
    #[must_use]
    pub fn way(&self, link: LinkId, direction: Direction) -> &[WaySample] {
        let way = self.ways.iter().find(|(way, _)| *way == (link, direction));
        way.map_or(&[], |(_, samples)| samples)
    }

    /// Returns the goodput of a receiver's application in Mbit/s, per bin.
    #[must_use]
    pub fn goodput_mbps(&self, host: NodeId) -> Vec<f64> {
        let read = increments(self.connection(host), |sample| sample.bytes_read);
        read.into_iter().map(|bytes| bytes as f64 * 8e-6 / self.width.as_secs_f64()).collect()
    }

    /// Returns the symbols decoded by a receiver, per bin.
    #[must_use]
    pub fn symbols_decoded(&self, host: NodeId) -> Vec<u64> {
        increments(self.connection(host), |sample| sample.symbols_decoded)
    }

    /// Returns when the present bin ends.
    pub(crate) fn next(&self) -> Instant {
        let bins = u32::try_from(self.bins + 1).unwrap_or(u32::MAX);
        self.start + self.width.saturating_mul(bins)
    }

    pub(crate) fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }

    pub(crate) fn add_host(&mut self, id: NodeId, host: &Host) {
        for peer in host.peers() {
            let Some(name) = peer.application.name() else { continue };
            let samples = self.connections.entry((id, name)).or_default();
            samples.resize(self.bins, ConnectionSample::default());
            samples.push(sample(peer));
        }
    }

    /// Ends the bin: adds the samples of links, and starts the next bin.
    pub(crate) fn end_bin(&mut self, now: Instant, links: &[DuplexLink]) {
        for ((link, direction), samples) in &mut self.ways {
            let way = links[link.0].way(*direction);
            let stats = way.stats();
            samples.push(WaySample {
                queued: way.queued_packets(now),
                dropped: stats.dropped,
                lost: stats.lost,
                delivered: stats.delivered,
            });
        }
        self.bins += 1;
    }
}

/// Returns the growth of a count in each bin.
#[must_use]
pub fn increments<T>(samples: &[T], count: impl Fn(&T) -> u64) -> Vec<u64> {
    let mut before = 0;
    let grown = samples.iter().map(|sample| {
        let now = count(sample);
        now.saturating_sub(core::mem::replace(&mut before, now))
    });
    grown.collect()
}

fn sample(peer: &Peer) -> ConnectionSample {
    let stats = peer.connection.stats();
    ConnectionSample {
        window: stats.window,
        rtt: stats.rtt.smoothed,
        loss: stats.loss,
        in_flight: stats.in_flight,
        bytes_read: peer.application.bytes_read(),
        symbols_decoded: stats.symbols_decoded,
        symbols_sent: stats.symbols_sent,
        repairs_sent: stats.repairs_sent,
        packets_lost: stats.packets_lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_are_the_differences_from_zero_on() {
        assert_eq!(increments(&[3_u64, 3, 10], |count| *count), [3, 0, 7]);
    }

    #[test]
    fn bins_end_at_whole_widths_and_a_width_of_zero_has_an_end() {
        let mut series =
            Series::new(Instant::from_secs(5), Duration::from_millis(100), Vec::new(), Vec::new());
        for bin in 1..=30 {
            assert_eq!(series.next(), Instant::from_millis(5_000 + 100 * bin));
            series.end_bin(series.next(), &[]);
        }
        let series = Series::new(Instant::ZERO, Duration::ZERO, Vec::new(), Vec::new());
        assert!(series.next() > Instant::ZERO);
    }
}
