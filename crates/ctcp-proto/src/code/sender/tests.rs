use super::*;
use crate::code::receiver::CodedReceiver;
use crate::code::redundancy::Redundancy;
use crate::code::{Code, CodeLimits, Sent, Setup};
use crate::error::TransportErrorCode;
use crate::id::{ConnectionId, PacketNumber, PathId, Role};
use crate::stream::{Lane, Outlet, ReadOutcome, Streams, StreamsConfig};
use crate::wire::{NewPacket, TAG_LENGTH, frames, symbol_size_for_datagram};
use ctcp_base::Instant;

const LARGE: usize = 1_472;
const SMALL: usize = 1_200;
const SYMBOL_SIZE: usize = 1_436;
const SITUATION: Situation = Situation::BULK;
const IDLE: Situation = Situation { has_data: false, ..SITUATION };

/// A sender with a few symbols' worth of stream data, and its receiver.
struct Line {
    sender: CodedSender,
    from: Streams,
    receiver: CodedReceiver,
    to: Streams,
    destination: ConnectionId,
}

impl Line {
    fn new(code: Code) -> Self {
        let config = StreamsConfig::fixed(1 << 20, 1 << 20, 10);
        let mut from = Streams::new(Role::Client, config);
        from.set_peer_limits(1 << 20, 1 << 20, 10);
        let id = from.open().expect("a stream");
        let data: Vec<u8> = (0..100_000_u32).map(|index| (index ^ (index >> 8)) as u8).collect();
        assert!(from.write(id, &data).is_ok_and(|taken| taken > 20_000));
        let limits = CodeLimits { block_size: 16, blocks: 4 };
        let scheme = code.make(&Setup { redundancy: Redundancy::FEEDBACK, limits, window_max: 64 });
        Self {
            sender: CodedSender::new(ContextId::Streams, scheme, SYMBOL_SIZE, 64, 64),
            from,
            receiver: CodedReceiver::new(ContextId::Streams, Code::BLOCK, SYMBOL_SIZE, 64, 100, 64),
            to: Streams::new(Role::Server, config),
            destination: ConnectionId::new(&[1; 8]).expect("8 bytes"),
        }
    }

    fn builder(&self, size: usize) -> DatagramBuilder {
        let packet = NewPacket {
            destination: self.destination,
            path: PathId(0),
            packet_number: PacketNumber(0),
            largest_acked: None,
        };
        DatagramBuilder::short(Vec::new(), size, packet)
    }

    fn write(&mut self, choice: Choice, builder: &mut DatagramBuilder, size: usize) -> Option<Carried> {
        let symbol_size = symbol_size_for_datagram(size, &self.destination, self.sender.overhead());
        let mut source = Outlet { streams: &mut self.from, lane: Lane::Bulk };
        self.sender.write(choice, symbol_size, &mut source, builder, &SITUATION)
    }

    /// What the next packet of at most `size` bytes carries, and its frames.
    fn packet(&mut self, choice: Choice, size: usize) -> (Carried, Vec<u8>) {
        let mut builder = self.builder(size);
        let carried = self.write(choice, &mut builder, size).expect("something is written");
        assert!(builder.sealed_length() <= size);
        let packet = builder.finish();
        let header = 1 + packet.destination_length + 1 + packet.packet_number_length;
        (carried, packet.buffer[header..].to_vec())
    }

    /// The next packet that the code chooses.
    fn chosen(&mut self, situation: &Situation, size: usize) -> Option<(Carried, Vec<u8>)> {
        let choice = self.sender.choose(situation)?;
        Some(self.packet(choice, size))
    }

    fn receive(&mut self, payload: &[u8]) {
        for frame in frames(payload) {
            let Ok(Frame::Combination(_, combination)) = frame else { panic!("another frame: {frame:?}") };
            self.receiver.handle(&combination, &mut self.to).expect("no fault");
        }
    }

    fn feed_back(&mut self) {
        let report = self.report();
        assert!(self.sender.on_report(Instant::ZERO, &report), "something new arrived");
    }

    /// The report that the receiver sends now.
    fn report(&mut self) -> DecoderReport {
        let mut builder = self.builder(1200);
        self.receiver.write_report(&mut builder).expect("something arrived that was not acknowledged");
        let packet = builder.finish();
        let header = 1 + packet.destination_length + 1 + packet.packet_number_length;
        match frames(&packet.buffer[header..]).next() {
            Some(Ok(Frame::DecoderReport(ContextId::Streams, report))) => report,
            other => panic!("no report: {other:?}"),
        }
    }

