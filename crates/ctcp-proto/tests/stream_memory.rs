//! The memory of streams: nothing is allocated per symbol after warm-up, idle streams are small, and a peer can occupy no more than its
//! credit.

use ctcp_proto::fuzzing::{Control, Lane, Pace, Streams, StreamsConfig};
use ctcp_proto::wire::{StreamFrame, SymbolBuilder};
use ctcp_proto::{ReadOutcome, Role, StreamId};

/// A pace on which readers are fast, so that windows grow.
const PACE: Pace = Pace { now: ctcp_base::Instant::ZERO, rtt: core::time::Duration::from_secs(1) };

const SYMBOL_SIZE: usize = 1202;

fn streams(role: Role, config: StreamsConfig) -> Streams {
    let mut streams = Streams::new(role, config);
    streams.set_peer_limits(config.max_data, config.max_stream_data, config.max_streams);
    streams
}

/// Two ends and a path that delivers everything at once.
struct Session {
    sender: Streams,
    receiver: Streams,
    id: StreamId,
    symbol: Vec<u8>,
    next_symbol: u64,
    read: u64,
}

impl Session {
    fn new() -> Self {
        let mut sender = streams(Role::Client, StreamsConfig::default());
        let id = sender.open().expect("streams are allowed");
        let receiver = streams(Role::Server, StreamsConfig::default());
        Self { sender, receiver, id, symbol: Vec::with_capacity(SYMBOL_SIZE), next_symbol: 0, read: 0 }
    }

    fn run_round(&mut self) {
        let mut chunk = [7; 8000];
        self.sender.write(self.id, &chunk).expect("there is room");
        while self.sender.fill_symbol(Lane::Bulk, self.next_symbol, SYMBOL_SIZE, &mut self.symbol) {
            self.next_symbol += 1;
            self.receiver.on_symbol_decoded(&self.symbol).expect("a valid symbol");
        }
        let _ = self.receiver.accept();
        while let Ok(ReadOutcome::Data(count)) = self.receiver.read(self.id, &mut chunk) {
            self.read += count as u64;
        }
        while let Some(control) = self.receiver.poll_control(PACE) {
            match control {
                Control::MaxData(limit) => self.sender.on_max_data(limit),
                Control::MaxStreamData { id, credit } => self.sender.on_max_stream_data(id, credit),
                _ => Ok(()),
            }
            .expect("a valid frame");
        }
        self.sender.on_peer_decoded_below(Lane::Bulk, self.next_symbol);
        while self.sender.poll_event().is_some() || self.receiver.poll_event().is_some() {}
    }
}

#[test]
fn nothing_is_allocated_per_symbol_after_warm_up() {
    let mut session = Session::new();
    (0..200).for_each(|_| session.run_round());
    let info = allocation_counter::measure(|| (0..1000).for_each(|_| session.run_round()));
    assert_eq!((info.count_total, session.read), (0, 1200 * 8000));
}

#[test]
fn an_idle_stream_costs_less_than_300_bytes_on_either_side() {
    let config = StreamsConfig { max_streams: 1000, ..StreamsConfig::default() };
    let mut sides = [streams(Role::Client, config), streams(Role::Server, config)];
    let info = allocation_counter::measure(|| {
        let [client, server] = &mut sides;
        let mut symbol = Vec::new();
        for index in 0..1000 {
            // Each was used: a request arrived and was read.
            let id = client.open().expect("streams are allowed");
            client.write(id, b"hello").expect("there is room");
            assert!(client.fill_symbol(Lane::Bulk, index, SYMBOL_SIZE, &mut symbol));
            server.on_symbol_decoded(&symbol).expect("a valid symbol");
            assert_eq!(server.accept(), Some(id));
            assert_eq!(server.read(id, &mut [0; 10]), Ok(ReadOutcome::Data(5)));
            while client.poll_event().is_some() || server.poll_event().is_some() {}
        }
    });
    let bytes = info.bytes_current / 2000;
    println!("{bytes} bytes for an idle stream, buffers of the connection included");
    assert!((100..300).contains(&bytes), "{bytes} bytes");
}

#[test]
fn single_bytes_far_apart_take_little_more_memory_than_the_credit() {
    let config = StreamsConfig::fixed(1 << 20, 1 << 16, 64);
    let mut server = streams(Role::Server, config);
    let mut taken = 0;
    let info = allocation_counter::measure(|| {
        for stream in 0..64_u64 {
            for offset in (1..(1 << 16)).rev().step_by(131) {
                let mut symbol = SymbolBuilder::new(64);
                symbol.push(StreamFrame { id: StreamId(4 * stream), offset, data: &[1], fin: false });
                taken += usize::from(server.on_symbol_decoded(&symbol.finish()).is_ok());
            }
        }
    });
    // 16 streams use up the credit of the connection; the bit of each byte adds an eighth.
    assert_eq!(taken, 16 * 501);
    println!("{} bytes held for {taken} single bytes", info.bytes_current);
    assert!(info.bytes_current < (1 << 20) * 5 / 4, "{} bytes", info.bytes_current);
}
