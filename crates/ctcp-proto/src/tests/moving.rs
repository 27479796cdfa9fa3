//! A client whose only address changes during a transfer.

use core::time::Duration;

use super::several::{Conditions, Several};
use crate::{ReadOutcome, StreamId, TransportConfig};

const RTT_MS: u64 = 20;
const CONDITIONS: [Conditions; 1] = [Conditions::new(20.0, RTT_MS, 0.0)];

/// Changes of the address in a transfer.
const MOVES: u8 = 50;

/// How long nothing passes while the address changes. The last acknowledgement from the old address is lost too, so that the server hears
/// of the new one only when the client speaks again.
const OUTAGE: Duration = Duration::from_millis(30);

/// A round trip and 100 ms without data from the first moment at which packets pass again.
const STALL_MAX: Duration = Duration::from_millis(RTT_MS + 100);

/// Changes the address again and again: twice the port only, as a NAT does, then the host. Returns the longest time without new bytes after
/// a change.
fn longest_stall(several: &mut Several, mut bytes: impl FnMut(&mut Several) -> u64) -> Duration {
    let mut longest = Duration::ZERO;
    for change in 0..MOVES {
        let client = &mut several.lines[0].client;
        client.set_port(client.port() + 1);
        if change % 3 == 2 {
            client.set_ip([10, 0, 1, change].into());
        }
        several.lines[0].is_cut = true;
        several.run(OUTAGE, |_| false);
        several.lines[0].is_cut = false;
        let (before, begun, mut resumed) = (bytes(several), several.now, None);
        several.run(Duration::from_millis(500), |several| {
            if bytes(several) > before && resumed.is_none() {
                resumed = Some(several.now);
            }
            false
        });
        longest = longest.max(resumed.expect("the transfer goes on") - begun);
    }
    longest
}

#[test]
fn a_download_goes_on_when_the_address_changes() {
    let mut several = Several::with_all_paths(&CONDITIONS, 1);
    several.request(u64::MAX);
    several.run(Duration::from_secs(2), |_| false);
    let longest = longest_stall(&mut several, |several| several.bytes_read());
    assert!(longest <= STALL_MAX, "{longest:?}");
}

#[test]
fn an_upload_goes_on_when_the_address_changes() {
    let mut several = Several::with_all_paths(&CONDITIONS, 1);
    let stream = several.client.open().expect("a stream");
    let mut received = 0;
    let mut bytes = |several: &mut Several| {
        received += exchange(several, stream);
        received
    };
    several.run(Duration::from_secs(2), |several| bytes(several) == u64::MAX);
    let longest = longest_stall(&mut several, bytes);
    assert!(longest <= STALL_MAX, "{longest:?}");
}

#[test]
fn an_upload_goes_on_after_a_client_slept() {
    let of_server = TransportConfig { idle_timeout: Duration::from_secs(180), ..TransportConfig::default() };
    let mut several = Several::with_configs(&CONDITIONS, 4, TransportConfig::default(), of_server);
    assert!(several.run(Duration::from_secs(5), |several| several.client.is_connected()));
    let stream = several.client.open().expect("a stream");
    let mut received = 0;
    several.run(Duration::from_secs(2), |several| {
        received += exchange(several, stream);
        false
    });
    several.is_suspended = true;
    several.run(Duration::from_secs(60), |_| false);
    several.lines[0].client.set_ip([10, 0, 1, 1].into());
    several.is_suspended = false;
    let (begun, before) = (several.now, received);
    let goes_on = |several: &mut Several| {
        received += exchange(several, stream);
        received > before + 1_000_000
    };
    assert!(several.run(Duration::from_secs(5), goes_on), "{:?}", several.now - begun);
}

/// A client that sleeps for a minute and wakes with another address, while it downloads or does nothing.
#[test]
fn a_client_that_sleeps_and_wakes_elsewhere_goes_on() {
    let of_server = TransportConfig { idle_timeout: Duration::from_secs(180), ..TransportConfig::default() };
    for bytes in [20_000_000, 0] {
        let config = TransportConfig::default();
        let mut several = Several::with_configs(&CONDITIONS, 3, config, of_server.clone());
        assert!(several.run(Duration::from_secs(5), |several| several.client.is_connected()));
        if bytes > 0 {
            several.request(bytes);
        }
        several.run(Duration::from_secs(2), |_| false);
        several.is_suspended = true;
        several.run(Duration::from_secs(60), |_| false);
        several.lines[0].client.set_ip([10, 0, 1, 1].into());
        several.is_suspended = false;
        let read = several.bytes_read();
        let begun = several.now;
        if bytes > 0 {
            assert!(several.run(Duration::from_secs(5), |several| several.bytes_read() > read));
            assert!(several.now - begun < Duration::from_millis(200), "{:?}", several.now - begun);
            assert!(several.run(Duration::from_secs(60), |several| several.is_done()));
        }
        several.download(10_000);
    }
}

/// Opening a stream after a pause puts the deadline for checking a silent peer in the past. That is no suspension: no timer was set for it.
#[test]
fn a_client_that_does_nothing_is_not_taken_for_suspended_when_it_asks_for_something() {
    let config = TransportConfig { keep_alive: None, ..TransportConfig::default() };
    let idle = config.idle_timeout;
    let mut several = Several::with_configs(&CONDITIONS, 5, config.clone(), config);
    assert!(several.run(Duration::from_secs(5), |several| several.client.is_connected()));
    several.run(idle - Duration::from_secs(5), |_| false);
    several.server = None;
    several.request(1_000);
    let begun = several.now;
    assert!(several.run(idle, |several| several.client.is_closed()), "the silence counts from the start");
    assert!(several.now - begun < Duration::from_secs(6), "{:?}", several.now - begun);
}

#[test]
fn a_request_just_before_the_idle_timeout_is_answered_by_a_server_that_keeps_the_connection() {
    let config = TransportConfig { keep_alive: None, ..TransportConfig::default() };
    let of_server = TransportConfig { idle_timeout: Duration::from_secs(180), ..config.clone() };
    let idle = config.idle_timeout;
    let mut several = Several::with_configs(&CONDITIONS, 6, config, of_server);
    assert!(several.run(Duration::from_secs(5), |several| several.client.is_connected()));
    // What is left of the handshake arrives meanwhile.
    several.run(Duration::from_secs(1), |_| false);
    several.run(idle - Duration::from_millis(1_010), |_| false);
    several.download(1_000);
}

/// Writes what there is room for and returns how many bytes the server has read.
fn exchange(several: &mut Several, stream: StreamId) -> u64 {
    while several.client.write(several.now, stream, &[7; 65_536]).is_ok() {}
    let (mut read, mut scratch) = (0, vec![0; 65_536]);
    let Some(server) = &mut several.server else { return 0 };
    while let Ok(ReadOutcome::Data(count)) = server.read(stream, &mut scratch) {
        read += count as u64;
    }
    read
}
