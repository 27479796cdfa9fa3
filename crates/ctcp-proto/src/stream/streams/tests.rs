use super::*;
use crate::error::{TransportError, TransportErrorCode};
use crate::id::SymbolIndex;
use crate::stream::Control;
use crate::stream::flight::Lane;
use crate::stream::flow_control::Pace;
use crate::stream::flow_control::STREAMS_MAX;
use crate::stream::send::SEND_BUFFER_BLOCKED;
use crate::stream::{OpenError, ReadError, ReadOutcome, StreamEvent, UnknownStream, WriteError};
use crate::wire::VARINT_MAX;
use crate::wire::{StreamFrame, SymbolBuilder, frames_in_symbol};

const SYMBOL: usize = 1202;

fn pair(config: StreamsConfig) -> (Streams, Streams) {
    let (mut client, mut server) = (Streams::new(Role::Client, config), Streams::new(Role::Server, config));
    for side in [&mut client, &mut server] {
        side.set_peer_limits(config.max_data, config.max_stream_data, config.max_streams);
    }
    (client, server)
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    core::iter::from_fn(|| streams.poll_event()).collect()
}

#[test]
fn bytes_written_on_one_side_are_read_on_the_other_and_no_state_remains() {
    let (mut client, mut server) = pair(StreamsConfig::default());
    let id = client.open().unwrap();
    assert_eq!(client.write(id, b"question"), Ok(8));
    client.finish(id).unwrap();
    let mut symbol = Vec::new();
    assert!(client.fill_symbol(Lane::Bulk, 0, 1200, &mut symbol));
    assert!(!client.fill_symbol(Lane::Bulk, 1, 1200, &mut Vec::new()));

    server.on_symbol_decoded(&symbol).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Opened]);
    assert_eq!(server.accept(), Some(id));
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
    let mut out = [0; 100];
    assert_eq!(server.read(id, &mut out), Ok(ReadOutcome::Data(8)));
    assert_eq!(&out[..8], b"question");
    assert_eq!(server.read(id, &mut out), Ok(ReadOutcome::Finished));

    server.finish(id).unwrap();
    assert!(server.fill_symbol(Lane::Bulk, 0, 1200, &mut symbol));
    client.on_symbol_decoded(&symbol).unwrap();
    client.on_peer_decoded_below(Lane::Bulk, 1);
    server.on_peer_decoded_below(Lane::Bulk, 1);
    assert_eq!(events(&mut client), [StreamEvent::Readable(id), StreamEvent::Finished(id)]);
    assert_eq!(client.read(id, &mut out), Ok(ReadOutcome::Finished));
    assert_eq!(events(&mut server), [StreamEvent::Finished(id)]);
    assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
    assert_eq!(server.read(StreamId(0), &mut out), Err(ReadError::UnknownStream));
}

/// Small windows, so that tests reach them.
const PACE: Pace = Pace { now: Instant::ZERO, rtt: core::time::Duration::ZERO };

const TIGHT: StreamsConfig = StreamsConfig::fixed(10_000, 4_000, 4);

fn controls(streams: &mut Streams) -> Vec<Control> {
    core::iter::from_fn(|| streams.poll_control(PACE)).collect()
}

/// Fills symbols until nothing can be sent, and returns them.
fn symbols(streams: &mut Streams, first: SymbolIndex) -> Vec<Vec<u8>> {
    let fill = |index| {
        let mut symbol = Vec::new();
        streams.fill_symbol(Lane::Bulk, index, SYMBOL, &mut symbol).then_some(symbol)
    };
    (first..).map_while(fill).collect()
}

fn read_all(streams: &mut Streams, id: StreamId) -> usize {
    let (mut out, mut total) = (vec![0; 3000], 0);
    while let Ok(ReadOutcome::Data(count)) = streams.read(id, &mut out) {
        total += count;
    }
    total
}

/// A symbol with one frame, as any peer could send it.
fn symbol_of(id: u64, offset: u64, data: &[u8], fin: bool) -> Vec<u8> {
    let mut symbol = SymbolBuilder::new(SYMBOL);
    symbol.push(StreamFrame { id: StreamId(id), offset, data, fin });
    symbol.finish()
}

fn fault(result: Result<(), TransportError>) -> TransportErrorCode {
    result.expect_err("a violation by the peer").code
}