    /// The stream bytes that can be read.
    fn readable(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4_096];
        let Some(id) = self.to.accept() else { return bytes };
        while let Ok(ReadOutcome::Data(count)) = self.to.read(id, &mut buffer) {
            bytes.extend_from_slice(&buffer[..count]);
        }
        bytes
    }
}

fn is_original(bytes: &[u8]) -> bool {
    bytes.iter().zip(0_u32..).all(|(&byte, index)| byte == (index ^ (index >> 8)) as u8)
}

#[test]
fn symbols_of_a_larger_datagram_are_repeated_in_segments() {
    let mut line = Line::new(Code::PLAIN);
    for _ in 0..3 {
        line.packet(Choice::NewSymbol, LARGE);
    }
    for index in 0..3 {
        let (first, one) = line.packet(Choice::Again(index), SMALL);
        let (last, two) = line.packet(line.sender.rest().expect("a rest"), SMALL);
        assert_eq!((first.part, last.part), (Part::Piece, Part::LastPiece));
        assert_eq!(first.sent, Sent::new(index, 1));
        assert_eq!(line.sender.rest(), None);
        // In the opposite order, and one segment twice.
        for payload in [&two, &two, &one] {
            line.receive(payload);
        }
        assert_eq!(line.report().oldest_undecoded, index + 1);
    }
    let bytes = line.readable();
    assert!(bytes.len() > 3 * (SYMBOL_SIZE - 20) && is_original(&bytes), "{}", bytes.len());
}

#[test]
fn combinations_of_symbols_of_a_larger_datagram_are_sent_in_segments() {
    let mut line = Line::new(Code::BLOCK);
    for _ in 0..16 {
        line.chosen(&SITUATION, LARGE).expect("a new symbol");
    }
    assert_eq!(line.receiver.write_report(&mut line.builder(1200)), None, "nothing arrived");
    for key in 0..16 {
        let choice = Choice::Combination { first: 0, length: 16, key };
        let (_, one) = line.packet(choice, SMALL);
        assert_eq!(line.sender.choose(&SITUATION), Some(choice), "the rest goes first");
        let (last, two) = line.packet(choice, SMALL);
        assert_eq!(last.part, Part::LastPiece);
        line.receive(&one);
        line.receive(&two);
    }
    assert_eq!(line.report().oldest_undecoded, 16);
    assert!(is_original(&line.readable()));
}

#[test]
fn datagrams_may_shrink_further_between_two_segments() {
    let mut line = Line::new(Code::PLAIN);
    line.packet(Choice::NewSymbol, LARGE);
    let (_, mut payload) = line.packet(Choice::Again(0), SMALL);
    let mut packets = 1;
    loop {
        line.receive(&payload);
        let Some(choice) = line.sender.rest() else { break };
        payload = line.packet(choice, 200).1;
        packets += 1;
    }
    assert!(packets > 2 && line.report().oldest_undecoded == 1, "{packets} packets");
}

#[test]
fn a_repair_that_fits_a_datagram_of_its_own_is_not_cut() {
    let mut line = Line::new(Code::PLAIN);
    line.packet(Choice::NewSymbol, LARGE);
    let mut builder = line.builder(LARGE);
    builder.write(&Frame::Padding(50));
    assert_eq!(line.write(Choice::Again(0), &mut builder, LARGE), None);
    assert_eq!(line.sender.rest(), None);
    let (carried, _) = line.packet(Choice::Again(0), LARGE);
    assert_eq!(carried.part, Part::Whole);
}

#[test]
fn a_segment_is_not_started_in_a_few_bytes_of_room() {
    let mut line = Line::new(Code::PLAIN);
    line.packet(Choice::NewSymbol, LARGE);
    let mut builder = line.builder(SMALL);
    let room = builder.remaining();
    builder.write(&Frame::Padding(room - 40));
    assert_eq!(line.write(Choice::Again(0), &mut builder, SMALL), None);
    let (carried, payload) = line.packet(line.sender.rest().expect("all of it"), SMALL);
    assert_eq!(carried.part, Part::Piece);
    assert!(payload.len() + TAG_LENGTH > SMALL - 30, "{}", payload.len());
}

