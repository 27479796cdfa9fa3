//! What a hostile peer with a valid key can do.

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::wire::{AckRanges, Combination, DecoderReport, Frame, PathAck};
use crate::{Connection, ConnectionError, ContextId, NetworkPath, TransportConfig, TransportErrorCode};

/// A connected pair. From now on the test plays the client.
struct Hostile {
    pair: Pair,
    now: Instant,
}

impl Hostile {
    fn new() -> Self {
        let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
        pair.connect(TransportConfig::default());
        let is_up =
            |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == crate::Event::Connected);
        assert!(pair.run_until(Duration::from_secs(1), is_up));
        let now = pair.now;
        Self { pair, now }
    }

    fn server(&mut self) -> &mut Connection {
        self.pair.server_connection().expect("it is up")
    }

    /// The client sends a packet with these frames.
    fn say(&mut self, frames: &[Frame<'_>]) {
        let now = self.now;
        let from_client = NetworkPath { local: None, remote: self.pair.client.address };
        let mut datagram = self.pair.client_connection().forge(now, frames);
        self.server().handle_datagram(now, from_client, None, &mut datagram);
    }

    /// Drains the server's datagrams and returns their number.
    fn drain(&mut self) -> usize {
        let now = self.now;
        let mut buffer = Vec::new();
        let mut count = 0;
        while self.server().poll_transmit(now, &mut buffer).is_some() {
            count += 1;
        }
        count
    }

    /// Lets time pass. Returns how often the server had to be woken.
    fn wait(&mut self, time: Duration) -> usize {
        let end = self.now + time;
        let mut wakes = 0;
        while let Some((deadline, _)) = self.server().poll_timeout().filter(|(deadline, _)| *deadline <= end)
        {
            self.now = self.now.max(deadline);
            let now = self.now;
            self.server().handle_timeout(now);
            self.drain();
            wakes += 1;
            assert!(wakes < 10_000, "it spins");
        }
        self.now = end;
        wakes
    }
}

#[test]
fn a_client_that_never_acknowledges_neither_stops_the_server_nor_makes_it_spin() {
    let mut hostile = Hostile::new();
    // Each packet elicits an ACK, but none of the server's own packets, starting with its MTU probes, is acknowledged.
    for _ in 0..20_000 {
        hostile.say(&[Frame::Ping]);
        hostile.wait(Duration::from_micros(500));
    }
    assert!(!hostile.server().is_closed());
    let before = hostile.server().stats().datagrams_sent;
    hostile.say(&[Frame::Ping]);
    hostile.wait(Duration::from_millis(50));
    assert!(hostile.server().stats().datagrams_sent > before, "it still answers");
    let wakes = hostile.wait(Duration::from_secs(10));
    assert!(wakes < 100, "{wakes} wake-ups in ten idle seconds");
}

/// An ACK of all numbers from 0 to `largest`.
fn all_up_to(largest: u64) -> PathAck {
    PathAck {
        path: crate::PathId(0),
        ranges: AckRanges::from_descending([(0, largest)]).expect("a range"),
        delay: Duration::ZERO,
        ecn: None,
    }
}

#[test]
fn a_client_that_acknowledges_unreceived_packets_is_detected_soon() {
    let mut hostile = Hostile::new();
    let id = hostile.server().open().expect("a stream");
    for _ in 0..200 {
        let now = hostile.now;
        while hostile.server().write(now, id, &[7; 4_096]).is_ok() {}
        hostile.drain();
        let sent = hostile.server().stats().datagrams_sent;
        // The client reads nothing and only counts packets.
        hostile.say(&[Frame::PathAck(all_up_to(sent.saturating_sub(2)))]);
        hostile.wait(Duration::from_millis(1));
        if hostile.server().is_closed() {
            break;
        }
    }
    let mut fault = None;
    while let Some(event) = hostile.server().poll_event() {
        if let crate::Event::Closed(ConnectionError::PeerFault(error)) = event {
            fault = Some(error.code);
        }
    }
    assert_eq!(fault, Some(TransportErrorCode::ProtocolViolation));
    assert!(hostile.server().stats().datagrams_sent < 400);
}

#[test]
fn a_key_share_without_a_secret_ends_the_connection() {
    let mut hostile = Hostile::new();
    hostile.say(&[Frame::KeyShare([0; 32])]);
    assert!(hostile.server().is_closed());
}

#[test]
fn key_shares_cost_a_server_one_answer_a_minute() {
    let mut hostile = Hostile::new();
    for share in 1..=100 {
        hostile.say(&[Frame::KeyShare([share; 32])]);
        hostile.wait(Duration::from_millis(100));
    }
    assert!(!hostile.server().is_closed());
    assert!(!hostile.server().has_answered_key_share());
    assert_eq!(hostile.server().key_phases(), (0, 0));
}

#[test]
fn a_frame_of_an_unknown_type_is_skipped_and_elicits_an_acknowledgement_if_its_type_is_even() {
    let mut hostile = Hostile::new();
    hostile.wait(Duration::from_secs(1));
    for (kind, is_answered) in [(0x41, false), (0x1000, true)] {
        hostile.say(&[Frame::Skippable { kind, contents: &[7; 20] }]);
        let before = hostile.server().stats().datagrams_sent;
        hostile.wait(Duration::from_millis(20));
        assert_eq!(hostile.server().stats().datagrams_sent > before, is_answered, "{kind:#x}");
    }
    assert!(!hostile.server().is_closed());
}

#[test]
fn a_report_of_symbols_that_were_never_sent_is_a_protocol_violation() {
    let mut hostile = Hostile::new();
    let report = DecoderReport { number: 1, known_end: 1, ..DecoderReport::default() };
    hostile.say(&[Frame::DecoderReport(ContextId::Streams, report)]);
    assert!(hostile.server().is_closed());
}

#[test]
fn false_reports_stop_repairs_and_nothing_else() {
    let mut hostile = Hostile::new();
    let now = hostile.now;
    let id = hostile.server().open().expect("a stream");
    while hostile.server().write(now, id, &[7; 4_096]).is_ok() {}
    hostile.server().send_message(now, &[1; 100], Duration::from_millis(100)).expect("it is queued");
    hostile.wait(Duration::from_millis(90));
    let sent = hostile.server().stats().symbols_sent;
    assert!(sent > 10, "{sent} symbols");
    // The client has acknowledged nothing, has decoded much, and then nothing again.
    for (number, decoded) in [(1, true), (2, false), (3, true), (4, false)] {
        for (context, end) in [(ContextId::Streams, 10), (ContextId::Messages, 1)] {
            let decoded = if decoded { end } else { 0 };
            let report = DecoderReport {
                number,
                oldest_undecoded: decoded,
                oldest_unseen: decoded,
                known_end: end,
                reported_end: end,
                ..DecoderReport::default()
            };
            hostile.say(&[Frame::DecoderReport(context, report)]);
        }
        let wakes = hostile.wait(Duration::from_secs(2));
        assert!(wakes < 200, "{wakes} wake-ups");
    }
    assert!(!hostile.server().is_closed());
    assert_eq!(hostile.server().stats().symbols_sent, sent, "acknowledgements open the window, not reports");
}

#[test]
fn a_combination_in_a_context_that_was_not_granted_is_a_protocol_violation() {
    let mut hostile = Hostile::new();
    let symbol = Combination::Source { index: 0, floor: 0, symbol: &[0, 1, 2] };
    hostile.say(&[Frame::Combination(ContextId::Relayed, symbol)]);
    assert!(hostile.server().is_closed());
}
