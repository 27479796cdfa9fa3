//! How long keys live.

use core::time::Duration;

use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::{ReadOutcome, TransportConfig};

/// A connection that lives for so long while the client says a little every `pause`; the phases at its ends.
fn phases_after(time: Duration, pause: Duration) -> [(u64, u64); 2] {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    assert!(pair.run_until(Duration::from_secs(1), |pair| pair.client_connection().is_connected()));
    let end = pair.now + time;
    let id = pair.client_connection().open().expect("a stream");
    let (mut said, mut heard) = (0, 0);
    while pair.now < end {
        said += pair.client_connection().write(id, b"still here").expect("room");
        let next = pair.now + pause;
        pair.run_until(pause, |_| false);
        pair.now = next;
        let server = pair.server_connection().expect("it is up");
        let mut buffer = [0; 100];
        while let Ok(ReadOutcome::Data(count)) = server.read(id, &mut buffer) {
            heard += count;
        }
    }
    assert_eq!(heard, said);
    let server = pair.server_connection().expect("it is up").key_phases();
    [pair.client_connection().key_phases(), server]
}

#[test]
fn keys_are_renewed_every_two_minutes_on_both_sides() {
    assert_eq!(phases_after(Duration::from_secs(110), Duration::from_secs(1)), [(0, 0); 2]);
    assert_eq!(phases_after(Duration::from_secs(130), Duration::from_secs(1)), [(1, 1); 2]);
    assert_eq!(phases_after(Duration::from_secs(610), Duration::from_secs(1)), [(5, 5); 2]);
}

#[test]
fn an_almost_idle_connection_renews_its_keys_as_well() {
    let [client, server] = phases_after(Duration::from_secs(600), Duration::from_secs(25));
    assert!(client == server && (3..=5).contains(&client.0), "{client:?} {server:?}");
}
