//! Relays that re-encode, over a chain of five nodes. The chain reaches the capacity of its worst hop.

#[path = "../src/test_random.rs"]
mod test_random;

use ctcp_coding::{
    Arrival, Decoder, DecoderConfig, Encoder, Recoder, RecoderConfig, SymbolRange, coefficients,
};
use test_random::TestRandom;

const SYMBOL_SIZE: usize = 24;

/// The percentage of packets that a hop loses.
const LOSS_PERCENT: u64 = 10;

/// The contents of a packet: the fields of a RECODED frame.
#[derive(Clone)]
struct Packet {
    range: SymbolRange,
    coefficients: Vec<u8>,
    payload: Vec<u8>,
    floor: u64,
}

fn contents(index: u64) -> [u8; SYMBOL_SIZE] {
    core::array::from_fn(|byte| {
        (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (byte % 8 * 8)) as u8 ^ byte as u8
    })
}

fn whole(first: u64, end: u64) -> SymbolRange {
    SymbolRange::from_bounds(first, end).expect("a short range of some symbols")
}

fn encoded(encoder: &Encoder, range: SymbolRange, random: &mut TestRandom) -> Packet {
    let coefficients = random.bytes(usize::from(range.length()));
    let mut payload = Vec::new();
    encoder.combine(range, &coefficients, &mut payload).expect("the window holds the range");
    Packet { range, coefficients, payload, floor: encoder.first() }
}

fn recoded(relay: &Recoder, range: SymbolRange, random: &mut TestRandom) -> Option<Packet> {
    let mut weights = vec![0; relay.rank_in(range)];
    coefficients::generate(random.next() as u16, coefficients::DENSITY_MAX, &mut weights);
    let (mut coefficients, mut payload) = (Vec::new(), Vec::new());
    let range = relay.combine(range, &weights, &mut coefficients, &mut payload).ok()?;
    Some(Packet { range, coefficients, payload, floor: relay.floor() })
}

fn receive(relay: &mut Recoder, packet: &Packet) -> Arrival {
    relay.release_before(packet.floor);
    relay.handle_combination(packet.range, &packet.coefficients, &packet.payload).expect("in the window")
}

/// Checks and counts the symbols that the sink decodes.
fn deliver(sink: &mut Decoder, packet: &Packet) -> u64 {
    sink.release_before(packet.floor);
    sink.handle_combination(packet.range, &packet.coefficients, &packet.payload).expect("in the window");
    let mut count = 0;
    while let Some((index, decoded)) = sink.poll_decoded() {
        assert_eq!(decoded, contents(index), "symbol {index}");
        count += 1;
    }
    count
}

/// A source, three relays and a sink. In each slot every node but the sink sends one packet, if it has one that the
/// next node can use.
///
/// Symbols are sent in generations, several of which are in flight. A node sends from the oldest generation in which it
/// has a higher rank than its neighbour. It knows the neighbour's rank from the slot before. The source learns what the
/// sink has decoded after as many slots as there are hops, and its floor travels with the packets.
struct Chain {
    source: Encoder,
    relays: [Recoder; 3],
    sink: Decoder,
    /// The number of symbols that the sink had decoded in the last slots, newest last.
    feedback: [u64; 4],
    random: TestRandom,
    delivered: u64,
}

const GENERATION: u64 = 64;
const GENERATIONS: u64 = 8;

impl Chain {
    fn new(seed: u64) -> Self {
        let window = (GENERATION * GENERATIONS) as u16;
        let config = RecoderConfig { symbol_size_max: SYMBOL_SIZE, window };
        Self {
            source: Encoder::new(SYMBOL_SIZE, usize::from(window)),
            relays: [(); 3].map(|()| Recoder::new(config)),
            sink: Decoder::new(DecoderConfig::new(SYMBOL_SIZE, usize::from(window))),
            feedback: [0; 4],
            random: TestRandom::new(seed),
            delivered: 0,
        }
    }