#[test]
fn a_symbol_is_repeated_whichever_of_its_segments_is_lost() {
    for lost_piece in [0, 1] {
        let mut line = Line::new(Code::PLAIN);
        let (whole, _) = line.packet(Choice::NewSymbol, LARGE);
        line.sender.on_lost(whole, false);
        let pieces = [0, 1].map(|_| line.chosen(&IDLE, SMALL).expect("a piece"));
        assert_eq!(line.sender.choose(&IDLE), None);
        let arrived = &pieces[1 - lost_piece];
        line.receive(&arrived.1);
        line.sender.on_lost(pieces[lost_piece].0, false);
        line.sender.on_acked(arrived.0, false);
        assert_eq!(line.sender.choose(&IDLE), Some(Choice::Again(0)));
        // It is the same combination again, so only the lost segment was missing.
        let again = [0, 1].map(|_| line.chosen(&IDLE, SMALL).expect("a piece"));
        line.receive(&again[lost_piece].1);
        assert_eq!(line.report().oldest_undecoded, 1);
    }
}

#[test]
fn an_outdated_rest_is_neither_sent_nor_counted_as_in_flight() {
    let mut line = Line::new(Code::BLOCK);
    let symbols: Vec<_> = (0..16).filter_map(|_| line.chosen(&SITUATION, LARGE)).collect();
    for (carried, _) in &symbols {
        line.sender.on_lost(*carried, false);
    }
    let (piece, _) = line.chosen(&IDLE, SMALL).expect("a piece of a repair");
    assert_eq!(piece.part, Part::Piece);
    // The first symbol was only late.
    line.receive(&symbols[0].1);
    line.feed_back();
    assert_eq!(line.sender.rest(), None);
    // There are as many repairs as missing symbols, each of two segments: none of the 15 counts as in flight.
    let repairs = core::iter::from_fn(|| line.chosen(&IDLE, SMALL));
    let last_pieces = repairs.filter(|(carried, _)| carried.part == Part::LastPiece).count();
    assert_eq!(last_pieces, 15);
}

#[test]
fn segments_that_make_no_combination_are_a_protocol_violation() {
    let segment = |total, length: u16| Combination::Segment {
        first: 0,
        length,
        density: 15,
        key: 0,
        floor: 0,
        offset: 0,
        total,
        piece: &[1],
    };
    let mut line = Line::new(Code::PLAIN);
    let mut handle = |frame| line.receiver.handle(&frame, &mut line.to).map_err(|error| error.code);
    let violation = Err(TransportErrorCode::ProtocolViolation);
    assert_eq!(handle(segment(SYMBOL_SIZE as u16, 1)), Ok(false));
    assert_eq!(handle(segment(SYMBOL_SIZE as u16 - 1, 1)), violation);
    assert_eq!(handle(segment(SYMBOL_SIZE as u16 + 1, 2)), violation);
    assert_eq!(handle(segment(1, 65)), Err(TransportErrorCode::SymbolWindow));
    assert_eq!(handle(segment(1, 101)), violation, "longer than agreed");
}

#[test]
fn late_segments_of_known_symbols_are_redundant() {
    let mut line = Line::new(Code::PLAIN);
    let (_, whole) = line.packet(Choice::NewSymbol, LARGE);
    let (_, piece) = line.packet(Choice::Again(0), SMALL);
    line.receive(&whole);
    line.receive(&piece);
    assert_eq!(line.receiver.counts().redundant, 1);
}

#[test]
fn a_report_is_repeated_until_it_is_acknowledged_or_something_arrives() {
    let mut line = Line::new(Code::PLAIN);
    let first = line.packet(Choice::NewSymbol, LARGE).1;
    let second = line.packet(Choice::NewSymbol, LARGE).1;
    line.receive(&first);
    let report = line.report();
    assert_eq!((report.number, report.oldest_undecoded), (1, 1));
    assert_eq!(line.report(), report);
    line.receiver.on_report_acked(report.number);
    assert_eq!(line.receiver.write_report(&mut line.builder(1200)), None);
    line.receive(&second);
    assert_eq!((line.report().number, line.report().oldest_undecoded), (2, 2));
}

#[test]
fn a_report_that_arrives_late_or_twice_is_ignored() {
    let mut line = Line::new(Code::PLAIN);
    let reports: Vec<_> = (0..3)
        .map(|_| {
            let payload = line.packet(Choice::NewSymbol, LARGE).1;
            line.receive(&payload);
            line.report()
        })
        .collect();
    let mut take = |index: usize| line.sender.on_report(Instant::ZERO, &reports[index]);
    assert_eq!([take(1), take(0), take(1), take(2)], [true, false, false, true]);
    assert_eq!(line.sender.outstanding(), 0);
}