#[test]
fn a_reader_that_pauses_stops_its_sender_but_not_other_streams() {
    let (mut client, mut server) = pair(TIGHT);
    let (stuck, other) = (client.open().unwrap(), client.open().unwrap());
    assert_eq!(client.write(stuck, &[1; 100_000]), Ok(SEND_BUFFER_BLOCKED));
    let sent = symbols(&mut client, 0);
    sent.iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    assert_eq!(server.received_bytes_held(), 4000);
    assert!(!client.has_data_to_send() && client.is_blocked_by_credit());
    assert_eq!(client.queued_bytes(), SEND_BUFFER_BLOCKED - 4000);
    assert_eq!(controls(&mut server), []);

    client.write(other, &[2; 3000]).unwrap();
    assert!(client.has_data_to_send() && !client.is_blocked_by_credit());
    symbols(&mut client, 10).iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    assert_eq!(read_all(&mut server, other), 3000);

    // It reads again, and the sender continues.
    assert_eq!(read_all(&mut server, stuck), 4000);
    let told = controls(&mut server);
    let credit = |id, credit| Control::MaxStreamData { id, credit };
    assert_eq!(told, [Control::MaxData(17_000), credit(other, 7000), credit(stuck, 8000)]);
    client.on_max_stream_data(stuck, 8000).unwrap();
    client.on_max_data(17_000).unwrap();
    symbols(&mut client, 20).iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    assert_eq!(read_all(&mut server, stuck), 4000);
}

#[test]
fn unread_data_of_all_streams_stays_within_the_connection_window() {
    let (mut client, mut server) = pair(TIGHT);
    for _ in 0..4 {
        let id = client.open().unwrap();
        client.write(id, &[1; 50_000]).unwrap();
    }
    symbols(&mut client, 0).iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    assert_eq!(server.received_bytes_held(), 10_000);
    assert!(client.is_blocked_by_credit());
}

#[test]
fn a_hundred_bulk_streams_share_and_a_small_one_is_in_the_next_symbol() {
    let (mut client, _) = pair(StreamsConfig::default());
    let bulk: Vec<StreamId> = (0..100).map(|_| client.open().unwrap()).collect();
    for id in &bulk {
        client.write(*id, &[1; 100_000]).unwrap();
    }
    let mut sent = BTreeMap::new();
    let mut symbol = Vec::new();
    for index in 0..4000 {
        assert!(client.fill_symbol(Lane::Bulk, index, SYMBOL, &mut symbol));
        for frame in frames_in_symbol(&symbol).unwrap().map(Result::unwrap) {
            *sent.entry(frame.id).or_insert(0) += frame.data.len();
        }
        if index > 2000 && index % 500 == 0 {
            let small = client.open().unwrap();
            client.write(small, b"a few words").unwrap();
            client.finish(small).unwrap();
            client.fill_symbol(Lane::Bulk, 10_000 + index, SYMBOL, &mut symbol);
            let first = frames_in_symbol(&symbol).unwrap().next().unwrap().unwrap();
            assert_eq!((first.id, first.data, first.fin), (small, &b"a few words"[..], true));
        }
    }
    let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
    assert_eq!(sent.len(), 100);
    // As in the scheduler's own test, plus the headers, which the scheduler counts but this test does not.
    assert!(most - least <= 5 * SYMBOL, "{least} to {most} bytes");
}

#[test]
fn a_blocked_writer_is_notified_once_when_half_its_buffer_is_free() {
    let (mut client, _) = pair(StreamsConfig::default());
    let id = client.open().unwrap();
    assert_eq!(client.write(id, &vec![1; SEND_BUFFER_MAX + 1]), Ok(SEND_BUFFER_MAX));
    assert_eq!(client.write(id, &[1]), Err(WriteError::Blocked));
    assert_eq!(client.write(id, &[]), Ok(0));
    let mut symbol = Vec::new();
    let mut index = 0;
    while events(&mut client).is_empty() {
        assert!(client.fill_symbol(Lane::Bulk, index, SYMBOL, &mut symbol));
        index += 1;
    }
    assert!((SEND_BUFFER_MAX / 2 - SYMBOL..=SEND_BUFFER_MAX / 2).contains(&client.queued_bytes()));
    client.fill_symbol(Lane::Bulk, index, SYMBOL, &mut symbol);
    assert_eq!(events(&mut client), [], "no writer is waiting");
    assert_eq!(client.write(id, &[1]), Ok(1));
}