    fn run_slot(&mut self) {
        self.source.release_before(self.feedback[0]);
        while !self.source.is_full() {
            self.source.push(&contents(self.source.next_index())).expect("there is room");
        }
        // From the last hop to the first, so that a packet crosses one hop per slot.
        for hop in (0..4).rev() {
            let Some(generation) = self.generation(hop) else { continue };
            let packet = match hop {
                0 => Some(encoded(&self.source, generation, &mut self.random)),
                _ => recoded(&self.relays[hop - 1], generation, &mut self.random),
            };
            let Some(packet) = packet.filter(|_| self.random.below(100) >= LOSS_PERCENT) else { continue };
            match hop {
                3 => self.delivered += deliver(&mut self.sink, &packet),
                _ => assert_ne!(receive(&mut self.relays[hop], &packet), Arrival::TooOld),
            }
        }
        self.feedback.rotate_left(1);
        self.feedback[3] = self.sink.oldest_undecoded() / GENERATION * GENERATION;
    }

    /// Returns the oldest generation in which the node before `hop` has a higher rank than the node after it.
    fn generation(&self, hop: usize) -> Option<SymbolRange> {
        let first = self.source.first() / GENERATION;
        let mut generations =
            (first..first + GENERATIONS).map(|number| whole(number * GENERATION, (number + 1) * GENERATION));
        generations.find(|&range| self.rank(hop, range) > self.rank(hop + 1, range))
    }

    /// Returns the rank of node `node` in a generation.
    fn rank(&self, node: usize, range: SymbolRange) -> usize {
        match node {
            0 => usize::from(range.length()),
            4 => self.sink.rank_in(range),
            _ if range.end() <= self.relays[node - 1].floor() => usize::from(range.length()),
            _ => self.relays[node - 1].rank_in(range),
        }
    }
}

// Requirement: N5, N6
#[test]
fn a_chain_of_five_nodes_reaches_the_capacity_of_its_worst_hop() {
    const SLOTS: u64 = 20_000;
    let mut chain = Chain::new(1);
    (0..SLOTS).for_each(|_| chain.run_slot());
    let min_cut = SLOTS as f64 * (100 - LOSS_PERCENT) as f64 / 100.0;
    let share = chain.delivered as f64 / min_cut;
    println!("{} symbols in {SLOTS} slots: {share:.4} of the min cut", chain.delivered);
    assert!((0.98..1.01).contains(&share), "{share}");
}

/// The node between source and sink.
enum Relay {
    Basis(Recoder),
    /// The last packets as they arrived. If the flag is set, a packet is dropped when the floor passes its first
    /// symbol.
    Ring(Vec<Packet>, bool),
    /// Forwards each packet unchanged.
    Forward(Option<Packet>),
}

/// The coding window: the maximum number of symbols not yet seen by the sink.
const WINDOW: usize = 32;

impl Relay {
    fn basis() -> Self {
        Self::Basis(Recoder::new(RecoderConfig { symbol_size_max: SYMBOL_SIZE, window: 2 * WINDOW as u16 }))
    }

    fn receive(&mut self, packet: Packet) {
        match self {
            Self::Basis(relay) => drop(receive(relay, &packet)),
            Self::Ring(packets, is_dropping) => {
                if *is_dropping {
                    packets.retain(|held| held.range.first() >= packet.floor);
                }
                if packets.len() == 2 * WINDOW {
                    packets.remove(0);
                }
                packets.push(packet);
            }
            Self::Forward(held) => *held = Some(packet),
        }
    }

    fn send(&mut self, random: &mut TestRandom) -> Option<Packet> {
        match self {
            Self::Basis(relay) => recoded(relay, relay.span()?, random),
            Self::Ring(packets, _) => {
                let first = packets.iter().map(|packet| packet.range.first()).min()?;
                let end = packets.iter().map(|packet| packet.range.end()).max()?;
                let (mut coefficients, mut payload) = (vec![0; (end - first) as usize], vec![0; SYMBOL_SIZE]);
                let mut floor = 0;
                for packet in packets {
                    let weight = random.below(256) as u8;
                    let start = (packet.range.first() - first) as usize;
                    let target = &mut coefficients[start..start + packet.coefficients.len()];
                    ctcp_coding::gf256::mul_add(target, weight, &packet.coefficients);
                    let length = packet.payload.len();
                    ctcp_coding::gf256::mul_add(&mut payload[..length], weight, &packet.payload);
                    floor = packet.floor;
                }
                Some(Packet { range: whole(first, end), coefficients, payload, floor })
            }
            Self::Forward(held) => held.take(),
        }
    }
}

