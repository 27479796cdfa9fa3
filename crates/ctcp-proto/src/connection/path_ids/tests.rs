use super::*;

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("8 bytes")
}

fn exchanged() -> PathIds {
    let own: Vec<ConnectionId> = (11..15).map(id).collect();
    let peer: Vec<ConnectionId> = (21..25).map(id).collect();
    PathIds::new((id(10), &own), (id(20), &peer))
}

fn events(ids: &mut PathIds) -> Vec<EndpointEvent> {
    core::iter::from_fn(|| ids.poll_event()).collect()
}

#[test]
fn each_path_has_its_own_id_and_one_without_takes_that_of_an_earlier_path() {
    let ids = exchanged();
    assert_eq!([0, 1, 4, 5, 255].map(|path| ids.of_peer(PathId(path))), [20, 21, 24, 24, 24].map(id));
    assert_eq!([0, 1, 4].map(|path| ids.own(PathId(path))), [10, 11, 14].map(id));
    let alone = PathIds::new((id(1), &[]), (id(2), &[]));
    assert_eq!(alone.of_peer(PathId(3)), id(2));
}

#[test]
fn a_path_in_use_gives_ids_for_as_many_more_and_a_closed_one_retires_its_id_later() {
    let mut rng = SecretRng::new([7; 32]);
    let mut ids = exchanged();
    ids.on_used(PathId(1), &mut rng);
    assert_eq!(ids.due, [PathId(5)]);
    assert_eq!(events(&mut ids), [EndpointEvent::NewConnectionId(ids.own(PathId(5)))]);
    for path in 1..=4 {
        ids.on_closed(PathId(path));
    }
    assert_eq!(events(&mut ids), []);
    ids.on_closed(PathId(5));
    assert_eq!(events(&mut ids), [EndpointEvent::RetiredConnectionId(id(11))]);
    ids.tell(PathId(5));
    assert!(!ids.is_due(), "a closed path needs no id");
}

#[test]
fn a_connection_gives_ids_for_no_more_paths_than_there_are() {
    let mut rng = SecretRng::new([7; 32]);
    let mut ids = exchanged();
    for path in 1..=255 {
        ids.on_used(PathId(path), &mut rng);
        ids.on_closed(PathId(path));
    }
    assert_eq!(ids.own.last().map(|entry| entry.path), Some(PathId(255)));
    assert!(ids.own.len() <= 1 + SPARE, "{} ids", ids.own.len());
}

#[test]
fn without_an_exchange_no_ids_are_given_or_taken() {
    let mut ids = PathIds::new((id(1), &[]), (id(2), &[id(3)]));
    ids.on_used(PathId(1), &mut SecretRng::new([7; 32]));
    assert!(!ids.is_due());
    assert!(ids.on_given(PathId(2), id(4)).is_err());
}

#[test]
fn the_peers_ids_are_checked_and_bounded() {
    let mut ids = exchanged();
    assert_eq!(ids.on_given(PathId(4), id(24)), Ok(()));
    assert!(ids.on_given(PathId(4), id(25)).is_err());
    assert!(ids.on_given(PathId(5), ConnectionId::new(&[1; 7]).expect("7 bytes")).is_err());
    let given = (5..=255).filter(|&path| ids.on_given(PathId(path), id(path)).is_ok()).count();
    assert_eq!(given, PEER_IDS_MAX - 5);
}
