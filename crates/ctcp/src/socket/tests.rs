use super::*;

fn localhost() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)
}

async fn open(address: SocketAddr) -> (Socket, SocketAddr) {
    let socket = bind(Some(address)).unwrap();
    let local = socket.local_addr().unwrap();
    let socket = Socket::new(socket, Arc::default()).unwrap();
    core::future::poll_fn(|context| socket.poll_writable(context)).await;
    (socket, local)
}

fn train(destination: SocketAddr, segment_size: usize) -> Train {
    Train { destination, source: None, ecn: None, segment_size }
}

/// Receives at least `number` datagrams, as (remote, local, ecn, bytes).
async fn receive(socket: &Socket, number: usize) -> Vec<(SocketAddr, Option<IpAddr>, Option<Ecn>, Vec<u8>)> {
    let mut batch = ReceiveBatch::new();
    let mut found = Vec::new();
    while found.len() < number {
        core::future::poll_fn(|context| socket.poll_readable(context)).await;
        if socket.try_receive(&mut batch).unwrap() {
            for received in batch.iter_mut() {
                let Received { remote, local, ecn, .. } = received;
                let datagrams = received.bytes.chunks(received.segment_size);
                found.extend(datagrams.map(|bytes| (remote, local, ecn, bytes.to_vec())));
            }
        }
    }
    found
}

#[tokio::test]
async fn a_train_arrives_as_its_datagrams() {
    let ((mut sender, from), (receiver, to)) = (open(localhost()).await, open(localhost()).await);
    let bytes: Vec<u8> = (0..10 * 1200 + 300).map(|index| (index / 1200) as u8).collect();
    if sender.train_length_max() > 10 {
        assert!(sender.try_send(&train(to, 1200), &bytes));
    } else {
        assert!(bytes.chunks(1200).all(|datagram| sender.try_send(&train(to, 1200), datagram)));
    }
    let arrived = receive(&receiver, 11).await;
    assert_eq!(arrived.iter().map(|(.., bytes)| bytes.clone()).collect::<Vec<_>>().concat(), bytes);
    for (index, (remote, local, _, bytes)) in arrived.iter().enumerate() {
        assert_eq!((*remote, *local), (from, Some(to.ip())), "datagram {index}");
        assert_eq!(bytes.len(), if index == 10 { 300 } else { 1200 });
    }
    assert_eq!(sender.counters.snapshot().sent, 11);
    assert_eq!(receiver.counters.snapshot().received, 11);
}

#[tokio::test]
async fn the_mark_of_a_single_datagram_arrives() {
    let ((mut sender, _), (receiver, to)) = (open(localhost()).await, open(localhost()).await);
    for mark in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        assert!(sender.try_send(&Train { ecn: Some(mark), ..train(to, 5) }, b"hello"));
        let (_, _, ecn, _) = receive(&receiver, 1).await.remove(0);
        assert_eq!(ecn, Some(mark));
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_mark_of_a_train_arrives_with_address_and_timestamp() {
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
    for address in [localhost(), any] {
        if bind(Some(address)).is_err() {
            continue; // There is no IPv6 here.
        }
        let ((mut sender, _), (receiver, to)) = (open(localhost()).await, open(address).await);
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), to.port());
        for (mark, count) in [(Ecn::Ect0, 10), (Ecn::Ce, 10), (Ecn::Ce, 1)] {
            let marked = Train { ecn: Some(mark), ..train(to, 1_200) };
            assert!(sender.try_send(&marked, &vec![7; 1_200 * count]));
            let arrived = receive(&receiver, count).await;
            assert_eq!(arrived.len(), count);
            for (_, local, ecn, bytes) in arrived {
                assert_eq!((local, ecn, bytes.len()), (Some(to.ip()), Some(mark), 1_200), "{address}");
            }
        }
        // A datagram without a mark does not inherit an earlier one.
        assert!(sender.try_send(&train(to, 5), b"plain"));
        assert_eq!(receive(&receiver, 1).await[0].2, None);
        let mut batch = ReceiveBatch::new();
        assert!(sender.try_send(&train(to, 5), b"stamp"));
        core::future::poll_fn(|context| receiver.poll_readable(context)).await;
        assert!(receiver.try_receive(&mut batch).unwrap());
        assert!(batch.iter_mut().all(|received| received.stamp.is_some()));
    }
}

