//! The lifetime of keys.

use core::time::Duration;

use ctcp_base::Probability;
use ctcp_netem::{LinkConfig, LossModel};

use super::pair::Pair;
use crate::{ReadOutcome, TransportConfig};

fn phases_after(time: Duration, pause: Duration) -> [(u64, u64); 2] {
    phases_on(LinkConfig::default(), time, pause)
}

/// Runs a connection for `time` with a small write by the client every `pause`. Returns the phases at both sides.
fn phases_on(link: LinkConfig, time: Duration, pause: Duration) -> [(u64, u64); 2] {
    let mut pair = Pair::new(link, TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    assert!(pair.run_until(Duration::from_secs(5), |pair| pair.client_connection().is_connected()));
    let end = pair.now + time;
    let id = pair.client_connection().open().expect("a stream");
    let (mut said, mut heard) = (0, 0);
    while pair.now < end {
        let now = pair.now;
        said += pair.client_connection().write(now, id, b"still here").expect("room");
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
    let is_exchanged = pair.server_connection().expect("it is up").has_answered_key_share();
    assert_eq!(is_exchanged, time > Duration::from_secs(120));
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

#[test]
fn keys_are_renewed_on_a_lossy_path() {
    for loss in [0.1, 0.3] {
        let loss = LossModel::Bernoulli(Probability::new(loss).expect("a share"));
        let link = LinkConfig { delay: Duration::from_millis(50), loss, ..LinkConfig::default() };
        let [client, server] = phases_on(link, Duration::from_secs(1_250), Duration::from_secs(1));
        assert!(client == server && (9..=10).contains(&client.0), "{client:?} {server:?}");
    }
}
