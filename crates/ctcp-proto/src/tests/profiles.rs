//! What a client can make a server do to the network by choosing a profile.

use core::time::Duration;
use std::sync::Arc;

use ctcp_base::Rate;
use ctcp_netem::{LinkConfig, QueueLimit};

use super::pair::Pair;
use crate::{
    Catalogue, ConnectionError, Event, Grant, Mismatch, Profile, ProfileName, Ratio, ReadOutcome, Redundancy,
    StreamId, TransportConfig,
};

/// Duration of the download.
const TIME: Duration = Duration::from_secs(5);

/// The rate of the link.
const MEGABITS: u64 = 25;

/// What the server did.
#[derive(Debug)]
struct Outcome {
    granted: Profile,
    is_told: bool,
    /// Rate of the server into the link.
    megabits_per_second: f64,
    sent_per_useful_byte: f64,
}

/// A side whose profile is `profile`, which need not be one of those for general use.
fn with_own(profile: Profile) -> TransportConfig {
    let general = Catalogue::default();
    let is_known = general.profiles().iter().any(|known| known.name == profile.name);
    let catalogue = Arc::new(if is_known { general } else { general.with_profile(profile) });
    TransportConfig { profile, catalogue, ..TransportConfig::default() }
}

/// A client that asks for `asked` downloads for a while.
fn download(asked: Profile, grant: Grant, server: TransportConfig) -> Outcome {
    let link = LinkConfig {
        rate: Rate::from_megabits_per_second(MEGABITS),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(42),
        overhead: 28,
        ..LinkConfig::default()
    };
    let mut pair = Pair::granting(grant, link, server, 1);
    let begun = pair.now;
    pair.connect(with_own(asked));
    let (mut useful, mut stream, mut serving): (u64, Option<StreamId>, Option<StreamId>) = (0, None, None);
    let mut scratch = vec![0; 65_536];
    pair.run_until(TIME, |pair| {
        let now = pair.now;
        let client = pair.client_connection();
        if stream.is_none() && client.is_connected() {
            let id = client.open().expect("a stream");
            client.write(now, id, b"GET").expect("room");
            stream = Some(id);
        }
        while let Some(ReadOutcome::Data(count)) = stream.and_then(|id| client.read(id, &mut scratch).ok()) {
            useful += count as u64;
        }
        if let Some(server) = pair.server_connection() {
            serving = serving.or_else(|| server.accept());
            while serving.is_some_and(|id| server.write(now, id, &[7; 16_384]).is_ok()) {}
        }
        false
    });
    let (seconds, client) = ((pair.now - begun).as_secs_f64(), pair.client_connection());
    let (granted, is_told) = (client.profile().expect("it is up"), client.declined_profile() == Some(asked));
    let stats = pair.server_connection().expect("it is up").stats();
    let bytes = stats.bytes_sent + 28 * stats.datagrams_sent;
    Outcome {
        granted,
        is_told,
        megabits_per_second: bytes as f64 * 8e-6 / seconds,
        sent_per_useful_byte: bytes as f64 / useful.max(1) as f64,
    }
}

#[test]
fn a_client_that_asks_for_64_packets_per_symbol_gets_the_servers_own_profile() {
    let redundancy = Redundancy::fixed(Ratio::new(64.0).expect("in range"));
    let asked = Profile { redundancy, ..Profile::DEFAULT };
    let outcome = download(asked, Grant::default(), TransportConfig::default());
    println!("{outcome:?}");
    assert!(outcome.is_told && outcome.granted == Profile::default(), "{outcome:?}");
    assert!(outcome.megabits_per_second < MEGABITS as f64 * 1.1, "{outcome:?}");
    assert!(outcome.sent_per_useful_byte < 1.25, "{outcome:?}");
}

#[test]
fn a_profile_that_the_server_does_not_know_becomes_its_own() {
    let asked = Profile { name: ProfileName::new(77, "stranger"), ..Profile::DEFAULT };
    let outcome = download(asked, Grant::of([asked.name]), TransportConfig::default());
    assert!(outcome.is_told && outcome.granted == Profile::default(), "{outcome:?}");
}

#[test]
fn a_client_without_the_granted_profile_says_so() {
    let own = Profile { name: ProfileName::new(77, "laboratory"), ..Profile::DEFAULT };
    let mut pair = Pair::granting(Grant::nothing(), LinkConfig::default(), with_own(own), 1);
    pair.connect(TransportConfig::default());
    pair.run_until(TIME, |pair| !pair.client.events.is_empty());
    let lost = ConnectionError::NothingInCommon(Mismatch::Profile);
    assert_eq!(pair.client.events.first().map(|(_, event)| event), Some(&Event::Closed(lost)));
}

#[test]
fn a_profile_outside_of_the_catalogue_is_refused_at_the_start() {
    let stranger = Profile { name: ProfileName::new(77, "stranger"), ..Profile::DEFAULT };
    let config = TransportConfig { profile: stranger, ..TransportConfig::default() };
    assert_eq!(config.check(), Err("the profile, one of its parts or its rules are not in the catalogue"));
}
