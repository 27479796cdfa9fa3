//! The streams of both ends of a connection, with operations derived from bytes.
//!
//! [`run`] interprets any byte string as actions of two applications and the path between them. Symbols arrive in any order, and control
//! frames are lost, or declared lost although they arrived. Then the path heals, and both applications finish, driven by events alone.
//! Checked continuously: what is read is what was written, no end violates the protocol, and memory stays within the credit. Checked at the
//! end: everything was delivered, both ends agree on how each stream ended, and no state is left. A fuzz target can include this file and
//! call it.

#[path = "streams_operations/side.rs"]
mod side;

use ctcp_proto::fuzzing::{Control, Interactive, Lane, StreamsConfig};
use ctcp_proto::{Role, StreamId};
use side::Side;

/// Number of rounds of the healed path after which everything must have ended; far more than any run needs.
const HEALING_ROUNDS: usize = 3000;

const LANES: [Lane; 2] = [Lane::Bulk, Lane::Interactive];

/// An endless input: zeros follow the bytes.
struct Input<'a> {
    bytes: &'a [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }
}

/// Both ends and what is in flight.
struct World<'a> {
    input: Input<'a>,
    sides: [Side; 2],
    capacity: usize,
}

/// Interprets `bytes` as operations, then heals the path and checks that everything ends.
pub fn run(bytes: &[u8]) {
    let mut input = Input { bytes };
    // Windows from smaller than a symbol to larger than everything written.
    let data = [150, 1500, 60_000][input.below(3)];
    let stream_data = [90, 700, 30_000][input.below(3)];
    let growth = [1, 3][input.below(2)];
    let config = StreamsConfig {
        max_data: data,
        max_data_ceiling: growth * data,
        max_stream_data: stream_data,
        max_stream_data_ceiling: growth * stream_data,
        max_streams: 1 + input.below(4) as u64,
        max_streams_ceiling: 4,
    };
    let capacity = 40 + 5 * input.below(256);
    let interactive = [Interactive::None, Interactive::OnRequest, Interactive::Automatic][input.below(3)];
    let sides = [Role::Client, Role::Server].map(|role| Side::new(role, config, interactive));
    let mut world = World { input, sides, capacity };
    while !world.input.bytes.is_empty() {
        world.step();
    }
    world.heal();
}

impl World<'_> {
    fn step(&mut self) {
        let operation = self.input.byte();
        let here = usize::from(operation & 1);
        match operation >> 1 {
            0..=5 => self.sides[here].open(),
            6..=9 => self.sides[here].accept(),
            10..=49 => self.use_stream(here, operation >> 1),
            50..=62 => self.sides[here].fill_symbol(Lane::Bulk, self.capacity),
            63..=74 => self.sides[here].fill_symbol(Lane::Interactive, self.capacity),
            75..=94 => {
                let which = self.input.byte();
                self.deliver_symbol(here, usize::from(which));
            }
            95..=99 => self.tell_decoded(here),
            100..=106 => self.sides[here].send_control(),
            107..=118 => {
                let (which, fate) = (self.input.byte(), self.input.below(4));
                self.settle_control(here, usize::from(which), fate);
            }
            _ => self.sides[here].take_event(),
        }
        self.sides.iter().for_each(Side::check_memory);
    }

    fn use_stream(&mut self, here: usize, what: u8) {
        let Some(id) = self.sides[here].stream(self.input.byte()) else { return };
        let amount = 7 * self.input.below(256);
        match what {
            10..=24 => self.sides[here].write(id, amount),
            25..=41 => self.read(here, id, amount),
            42..=45 => self.sides[here].finish(id),
            46 => self.sides[here].reset(id, amount as u64),
            47 => _ = self.sides[here].streams.set_low_latency(id, amount.is_multiple_of(2)),
            _ => self.sides[here].stop(id, amount as u64),
        }
    }

    fn read(&mut self, here: usize, id: StreamId, amount: usize) {
        let [left, right] = &mut self.sides;
        let (reader, writer) = if here == 0 { (left, right) } else { (right, left) };
        reader.read(id, amount, writer.half(id));
    }

    /// The other side decodes a symbol that `here` sent.
    fn deliver_symbol(&mut self, here: usize, which: usize) {
        let symbols = &mut self.sides[here].symbols;
        if symbols.is_empty() {
            return;
        }
        let (.., symbol) = symbols.swap_remove(which % symbols.len());
        self.sides[1 - here].streams.on_symbol_decoded(&symbol).expect("both ends follow the protocol");
    }

    /// `here` learns what the other side has decoded.
    fn tell_decoded(&mut self, here: usize) {
        for lane in LANES {
            let oldest = self.sides[here].oldest_undecoded(lane);
            self.sides[here].streams.on_peer_decoded_below(lane, oldest);
        }
    }

    /// A control frame that `here` sent arrives, is lost, or arrives and is declared lost.
    fn settle_control(&mut self, here: usize, which: usize, fate: usize) {
        let controls = &mut self.sides[here].controls;
        if controls.is_empty() {
            return;
        }
        let control = controls.swap_remove(which % controls.len());
        let (arrives, is_acked) = (fate != 0, fate >= 2);
        if arrives {
            let streams = &mut self.sides[1 - here].streams;
            let result = match control {
                Control::MaxData(limit) => streams.on_max_data(limit),
                Control::MaxStreamData { id, credit } => streams.on_max_stream_data(id, credit),
                Control::MaxStreams(limit) => streams.on_max_streams(limit),
                Control::ResetStream { id, code, final_size } => {
                    streams.on_reset_stream(id, code, final_size)
                }
                Control::StopSending { id, code } => streams.on_stop_sending(id, code),
            };
            result.expect("both ends follow the protocol");
        }
        if is_acked {
            self.sides[here].streams.on_control_acked(&control);
        } else {
            self.sides[here].streams.on_control_lost(&control);
        }
    }

    /// Everything arrives, and both applications finish, driven by events alone.
    fn heal(&mut self) {
        for round in 0..HEALING_ROUNDS {
            for here in [0, 1] {
                self.sides[here].wind_up();
                for id in self.sides[here].readable() {
                    self.read(here, id, 500);
                }
                for _ in 0..4 {
                    LANES.into_iter().for_each(|lane| self.sides[here].fill_symbol(lane, self.capacity));
                    self.sides[here].send_control();
                }
                while !self.sides[here].symbols.is_empty() {
                    self.deliver_symbol(here, round);
                }
                while !self.sides[here].controls.is_empty() {
                    self.settle_control(here, round, 2);
                }
                self.tell_decoded(here);
            }
            self.sides.iter().for_each(Side::check_memory);
            if self.sides.iter().all(Side::is_at_rest) {
                break;
            }
        }
        let [client, server] = &self.sides;
        client.check_end(server);
        server.check_end(client);
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    proptest! {
        // PROPTEST_CASES asks for more than 256 cases.
        #[test]
        fn two_ends_agree_on_every_stream_despite_reordering_and_loss(bytes in vec(any::<u8>(), 0..1200)) {
            run(&bytes);
        }
    }

    /// Forty writes of 1,785 bytes without a symbol sent exceed what a stream buffers under a small credit.
    #[test]
    fn a_writer_that_fills_its_buffer_finishes() {
        let configuration_and_open = [0, 0, 0, 0, 0, 0, 0];
        run(&[&configuration_and_open[..], &[20, 0, 255].repeat(40)].concat());
    }
}
