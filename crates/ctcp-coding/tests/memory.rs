//! Nothing is allocated per packet after warm-up, and no peer can make a decoder grow without bound.

use ctcp_coding::{
    Arrival, Decoder, DecoderConfig, Encoder, Recoder, RecoderConfig, SymbolRange, coefficients,
};

const SYMBOL_SIZE: usize = 1344;
const WINDOW: usize = 64;

/// A sender and a receiver connected by a path that loses packets in a fixed pattern.
struct Session {
    encoder: Encoder,
    decoder: Decoder,
    payload: Vec<u8>,
    coefficients: Vec<u8>,
    delivered: u64,
}

impl Session {
    fn new() -> Self {
        Self {
            encoder: Encoder::new(SYMBOL_SIZE, WINDOW),
            decoder: Decoder::new(DecoderConfig::new(SYMBOL_SIZE, WINDOW)),
            payload: Vec::new(),
            coefficients: Vec::new(),
            delivered: 0,
        }
    }

    /// Sends 40 symbols, of which every fourth is lost, with occasional combinations over the whole window in between.
    /// Then sends combinations until everything is decoded.
    fn run_round(&mut self, round: u64) {
        let contents = [round as u8; SYMBOL_SIZE];
        for step in 0..40 {
            let index = self.encoder.push(&contents).expect("the round fits the window");
            if step % 4 != 3 {
                self.decoder.handle_source(index, &contents).expect("inside the window");
            }
            if step % 3 == 2 && step % 2 == 0 {
                self.combine(round as u16 * 64 + step);
            }
            self.poll();
        }
        for key in 40..64 {
            if self.decoder.oldest_undecoded() == self.encoder.next_index() {
                break;
            }
            self.combine(round as u16 * 64 + key);
            self.poll();
        }
        self.encoder.release_before(self.decoder.oldest_undecoded());
        self.decoder.release_before(self.encoder.first());
        assert_eq!(self.delivered, self.encoder.next_index());
    }

    fn combine(&mut self, key: u16) {
        let range = SymbolRange::from_bounds(self.encoder.first(), self.encoder.next_index());
        let range = range.expect("the window holds symbols");
        self.coefficients.resize(usize::from(range.length()), 0);
        coefficients::generate(key, coefficients::DENSITY_MAX, &mut self.coefficients);
        self.encoder.combine(range, &self.coefficients, &mut self.payload).expect("the whole window");
        self.decoder.handle_combination(range, &self.coefficients, &self.payload).expect("inside the window");
    }

    fn poll(&mut self) {
        while self.decoder.poll_decoded().is_some() {
            self.delivered += 1;
        }
    }
}

#[test]
fn nothing_is_allocated_per_packet_after_warm_up() {
    let mut session = Session::new();
    (0..20).for_each(|round| session.run_round(round));
    let info = allocation_counter::measure(|| (20..60).for_each(|round| session.run_round(round)));
    assert_eq!((info.count_total, session.delivered), (0, 2400));
}

#[test]
fn a_new_encoder_and_decoder_allocate_nothing() {
    let info = allocation_counter::measure(|| {
        let session = Session::new();
        assert_eq!(session.decoder.known_end(), 0);
    });
    assert_eq!(info.count_total, 0);
}

#[test]
fn shrinking_an_idle_decoder_frees_its_memory() {
    let info = allocation_counter::measure(|| {
        let mut session = Session::new();
        (0..5).for_each(|round| session.run_round(round));
        let before = allocation_counter::measure(|| session.decoder.shrink());
        assert!(before.bytes_current < -50_000, "{before:?}");
    });
    assert_eq!(info.bytes_current, 0);
}