#[tokio::test]
async fn mapped_addresses_stay_inside() {
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
    if bind(Some(any)).is_err() {
        return; // There is no IPv6 here.
    }
    let (mut both, _) = open(any).await;
    let (receiver, to) = open(localhost()).await;
    assert!(both.try_send(&train(to, 5), b"hello"));
    let (remote, ..) = receive(&receiver, 1).await.remove(0);
    assert!(remote.is_ipv4());
    let mut receiver = receiver;
    assert!(receiver.try_send(&train(remote, 3), b"yes"));
    let (remote, local, _, bytes) = receive(&both, 1).await.remove(0);
    assert_eq!((remote, local, bytes), (to, Some(Ipv4Addr::LOCALHOST.into()), b"yes".to_vec()));
}

#[tokio::test]
async fn datagrams_that_the_system_refuses_count_as_lost_and_offload_stays() {
    let ((mut sender, _), (receiver, to)) = (open(localhost()).await, open(localhost()).await);
    let offload = sender.train_length_max();
    // Sending to port 0 is an invalid argument.
    let nowhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    assert!(sender.try_send(&train(nowhere, 100), &[0; 250]));
    let stats = sender.counters.snapshot();
    assert_eq!((stats.sent, stats.send_errors), (0, 3));
    assert!(sender.try_send(&train(to, 3), b"yes"));
    assert_eq!(receive(&receiver, 1).await.len(), 1);
    assert_eq!(sender.train_length_max(), offload);
}

#[tokio::test]
async fn a_source_address_that_is_gone_is_replaced_by_the_systems_choice() {
    let ((mut sender, from), (receiver, to)) = (open(localhost()).await, open(localhost()).await);
    let offload = sender.train_length_max();
    // TEST-NET-1 (RFC 5737): not a local address.
    let gone = Train { source: Some(Ipv4Addr::new(192, 0, 2, 1).into()), ..train(to, 100) };
    assert!(sender.try_send(&gone, &[7; 250]));
    let arrived = receive(&receiver, 3).await;
    assert!(arrived.iter().all(|(remote, ..)| *remote == from));
    assert_eq!(sender.counters.snapshot().send_errors, 0);
    assert_eq!(sender.train_length_max(), offload);
}

#[tokio::test]
async fn sending_to_a_closed_port_does_not_break_the_socket() {
    let (mut sender, from) = open(localhost()).await;
    let silent = StdUdpSocket::bind(localhost()).unwrap();
    let closed = silent.local_addr().unwrap();
    drop(silent);
    // Some systems report the resulting ICMP message at the next call.
    assert!(sender.try_send(&train(closed, 5), b"hello"));
    assert!(sender.try_send(&train(from, 5), b"still"));
    assert_eq!(receive(&sender, 1).await.len(), 1);
}

#[test]
fn address_families_that_cannot_reach_each_other_are_known() {
    let v4 = localhost();
    let v6 = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 1);
    let any6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 1);
    let mapped = SocketAddr::new(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(), 1);
    let table = [(v4, v4), (v4, v6), (v6, v4), (any6, v4), (v6, v6), (v4, mapped)];
    assert_eq!(table.map(|(local, remote)| can_reach(local, remote)), [true, false, false, true, true, true]);
}

#[test]
fn without_an_address_the_socket_serves_both_families_if_there_are_two() {
    let local = bind(None).unwrap().local_addr().unwrap();
    assert!(local.ip().is_unspecified());
    assert!(can_reach(local, localhost()));
}
