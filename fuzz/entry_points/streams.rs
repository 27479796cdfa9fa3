//! All streams of a connection, with arbitrary actions of the peer and of the application: the windows hold.

use ctcp_proto::fuzzing::{Lane, Pace, SEND_BUFFER_MAX, Streams, StreamsConfig};
use ctcp_proto::wire::{StreamFrame, SymbolBuilder};
use ctcp_proto::{Role, StreamId, TransportError};

/// Readers count as fast, so windows grow as far as they may.
const PACE: Pace = Pace { now: ctcp_base::Instant::ZERO, rtt: core::time::Duration::from_secs(1) };

/// Small windows, so that they are reached.
const CONFIG: StreamsConfig = StreamsConfig::fixed(10_000, 4_000, 6);

/// The limit that the peer grants.
const MAX_STREAMS: u64 = 8;

pub fn run(data: &[u8]) {
    let mut streams = Streams::new(Role::Server, CONFIG);
    streams.set_peer_limits(8_000, 3_000, MAX_STREAMS / 2);
    let mut index = 0;
    for operation in data.chunks_exact(6) {
        if step(&mut streams, operation, &mut index).is_err() {
            // The peer is at fault: a real connection would end here.
            return;
        }
        assert!(streams.received_bytes_held() as u64 <= CONFIG.max_data);
        assert!(streams.queued_bytes() <= SEND_BUFFER_MAX * streams.open_streams());
        let most = (CONFIG.max_streams + MAX_STREAMS) as usize;
        assert!(streams.open_streams() <= most, "{} streams", streams.open_streams());
    }
}

fn step(streams: &mut Streams, operation: &[u8], index: &mut u64) -> Result<(), TransportError> {
    let &[kind, id, a, b, c, d] = operation else { return Ok(()) };
    // Mostly ids of streams that may exist.
    let id = StreamId(u64::from(id % 40));
    let (place, size) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    match kind % 16 {
        0 => streams.on_symbol_decoded(&[a, b, c, d])?,
        1..=4 => streams.on_symbol_decoded(&symbol(id, u64::from(place % 5_000), size, kind & 0x80 != 0))?,
        5 => streams.on_max_data(u64::from(place))?,
        6 => streams.on_max_stream_data(id, u64::from(place))?,
        7 => streams.on_max_streams(u64::from(a) % (MAX_STREAMS + 1))?,
        8 => streams.on_reset_stream(id, u64::from(c), u64::from(place))?,
        9 => streams.on_stop_sending(id, u64::from(c))?,
        10 => application_reads(streams, id, size),
        11 => {
            let _ = streams.write(id, &vec![a; usize::from(size)]);
        }
        12 => application_ends(streams, id, a, u64::from(c)),
        13 => {
            let _ = streams.open();
            let _ = streams.accept();
        }
        14 => {
            let mut symbol = Vec::new();
            let lane = if c % 2 == 0 { Lane::Bulk } else { Lane::Interactive };
            if streams.fill_symbol(lane, *index, 300 + usize::from(size % 1_200), &mut symbol) {
                *index += 1;
            }
        }
        _ => drain(streams, u64::from(a) % (*index + 1)),
    }
    Ok(())
}

fn symbol(id: StreamId, offset: u64, size: u16, fin: bool) -> Vec<u8> {
    let mut symbol = SymbolBuilder::new(1_400);
    let data = vec![7; usize::from(size % 1_300)];
    let room = symbol.max_data_length(id, offset).unwrap_or(0);
    symbol.push(StreamFrame { id, offset, data: &data[..data.len().min(room)], fin });
    symbol.finish()
}

fn application_reads(streams: &mut Streams, id: StreamId, size: u16) {
    let mut out = vec![0; usize::from(size)];
    let _ = streams.read(id, &mut out);
}

fn application_ends(streams: &mut Streams, id: StreamId, how: u8, code: u64) {
    match how % 3 {
        0 => {
            let _ = streams.finish(id);
        }
        1 => {
            let _ = streams.reset(id, code);
        }
        _ => {
            let _ = streams.stop(id, code);
        }
    }
}

fn drain(streams: &mut Streams, decoded_below: u64) {
    while let Some(control) = streams.poll_control(PACE) {
        if decoded_below.is_multiple_of(2) {
            streams.on_control_acked(&control);
        } else {
            streams.on_control_lost(&control);
            break;
        }
    }
    streams.on_peer_decoded_below(Lane::Bulk, decoded_below);
    streams.on_peer_decoded_below(Lane::Interactive, decoded_below);
    while streams.poll_event().is_some() {}
}
