use super::*;
use crate::id::Role;
use crate::wire::frames_in_symbol;

const CAPACITY: usize = 302;

/// A sending half with its pool and connection credit.
struct Bench {
    half: SendHalf,
    pool: PagePool,
    connection: SendCredit,
}

impl Bench {
    fn new(stream_credit: u64, connection_credit: u64) -> Self {
        let connection = SendCredit::new(connection_credit);
        Self { half: SendHalf::new(stream_credit), pool: PagePool::default(), connection }
    }

    fn write(&mut self, bytes: usize) -> Result<usize, WriteError> {
        self.half.write(&mut self.pool, &vec![7; bytes], usize::MAX)
    }

    /// Packs into a new symbol. Returns offset, length and FIN of the frame.
    fn pack(&mut self) -> Option<(u64, usize, bool)> {
        let mut symbol = SymbolBuilder::new(CAPACITY);
        let id = StreamId::new(Role::Client, 0);
        self.half.pack(id, &mut symbol, &mut self.connection, &mut self.pool)?;
        let symbol = symbol.finish();
        let frame = frames_in_symbol(&symbol).unwrap().next().unwrap().unwrap();
        Some((frame.offset, frame.data.len(), frame.fin))
    }

    fn reset(&mut self, cause: ResetCause) -> Option<usize> {
        self.half.reset(&mut self.pool, cause)
    }
}

#[test]
fn a_half_is_received_when_the_peer_decoded_the_symbol_with_its_fin() {
    let mut bench = Bench::new(10_000, 10_000);
    assert_eq!(bench.write(400), Ok(400));
    assert_eq!(bench.pack(), Some((0, 298, false)));
    bench.half.finish().unwrap();
    assert_eq!(bench.write(1), Err(WriteError::Finished));
    assert_eq!(bench.pack(), Some((298, 102, true)));
    assert_eq!(bench.half.state(), SendState::DataSent);
    assert!(!bench.half.is_over());
    bench.half.on_all_decoded();
    assert!(bench.half.is_over());
    assert_eq!(bench.half.finish(), Err(WriteError::Finished));
}

#[test]
fn the_end_of_an_empty_stream_is_a_frame_without_bytes_and_needs_no_credit() {
    let mut bench = Bench::new(0, 0);
    assert_eq!(bench.pack(), None);
    bench.half.finish().unwrap();
    assert!(bench.half.has_bare_fin());
    assert_eq!(bench.pack(), Some((0, 0, true)));
    assert_eq!(bench.pack(), None);
}

#[test]
fn bytes_are_packed_under_both_credits_and_the_fin_after_the_last_one() {
    let mut bench = Bench::new(100, 60);
    bench.write(150).unwrap();
    bench.half.finish().unwrap();
    assert_eq!(bench.half.sendable(), 100);
    assert_eq!(bench.pack(), Some((0, 60, false)));
    assert_eq!(bench.pack(), None);
    bench.connection.raise(1000);
    assert_eq!(bench.pack(), Some((60, 40, false)));
    assert_eq!((bench.half.sendable(), bench.half.queued()), (0, 50));
    bench.half.on_max_stream_data(90);
    assert_eq!(bench.pack(), None);
    bench.half.on_max_stream_data(150);
    assert_eq!(bench.pack(), Some((100, 50, true)));
    assert_eq!(bench.connection.used(), 150);
}

#[test]
fn small_frames_at_the_end_of_a_symbol_wait_for_the_next_one() {
    let mut bench = Bench::new(1000, 1000);
    bench.write(500).unwrap();
    let (mut symbol, first) = (SymbolBuilder::new(CAPACITY), StreamId::new(Role::Client, 0));
    symbol.push(StreamFrame { id: first, offset: 0, data: &[1; 288], fin: false });
    let second = StreamId::new(Role::Client, 1);
    let packed = bench.half.pack(second, &mut symbol, &mut bench.connection, &mut bench.pool);
    assert_eq!(packed, None);
    // A stream with only a few bytes is packed.
    let mut little = Bench::new(1000, 1000);
    little.write(3).unwrap();
    little.half.finish().unwrap();
    let packed = little.half.pack(second, &mut symbol, &mut little.connection, &mut little.pool);
    assert_eq!(packed.map(|packed| (packed.bytes, packed.fin)), Some((3, true)));
    assert!(symbol.finish().len() <= CAPACITY);
}

#[test]
fn the_final_size_of_a_reset_is_the_number_of_bytes_in_symbols() {
    let mut bench = Bench::new(10_000, 10_000);
    bench.write(500).unwrap();
    bench.pack().unwrap();
    assert_eq!(bench.reset(ResetCause::Local(9)), Some(202));
    let id = StreamId(4);
    let frame = Control::ResetStream { id, code: 9, final_size: 298 };
    assert_eq!(bench.half.reset_frame(id), Some(frame));
    assert_eq!(bench.pack(), None);
    assert_eq!(bench.write(1), Err(WriteError::Reset));
    assert_eq!(bench.half.finish(), Err(WriteError::Reset));
    assert_eq!(bench.reset(ResetCause::Stopped(3)), None, "a reset is not reset again");
    bench.half.on_reset_acked();
    assert!(bench.half.is_over());
    assert_eq!(bench.half.reset_frame(id), None);
    assert_eq!(bench.write(1), Err(WriteError::Reset));
}

#[test]
fn a_stop_resets_a_stream_unless_all_of_it_is_in_symbols() {
    let mut writing = Bench::new(100, 100);
    writing.write(10).unwrap();
    assert_eq!(writing.reset(ResetCause::Stopped(6)), Some(10));
    assert_eq!(writing.write(1), Err(WriteError::Stopped(6)));

    let mut sent = Bench::new(100, 100);
    sent.half.finish().unwrap();
    sent.pack().unwrap();
    assert_eq!(sent.reset(ResetCause::Stopped(6)), None);
    assert_eq!(sent.half.state(), SendState::DataSent);
    assert_eq!(sent.reset(ResetCause::Local(6)), Some(0));
    sent.half.on_all_decoded();
    assert!(!sent.half.is_over(), "the peer must learn of the reset");
}

#[test]
fn a_writer_is_blocked_when_the_buffer_is_full() {
    let mut bench = Bench::new(1 << 20, 0);
    assert_eq!(bench.write(SEND_BUFFER_MAX - 1), Ok(SEND_BUFFER_MAX - 1));
    assert_eq!(bench.write(2), Ok(1));
    assert_eq!(bench.write(1), Ok(0));
}

#[test]
fn a_stream_without_credit_queues_little() {
    let mut bench = Bench::new(0, 0);
    assert_eq!(bench.write(SEND_BUFFER_MAX), Ok(SEND_BUFFER_BLOCKED));
    bench.half.on_max_stream_data(SEND_BUFFER_BLOCKED as u64 + 10);
    assert_eq!(bench.write(SEND_BUFFER_MAX), Ok(10));
}