#[test]
fn many_streams_without_credit_queue_little_more_than_the_total() {
    let (mut server, _) = pair(StreamsConfig::default());
    server.set_peer_limits(0, 0, 4096);
    let data = vec![1; SEND_BUFFER_MAX];
    for _ in 0..4096 {
        let id = server.open().unwrap();
        assert!(server.write(id, &data).unwrap() >= SEND_BUFFER_MIN);
    }
    let most = SEND_TOTAL_MAX + 4096 * SEND_BUFFER_MIN;
    assert!((SEND_TOTAL_MAX..=most).contains(&server.queued_bytes()), "{} bytes", server.queued_bytes());
}

#[test]
fn a_peer_opens_no_more_streams_than_allowed_until_some_close() {
    let (mut client, mut server) = pair(TIGHT);
    let ids: Vec<StreamId> = (0..4).map(|_| client.open().unwrap()).collect();
    assert_eq!(client.open(), Err(OpenError::LimitReached));
    assert_eq!(
        fault(server.on_symbol_decoded(&symbol_of(16, 0, b"x", false))),
        TransportErrorCode::StreamLimit
    );
    assert_eq!(fault(server.on_reset_stream(StreamId(16), 0, 0)), TransportErrorCode::StreamLimit);

    // The last one opens those below it.
    server.on_symbol_decoded(&symbol_of(ids[3].0, 0, b"", true)).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Opened]);
    let accepted: Vec<StreamId> = core::iter::from_fn(|| server.accept()).collect();
    assert_eq!(accepted, ids);
    assert_eq!(server.open_streams(), 4);

    assert_eq!(read_all(&mut server, ids[3]), 0);
    server.reset(ids[3], 0).unwrap();
    events(&mut server);
    assert_eq!(server.open_streams(), 4, "the peer does not know of the reset");
    let reset = Control::ResetStream { id: ids[3], code: 0, final_size: 0 };
    assert_eq!(controls(&mut server), [reset]);
    server.on_control_acked(&reset);
    assert_eq!(server.open_streams(), 3);
    assert_eq!(controls(&mut server), [Control::MaxStreams(5)]);
    client.on_max_streams(5).unwrap();
    client.on_max_streams(3).unwrap();
    assert_eq!(events(&mut client), [StreamEvent::Available]);
    assert!(client.open().is_ok());
    assert!(client.open().is_err());
}

#[test]
fn frames_for_unopened_streams_are_violations() {
    let (mut client, _) = pair(TIGHT);
    client.open().unwrap();
    for id in [4, 2, 3] {
        let id = StreamId(id);
        assert_eq!(
            fault(client.on_symbol_decoded(&symbol_of(id.0, 0, b"x", false))),
            TransportErrorCode::StreamState
        );
        assert_eq!(fault(client.on_max_stream_data(id, 9)), TransportErrorCode::StreamState);
        assert_eq!(fault(client.on_reset_stream(id, 0, 0)), TransportErrorCode::StreamState);
        assert_eq!(fault(client.on_stop_sending(id, 0)), TransportErrorCode::StreamState);
    }
    assert_eq!(fault(client.on_max_streams(STREAMS_MAX + 1)), TransportErrorCode::FrameEncoding);
}

#[test]
fn symbols_without_stream_frames_are_violations() {
    let (mut client, _) = pair(TIGHT);
    for symbol in [&[0, 1, 0x20][..], &[0, 2, 8], &[9], &[0, 0, 1], &[0, 3, 0x0a, 1, 5]] {
        assert_eq!(fault(client.on_symbol_decoded(symbol)), TransportErrorCode::SymbolEncoding, "{symbol:?}");
    }
}