/// Returns the symbols seen per slot over source, relay and sink, with 10 % loss on each hop and both senders active in
/// each slot.
fn seen_a_slot(mut relay: Relay) -> f64 {
    const SLOTS: u64 = 1_500;
    let mut random = TestRandom::new(7);
    let mut source = Encoder::new(SYMBOL_SIZE, WINDOW);
    let mut sink = Decoder::new(DecoderConfig::new(SYMBOL_SIZE, 4095));
    for _ in 0..SLOTS {
        if let Some(packet) = relay.send(&mut random).filter(|_| random.below(100) >= LOSS_PERCENT) {
            // The floor is the oldest unseen symbol. The sink needs the rows below it until they are decoded.
            deliver(&mut sink, &Packet { floor: 0, ..packet });
        }
        source.release_before(sink.oldest_unseen());
        if !source.is_full() {
            source.push(&contents(source.next_index())).expect("there is room");
        }
        let range = whole(source.first(), source.next_index());
        let packet = encoded(&source, range, &mut random);
        if random.below(100) >= LOSS_PERCENT {
            relay.receive(packet);
        }
    }
    sink.oldest_unseen() as f64 / SLOTS as f64
}

// Requirement: N5
#[test]
fn a_basis_keeps_rows_when_the_floor_empties_a_ring() {
    let basis = seen_a_slot(Relay::basis());
    let ring = seen_a_slot(Relay::Ring(Vec::new(), true));
    let long_ring = seen_a_slot(Relay::Ring(Vec::new(), false));
    let forward = seen_a_slot(Relay::Forward(None));
    println!("basis {basis:.3}, ring {ring:.3}, ring without floor {long_ring:.3}, forwarding {forward:.3}");
    assert!(basis > 0.98 * 0.9, "{basis}");
    assert!(ring < basis - 0.04 && forward < 0.83, "{ring} {forward}");
}

/// Number of combinations due: slightly more than 1/(1-p) per packet.
#[derive(Default)]
struct Credit(f64);

impl Credit {
    fn on_packet(&mut self) {
        self.0 += 1.03 / 0.9;
    }

    fn take(&mut self) -> bool {
        let is_due = self.0 >= 1.0;
        self.0 -= f64::from(u8::from(is_due));
        is_due
    }
}

// Requirement: N2, N5
#[test]
fn combinations_per_arrival_compensate_the_loss_of_the_next_hop() {
    // TCP/NC: the source sends R and the relay R_int combinations per new packet, regardless of what the sink has seen.
    let (mut random, mut arrived) = (TestRandom::new(3), 0);
    let mut source = Encoder::new(SYMBOL_SIZE, 1_000);
    let mut relay = Recoder::new(RecoderConfig { symbol_size_max: SYMBOL_SIZE, window: 1_000 });
    let mut sink = Decoder::new(DecoderConfig::new(SYMBOL_SIZE, 1_000));
    let (mut due, mut due_at_relay) = (Credit::default(), Credit::default());
    for _ in 0..800 {
        source.push(&contents(source.next_index())).expect("there is room");
        due.on_packet();
        while due.take() {
            let last = source.next_index();
            let packet = encoded(&source, whole(last.saturating_sub(100), last), &mut random);
            if random.below(10) == 0 {
                continue;
            }
            receive(&mut relay, &packet);
            due_at_relay.on_packet();
            while due_at_relay.take() {
                let span = whole(last.saturating_sub(200), last);
                if let Some(packet) = recoded(&relay, span, &mut random).filter(|_| random.below(10) > 0) {
                    arrived += 1;
                    deliver(&mut sink, &packet);
                }
            }
        }
    }
    let seen = sink.oldest_unseen();
    println!("{seen} of 800 symbols seen, {arrived} packets arrived");
    assert!(seen > 780 && arrived < 900, "{seen} {arrived}");
}
