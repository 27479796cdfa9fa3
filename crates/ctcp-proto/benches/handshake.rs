//! The processor time of a handshake: `cargo bench -p ctcp-proto`.
#![allow(missing_docs, reason = "criterion's macros write items without documentation")]
#![allow(clippy::print_stdout, reason = "the bytes belong to the result")]

use core::hint::black_box;
use core::net::SocketAddr;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ctcp_base::Instant;
use ctcp_proto::{
    ClientPolicy, Connection, DatagramOutcome, Endpoint, EndpointConfig, NetworkPath, SecretKey,
    TransportConfig,
};

const NOW: Instant = Instant::from_secs(1);

fn path(last: u8) -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, last], 1000)) }
}

/// An endpoint per handshake, because the rate of handshakes is limited.
fn server() -> Endpoint {
    Endpoint::new(EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any), [4; 32])
}

fn client() -> Endpoint {
    Endpoint::new(EndpointConfig::client(SecretKey::from_bytes([1; 32])), [3; 32])
}

fn flight(connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut buffer = Vec::new();
    core::iter::from_fn(|| connection.poll_transmit(NOW, &mut buffer).map(|_| buffer.clone())).collect()
}

/// The client's connection and its first datagrams.
fn begin(client: &mut Endpoint) -> (Connection, Vec<Vec<u8>>) {
    let key = SecretKey::from_bytes([2; 32]).public_key();
    let (_, mut connection) =
        client.connect(NOW, path(2).remote, key, TransportConfig::default()).expect("a valid configuration");
    let datagrams = flight(&mut connection);
    (connection, datagrams)
}

/// The server's connection and its answer.
fn answer(server: &mut Endpoint, datagrams: &[Vec<u8>]) -> (Connection, Vec<Vec<u8>>) {
    for datagram in datagrams {
        if let DatagramOutcome::Incoming(incoming) = server.handle_datagram(NOW, path(1), None, datagram) {
            let (_, mut connection) = server.accept(NOW, *incoming).expect("room");
            let datagrams = flight(&mut connection);
            return (connection, datagrams);
        }
    }
    panic!("the server accepts anybody");
}

fn finish(connection: &mut Connection, datagrams: &[Vec<u8>]) {
    for datagram in datagrams {
        connection.handle_datagram(NOW, path(2), None, &mut datagram.clone());
    }
    assert!(connection.is_connected());
}

fn handshakes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handshake");
    group.bench_function("client begins", |bencher| {
        bencher.iter_batched_ref(client, |client| black_box(begin(client)), BatchSize::SmallInput);
    });
    group.bench_function("server answers", |bencher| {
        bencher.iter_batched_ref(
            || (server(), begin(&mut client()).1),
            |(server, datagrams)| black_box(answer(server, datagrams)),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("client finishes", |bencher| {
        bencher.iter_batched_ref(
            || {
                let (connection, datagrams) = begin(&mut client());
                (connection, answer(&mut server(), &datagrams).1)
            },
            |(connection, datagrams)| finish(connection, datagrams),
            BatchSize::SmallInput,
        );
    });
    group.finish();
    let (mut connection, sent) = begin(&mut client());
    let (_, answered) = answer(&mut server(), &sent);
    finish(&mut connection, &answered);
    let sizes = |datagrams: &[Vec<u8>]| datagrams.iter().map(Vec::len).collect::<Vec<_>>();
    println!("bytes of the datagrams: client {:?}, server {:?}", sizes(&sent), sizes(&answered));
}

criterion_group!(benches, handshakes);
criterion_main!(benches);
