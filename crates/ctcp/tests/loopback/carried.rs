//! Connections through a relay.

use std::time::Duration;

use ctcp::{
    ClientPolicy, CloseReason, Connection, ConnectionError, Endpoint, HopRepair, RelayError, ServerConfig,
    TransportConfig,
};
use tokio::time::Instant;

use super::setup::{client, in_time, localhost, server};

/// A client, a relay and a server, and a connection over them.
struct Chain {
    client: Endpoint,
    server: Endpoint,
    /// Both ends of the carried connection, the client's first.
    ends: [Connection; 2],
    /// The relay's sides, that of the client first.
    sides: [Connection; 2],
    _relay: Endpoint,
    /// The hops of the ends, which last as long as a handle does.
    hops: [Connection; 2],
}

impl Chain {
    async fn new() -> Self {
        let repair = HopRepair::default();
        let (relay, relay_key) = server(TransportConfig::default());
        let client = client(TransportConfig::default());
        let key = ctcp::generate_key().unwrap();
        let server_key = key.public_key();
        let mut config = ServerConfig::new(localhost(), key, ClientPolicy::Any);
        config.relays([relay_key]);
        let server = Endpoint::server(config).unwrap();
        let [relay_address, server_address] =
            [&relay, &server].map(|endpoint| endpoint.local_addr().unwrap());
        let (first, relayed) = tokio::join!(client.connect(relay_address, relay_key), relay.accept());
        let (second, last) = tokio::join!(relay.connect(server_address, server_key), server.accept());
        let (first, relayed, second, last) =
            (first.unwrap(), relayed.unwrap(), second.unwrap(), last.unwrap());
        relayed.relay_to(&second, repair).unwrap();
        last.carry(repair).unwrap();
        let way = first.carry(repair).unwrap();
        let (mine, theirs) = tokio::join!(client.connect(way, server_key), server.accept());
        Self {
            client,
            server,
            ends: [mine.unwrap(), theirs.unwrap()],
            sides: [relayed, second],
            _relay: relay,
            hops: [first, last],
        }
    }
}

fn by_peer(code: u64, reason: &str) -> ConnectionError {
    ConnectionError::ClosedByPeer(CloseReason { by_application: true, code, reason: reason.to_owned() })
}

#[tokio::test]
async fn the_other_end_learns_why_an_endpoint_was_closed() {
    for by_client in [true, false] {
        let chain = in_time(Chain::new()).await;
        let (closing, [mine, theirs]) = (if by_client { &chain.client } else { &chain.server }, &chain.ends);
        let other = if by_client { theirs } else { mine };
        let begun = Instant::now();
        in_time(closing.close(0, "finished")).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(in_time(other.closed()).await, by_peer(0, "finished"));
        // The relay's other side is for the relay to close.
        let [near, far] = &chain.sides;
        let (gone, left) = if by_client { (near, far) } else { (far, near) };
        assert_eq!(in_time(gone.closed()).await, by_peer(0, "finished"));
        assert!(!left.is_closed());
    }
}

#[tokio::test]
async fn hops_with_symbols_of_different_sizes_are_not_joined() {
    let mut small = TransportConfig::default();
    small.symbol_size_max(1200);
    let (relay, relay_key) = server(TransportConfig::default());
    let (far, far_key) = server(small);
    let client = client(TransportConfig::default());
    let [relay_address, far_address] = [&relay, &far].map(|endpoint| endpoint.local_addr().unwrap());
    let (first, relayed) =
        in_time(async { tokio::join!(client.connect(relay_address, relay_key), relay.accept()) }).await;
    let second = in_time(relay.connect(far_address, far_key)).await.unwrap();
    let (_first, relayed) = (first.unwrap(), relayed.unwrap());
    let refused = relayed.relay_to(&second, HopRepair::default());
    assert_eq!(refused, Err(RelayError::DifferentSizes));
    assert!(!relayed.is_closed() && !second.is_closed());
}

#[tokio::test]
async fn a_side_that_fails_ends_the_way_at_once() {
    let chain = in_time(Chain::new()).await;
    chain.hops[1].close(3, "out of order");
    let lost = in_time(chain.ends[1].closed()).await;
    assert_eq!(lost, ConnectionError::RelayLost);
    assert_eq!(in_time(chain.sides[0].closed()).await, ConnectionError::ClosedLocally);
    assert_eq!(in_time(chain.ends[0].closed()).await, ConnectionError::RelayLost);
}
