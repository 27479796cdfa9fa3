//! Streams with an arbitrary peer, with operations derived from bytes.
//!
//! [`run`] interprets any byte string as what a hostile peer sends and what an application does meanwhile. Nothing may panic, and memory
//! must stay within the limits. A fuzz target can include this file and call it.

use ctcp_proto::fuzzing::{Control, Lane, Pace, Streams, StreamsConfig};
use ctcp_proto::wire::{StreamFrame, SymbolBuilder, VARINT_MAX};
use ctcp_proto::{Role, StreamId, TransportError};

/// A pace on which readers are fast, so that windows grow.
const PACE: Pace = Pace { now: ctcp_base::Instant::ZERO, rtt: core::time::Duration::from_secs(1) };

const CONFIG: StreamsConfig = StreamsConfig::fixed(5000, 3000, 5);

/// An endless input: zeros follow the bytes.
struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    /// A number that is small, near a window, or near the largest.
    fn number(&mut self) -> u64 {
        let low = u64::from(self.byte());
        match self.byte() {
            0..=127 => low,
            128..=229 => low * 16,
            230..=241 => CONFIG.max_stream_data + low % 4 - 2,
            242..=249 => CONFIG.max_data + low % 4 - 2,
            _ => VARINT_MAX - low,
        }
    }

    fn id(&mut self) -> StreamId {
        StreamId(if self.byte() < 240 { u64::from(self.byte() % 24) } else { self.number() })
    }
}

/// The state of this side.
#[derive(Default)]
struct Local {
    opened: usize,
    next_symbol: u64,
    /// Control frames that are neither acknowledged nor lost.
    sent: Vec<Control>,
}

/// Interprets `bytes` to their end.
pub fn run(bytes: &[u8]) {
    let mut input = Input { bytes };
    let mut streams = Streams::new(Role::Server, CONFIG);
    let mut local = Local::default();
    streams.set_peer_limits(input.number(), input.number(), input.number());
    while !input.bytes.is_empty() {
        let kind = input.byte();
        if kind < 128 {
            // A connection ends at the first violation; going on tests the streams more.
            drop(handle_peer(&mut streams, &mut input, kind));
        } else {
            use_streams(&mut streams, &mut input, kind, &mut local);
        }
        assert!(streams.received_bytes_held() as u64 <= CONFIG.max_data);
        assert!(streams.open_streams() <= local.opened + CONFIG.max_streams as usize);
    }
}

/// An action of the peer.
fn handle_peer(streams: &mut Streams, input: &mut Input<'_>, kind: u8) -> Result<(), TransportError> {
    match kind % 10 {
        0 => {
            let length = usize::from(input.byte());
            streams.on_symbol_decoded(input.take(length))
        }
        1..=4 => {
            let mut symbol = SymbolBuilder::new(2000);
            for _ in 0..=kind % 3 {
                let (id, flags) = (input.id(), input.byte());
                let length = usize::from(input.byte()) * 2;
                let offset = input.number().min(VARINT_MAX - length as u64);
                if symbol.max_data_length(id, offset).is_some_and(|most| most >= length) {
                    symbol.push(StreamFrame { id, offset, data: &vec![flags; length], fin: flags > 200 });
                }
            }
            streams.on_symbol_decoded(&symbol.finish())
        }
        5 => streams.on_max_data(input.number()),
        6 => streams.on_max_stream_data(input.id(), input.number()),
        7 => streams.on_max_streams(input.number()),
        8 => streams.on_reset_stream(input.id(), input.number(), input.number()),
        _ => streams.on_stop_sending(input.id(), input.number()),
    }
}

/// An action of the application or the connection. The results do not matter here.
fn use_streams(streams: &mut Streams, input: &mut Input<'_>, kind: u8, local: &mut Local) {
    match kind % 14 {
        0 => local.opened += usize::from(streams.open().is_ok()),
        1 => drop(streams.accept()),
        2 => drop(streams.write(input.id(), &vec![1; input.number() as usize % 6000])),
        3 => drop(streams.finish(input.id())),
        4 => drop(streams.reset(input.id(), input.number())),
        5 => drop(streams.stop(input.id(), input.number())),
        6..=8 => drop(streams.read(input.id(), &mut vec![0; input.number() as usize % 6000])),
        9 => {
            let mut symbol = Vec::new();
            let has_data = streams.has_data_to_send();
            assert_eq!(
                streams.fill_symbol(
                    Lane::Bulk,
                    local.next_symbol,
                    40 + usize::from(input.byte()),
                    &mut symbol
                ),
                has_data
            );
            local.next_symbol += 1;
        }
        10 => streams.on_peer_decoded_below(Lane::Bulk, input.number()),
        11 => local.sent.extend(streams.poll_control(PACE)),
        12 => {
            if let Some(control) = local.sent.pop() {
                let is_acked = input.byte() < 128;
                if is_acked { streams.on_control_acked(&control) } else { streams.on_control_lost(&control) }
            }
        }
        _ => drop(streams.poll_event()),
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn streams_withstand_an_arbitrary_peer(bytes in vec(any::<u8>(), 0..1500)) {
            run(&bytes);
        }
    }
}