#[test]
fn contradictory_combinations_use_bounded_memory() {
    // Nothing is polled, so the window never moves.
    let mut decoder = Decoder::new(DecoderConfig::new(SYMBOL_SIZE, WINDOW));
    let info = allocation_counter::measure(|| {
        for key in 0..5_000u16 {
            let first = u64::from(key) % WINDOW as u64;
            let length = 1 + (key / 7) % WINDOW as u16;
            let range = SymbolRange::new(first, length).expect("short");
            let mut row = vec![0; usize::from(length)];
            coefficients::generate(key, 7, &mut row);
            let arrival = decoder.handle_combination(range, &row, &[key as u8; SYMBOL_SIZE]);
            assert_ne!(arrival, Ok(Arrival::TooOld));
            if range.end() > WINDOW as u64 {
                assert!(arrival.is_err());
            }
        }
    });
    let symbols = 2 * WINDOW as u64 * (SYMBOL_SIZE as u64 + 64 + 64);
    let rows = 6 * (WINDOW * WINDOW) as u64 + 20_000;
    assert!(info.bytes_max < symbols + rows, "{info:?}");
}

/// A relay receives a window of combinations and sends as many of its own.
fn relay_round(relay: &mut Recoder, encoder: &mut Encoder, buffers: &mut [Vec<u8>; 3]) {
    let contents = [7; SYMBOL_SIZE];
    let [weights, row, payload] = buffers;
    for key in 0..40 {
        let index = encoder.push(&contents).expect("the round fits the window");
        if key % 5 == 0 {
            relay.handle_source(index, &contents).expect("inside the window");
        }
        let range = SymbolRange::from_bounds(encoder.first(), index + 1).expect("the window holds symbols");
        row.resize(usize::from(range.length()), 0);
        coefficients::generate(key, coefficients::DENSITY_MAX, row);
        encoder.combine(range, row, payload).expect("the whole window");
        relay.handle_combination(range, row, payload).expect("inside the window");
        weights.resize(relay.rank(), 0);
        coefficients::generate(key, coefficients::DENSITY_MAX, weights);
        let span = relay.span().expect("it holds something");
        relay.combine(span, weights, row, payload).expect("weights that are not zero");
        if key % 8 == 7 {
            encoder.release_before(index - 3);
            relay.release_before(index - 3);
        }
    }
    encoder.release_before(u64::MAX);
    relay.release_before(encoder.first());
}

#[test]
fn a_relay_allocates_nothing_per_packet_after_warm_up() {
    let mut relay = Recoder::new(RecoderConfig { symbol_size_max: SYMBOL_SIZE, window: WINDOW as u16 });
    let mut encoder = Encoder::new(SYMBOL_SIZE, WINDOW);
    let mut buffers: [Vec<u8>; 3] = Default::default();
    (0..20).for_each(|_| relay_round(&mut relay, &mut encoder, &mut buffers));
    let info = allocation_counter::measure(|| {
        (0..40).for_each(|_| relay_round(&mut relay, &mut encoder, &mut buffers));
    });
    assert_eq!((info.count_total, encoder.next_index()), (0, 2400));
}

#[test]
fn arbitrary_combinations_use_bounded_memory_in_a_relay() {
    let mut relay = Recoder::new(RecoderConfig { symbol_size_max: SYMBOL_SIZE, window: WINDOW as u16 });
    let info = allocation_counter::measure(|| {
        for key in 0..5_000_u16 {
            let length = 1 + key % WINDOW as u16;
            let range = SymbolRange::new(u64::from(key / 16), length).expect("short");
            let mut row = vec![0; usize::from(length)];
            coefficients::generate(key, 7, &mut row);
            relay.handle_combination(range, &row, &[key as u8; SYMBOL_SIZE]).expect("inside the window");
            assert!(relay.rank() <= WINDOW);
        }
    });
    let symbols = (WINDOW as u64 + 2) * (SYMBOL_SIZE as u64 + 64 + 64);
    let rows = 3 * (WINDOW * WINDOW) as u64 + 20_000;
    assert!(info.bytes_max < symbols + rows, "{info:?}");
}