#[test]
fn data_for_a_closed_stream_is_counted_and_ignored() {
    let (mut client, mut server) = pair(TIGHT);
    let id = client.open().unwrap();
    client.write(id, &[1; 1500]).unwrap();
    let late = symbols(&mut client, 0);
    client.reset(id, 7).unwrap();
    assert_eq!(controls(&mut client), [Control::ResetStream { id, code: 7, final_size: 1500 }]);

    server.on_reset_stream(id, 7, 1500).unwrap();
    server.accept();
    assert_eq!(server.read(id, &mut [0; 9]), Err(ReadError::Reset(7)));
    server.reset(id, 1).unwrap();
    events(&mut server);
    server.on_control_acked(&Control::ResetStream { id, code: 1, final_size: 0 });
    assert_eq!(server.open_streams(), 0);

    late.iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    server.on_reset_stream(id, 7, 1500).unwrap();
    server.on_stop_sending(id, 7).unwrap();
    server.on_max_stream_data(id, 7).unwrap();
    assert_eq!((server.ignored_bytes(), server.open_streams()), (1500, 0));
    assert_eq!(events(&mut server), []);
}

#[test]
fn a_stop_ends_the_peers_writing_and_is_reported() {
    let (mut client, mut server) = pair(TIGHT);
    let id = client.open().unwrap();
    client.write(id, &[1; 5000]).unwrap();
    let sent = symbols(&mut client, 0);
    server.on_symbol_decoded(&sent[0]).unwrap();
    server.accept();
    assert_eq!(events(&mut server), [StreamEvent::Opened, StreamEvent::Readable(id)]);
    server.stop(id, 42).unwrap();
    let stop = Control::StopSending { id, code: 42 };
    assert_eq!(controls(&mut server), [stop]);
    server.on_control_lost(&stop);
    assert_eq!(controls(&mut server), [stop]);

    client.on_stop_sending(id, 42).unwrap();
    client.on_stop_sending(id, 42).unwrap();
    assert_eq!(events(&mut client), [StreamEvent::Stopped { id, code: 42 }]);
    assert_eq!(client.write(id, b"more"), Err(WriteError::Stopped(42)));
    assert_eq!(client.queued_bytes(), 0);
    assert_eq!(controls(&mut client), [Control::ResetStream { id, code: 42, final_size: 4000 }]);
    server.on_reset_stream(id, 42, 4000).unwrap();
    server.on_control_lost(&stop);
    assert_eq!(controls(&mut server), [], "the end is known: nothing to stop");
    assert_eq!(events(&mut server), [], "the application stopped reading itself");
}

#[test]
fn releasing_a_stream_removes_its_pending_control_frames() {
    let (_, mut server) = pair(TIGHT);
    server.on_symbol_decoded(&symbol_of(0, 0, b"x", false)).unwrap();
    let id = server.accept().unwrap();
    server.reset(id, 1).unwrap();
    server.stop(id, 1).unwrap();
    events(&mut server);
    server.on_symbol_decoded(&symbol_of(0, 1, b"", true)).unwrap();
    assert!(server.has_control());
    server.on_control_acked(&Control::ResetStream { id, code: 1, final_size: 0 });
    assert_eq!((server.open_streams(), server.has_control()), (0, false));
}

#[test]
fn codes_too_large_for_the_wire_are_reduced_to_the_largest_one() {
    let (mut client, _) = pair(TIGHT);
    let id = client.open().unwrap();
    client.reset(id, u64::MAX).unwrap();
    client.stop(id, u64::MAX).unwrap();
    let reset = Control::ResetStream { id, code: VARINT_MAX, final_size: 0 };
    assert_eq!(controls(&mut client), [reset, Control::StopSending { id, code: VARINT_MAX }]);
}

#[test]
fn a_lost_credit_is_repeated_only_while_it_is_the_latest() {
    let (mut client, mut server) = pair(TIGHT);
    let id = client.open().unwrap();
    client.write(id, &[1; 4000]).unwrap();
    let sent = symbols(&mut client, 0);
    sent[..2].iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    server.accept();
    let first_read = read_all(&mut server, id) as u64;
    let first = controls(&mut server);
    assert_eq!(first, [Control::MaxStreamData { id, credit: 4000 + first_read }]);
    server.on_control_lost(&first[0]);
    assert_eq!(controls(&mut server), first);

    sent[2..].iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    read_all(&mut server, id);
    // Less than half a window was read since, so the lost credit is still the latest. It is announced again, with the current value.
    server.on_control_lost(&first[0]);
    assert_eq!(controls(&mut server), [Control::MaxStreamData { id, credit: 8000 }]);
    server.on_control_lost(&first[0]);
    assert_eq!(controls(&mut server), [], "outdated");
}

#[test]
fn events_of_a_kind_are_coalesced_until_they_are_taken() {
    let (mut client, mut server) = pair(TIGHT);
    for index in 0..3_u64 {
        server.on_symbol_decoded(&symbol_of(0, index, b"x", false)).unwrap();
        server.on_symbol_decoded(&symbol_of(4 * index, 10, b"x", false)).unwrap();
    }
    assert_eq!(events(&mut server), [StreamEvent::Opened]);
    while server.accept().is_some() {}
    assert_eq!(events(&mut server), [StreamEvent::Readable(StreamId(0))]);
    server.on_symbol_decoded(&symbol_of(0, 3, b"x", false)).unwrap();
    assert_eq!(events(&mut server), [], "the reader was not blocked yet");
    assert_eq!(read_all(&mut server, StreamId(0)), 4);
    server.on_symbol_decoded(&symbol_of(0, 4, b"x", false)).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Readable(StreamId(0))]);
    assert_eq!(events(&mut client), []);
}

#[test]
fn a_stream_stays_until_its_last_event_was_taken() {
    let (mut client, mut server) = pair(TIGHT);
    let id = client.open().unwrap();
    client.finish(id).unwrap();
    symbols(&mut client, 0).iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    client.on_symbol_decoded(&symbol_of(id.0, 0, b"", true)).unwrap();
    assert_eq!(client.read(id, &mut [0; 4]), Ok(ReadOutcome::Finished));
    client.on_peer_decoded_below(Lane::Bulk, 0);
    assert_eq!(events(&mut client), [StreamEvent::Readable(id)]);
    client.on_peer_decoded_below(Lane::Bulk, 1);
    assert_eq!(client.open_streams(), 1);
    assert_eq!(events(&mut client), [StreamEvent::Finished(id)]);
    assert_eq!(client.open_streams(), 0);
    assert_eq!(client.finish(id), Err(WriteError::UnknownStream));
    assert_eq!(client.reset(id, 0), Err(UnknownStream));
    assert_eq!(client.stop(id, 0), Err(UnknownStream));
}

#[test]
fn a_bare_fin_is_sent_without_connection_credit() {
    let (mut client, _) = pair(TIGHT);
    client.set_peer_limits(0, 0, 4);
    let (mut blocked, _) = pair(StreamsConfig { max_data: 0, ..TIGHT });
    for streams in [&mut client, &mut blocked] {
        let (full, empty) = (streams.open().unwrap(), streams.open().unwrap());
        streams.write(full, &[1; 20_000]).unwrap();
        symbols(streams, 0);
        assert!(!streams.has_data_to_send());
        streams.finish(empty).unwrap();
        streams.finish(full).unwrap();
        let mut symbol = Vec::new();
        assert!(streams.fill_symbol(Lane::Bulk, 50, SYMBOL, &mut symbol));
        let frames: Vec<_> = frames_in_symbol(&symbol).unwrap().map(Result::unwrap).collect();
        assert_eq!(frames, [StreamFrame { id: empty, offset: 0, data: b"", fin: true }]);
        assert!(!streams.fill_symbol(Lane::Bulk, 51, SYMBOL, &mut symbol));
    }
}

#[test]
fn an_idle_stream_is_small() {
    let bytes = size_of::<Stream>();
    assert!(bytes <= 300, "{bytes} bytes");
}

#[test]
fn credit_withheld_for_lack_of_memory_is_announced_later() {
    let config = StreamsConfig { max_data_ceiling: 1 << 20, ..StreamsConfig::fixed(8_000, 4_000, 4) };
    let (mut client, mut server) = pair(config);
    server.set_room(0);
    for first in [0, 10] {
        let id = client.open().unwrap();
        client.write(id, &[1; 4_000]).unwrap();
        symbols(&mut client, first).iter().for_each(|symbol| server.on_symbol_decoded(symbol).unwrap());
    }
    let third = client.open().unwrap();
    client.write(third, b"GET /").unwrap();
    assert!(client.is_blocked_by_credit(), "two unread streams use up the memory");
    assert_eq!(controls(&mut server), []);
    server.set_room(1 << 20);
    assert_eq!(controls(&mut server), [Control::MaxStreams(8), Control::MaxData(16_000)][1..]);
}
