use super::*;

const PACE: Pace = Pace { now: ctcp_base::Instant::ZERO, rtt: core::time::Duration::ZERO };

/// A receiving half with its pool and connection credit.
struct Bench {
    half: ReceiveHalf,
    pool: PagePool,
    connection: ReceiveCredit,
}

impl Bench {
    fn new(stream_window: u64, connection_window: u64) -> Self {
        let connection = ReceiveCredit::new(connection_window);
        Self { half: ReceiveHalf::new(stream_window), pool: PagePool::default(), connection }
    }

    fn data(&mut self, offset: u64, data: &[u8], fin: bool) -> Result<bool, TransportErrorCode> {
        let result = self.half.on_data(&mut self.pool, &mut self.connection, offset, data, fin);
        result.map_err(|error| error.code)
    }

    fn reset(&mut self, code: u64, final_size: u64) -> Result<bool, TransportErrorCode> {
        let result = self.half.on_reset(&mut self.pool, &mut self.connection, code, final_size);
        result.map_err(|error| error.code)
    }

    fn stop(&mut self) -> bool {
        self.half.stop(&mut self.pool, &mut self.connection, 5)
    }

    fn read(&mut self) -> Result<(ReadOutcome, Vec<u8>), ReadError> {
        let mut out = vec![0; 1000];
        let outcome = self.half.read(&mut self.pool, &mut self.connection, &mut out)?;
        out.truncate(if let ReadOutcome::Data(count) = outcome { count } else { 0 });
        Ok((outcome, out))
    }
}

#[test]
fn bytes_in_any_order_are_read_in_order_up_to_the_end() {
    let mut bench = Bench::new(100, 100);
    assert_eq!(bench.data(3, b"def", true), Ok(false), "nothing new to read");
    assert_eq!(bench.half.state(), ReceiveState::SizeKnown);
    assert_eq!(bench.read(), Ok((ReadOutcome::Blocked, vec![])));
    assert_eq!(bench.data(0, b"abc", false), Ok(true));
    assert_eq!(bench.half.state(), ReceiveState::DataReceived);
    assert_eq!(bench.read(), Ok((ReadOutcome::Data(6), b"abcdef".to_vec())));
    assert!(!bench.half.is_over(), "the reader does not know the end yet");
    assert_eq!(bench.read(), Ok((ReadOutcome::Finished, vec![])));
    assert!(bench.half.is_over());
    assert_eq!(bench.read(), Ok((ReadOutcome::Finished, vec![])));
}

#[test]
fn an_end_without_data_is_reported() {
    let mut bench = Bench::new(100, 100);
    assert_eq!(bench.data(0, b"abc", false), Ok(true));
    bench.read().unwrap();
    assert_eq!(bench.data(3, b"", false), Ok(false));
    assert_eq!(bench.data(3, b"", true), Ok(true));
    assert_eq!(bench.data(3, b"", true), Ok(false));
}

#[test]
fn credit_is_charged_by_the_highest_offset_of_the_stream_and_of_the_connection() {
    let mut bench = Bench::new(100, 150);
    assert_eq!(bench.data(90, &[0; 10], false), Ok(false));
    assert_eq!(bench.connection.received(), 100);
    assert_eq!(bench.data(0, &[0; 95], false), Ok(true), "charged before");
    assert_eq!(bench.connection.received(), 100);
    assert_eq!(bench.data(100, &[0], false), Err(TransportErrorCode::FlowControl));
    assert_eq!(bench.data(u64::MAX, &[0], false), Err(TransportErrorCode::FlowControl));

    let mut second = Bench::new(100, 150);
    second.connection = bench.connection;
    assert_eq!(second.data(50, &[0], false), Err(TransportErrorCode::FlowControl), "connection credit");
    assert_eq!(second.half.limit(), 100);
    assert_eq!(second.data(40, &[0], false), Ok(false), "the violation charged nothing");
    assert_eq!(second.connection.received(), 141);
}

#[test]
fn the_end_of_a_stream_cannot_change() {
    // Each case: what arrives first, and then what must be a violation.
    type Case = (fn(&mut Bench), fn(&mut Bench) -> Result<bool, TransportErrorCode>);
    let ended: fn(&mut Bench) = |bench| _ = bench.data(5, b"x", true);
    let complete: fn(&mut Bench) = |bench| _ = bench.data(0, b"abcdef", true);
    let read: fn(&mut Bench) = |bench| {
        bench.data(0, b"abcdef", true).unwrap();
        bench.read().unwrap();
        bench.read().unwrap();
    };
    let reset: fn(&mut Bench) = |bench| _ = bench.reset(1, 6);
    let discarded: fn(&mut Bench) = |bench| {
        bench.data(5, b"x", true).unwrap();
        bench.stop();
    };
    let mut cases: Vec<Case> = vec![
        (|bench| _ = bench.data(5, b"x", false), |bench| bench.data(4, b"", true)),
        (|bench| _ = bench.data(5, b"x", false), |bench| bench.reset(1, 5)),
    ];
    for first in [ended, complete, read, reset, discarded] {
        cases.push((first, |bench| bench.data(6, b"y", false)));
        cases.push((first, |bench| bench.data(6, b"y", true)));
        cases.push((first, |bench| bench.data(0, b"abc", true)));
        cases.push((first, |bench| bench.reset(1, 7)));
        cases.push((first, |bench| bench.reset(1, 5)));
    }
    for (number, (first, second)) in cases.into_iter().enumerate() {
        let mut bench = Bench::new(100, 100);
        first(&mut bench);
        assert_eq!(second(&mut bench), Err(TransportErrorCode::FinalSize), "case {number}");
    }
}

#[test]
fn a_reset_discards_incomplete_data_and_keeps_complete_data() {
    let mut cut = Bench::new(100, 100);
    cut.data(0, b"abc", false).unwrap();
    assert_eq!(cut.reset(8, 50), Ok(true));
    assert_eq!(cut.connection.received(), 50, "all of it counts");
    assert_eq!(cut.connection.read_all(), 0, "and is returned");
    assert_eq!(cut.half.buffered(), 0);
    assert!(!cut.half.is_over(), "the reader does not know yet");
    assert_eq!(cut.data(3, b"late", false), Ok(false));
    assert_eq!(cut.reset(9, 50), Ok(false), "the first code is kept");
    assert_eq!(cut.read(), Err(ReadError::Reset(8)));
    assert!(cut.half.is_over());
    assert_eq!(cut.read(), Err(ReadError::Reset(8)));

    let mut whole = Bench::new(100, 100);
    whole.data(0, b"abc", true).unwrap();
    assert_eq!(whole.reset(8, 3), Ok(false));
    assert_eq!(whole.read(), Ok((ReadOutcome::Data(3), b"abc".to_vec())));
}

#[test]
fn a_reset_beyond_the_credit_is_a_violation() {
    assert_eq!(Bench::new(100, 1000).reset(1, 101), Err(TransportErrorCode::FlowControl));
    assert_eq!(Bench::new(1000, 100).reset(1, 101), Err(TransportErrorCode::FlowControl));
}

#[test]
fn a_stopped_half_discards_bytes_and_returns_their_credit_until_the_end_is_known() {
    for ends_by_reset in [false, true] {
        let mut bench = Bench::new(100, 100);
        bench.data(10, b"abc", false).unwrap();
        assert!(bench.stop(), "a STOP_SENDING is needed");
        assert!(!bench.stop());
        assert_eq!(bench.half.buffered(), 0);
        assert_eq!(bench.read(), Err(ReadError::Stopped));
        assert_eq!(bench.data(60, &[0; 20], false), Ok(false));
        assert_eq!((bench.connection.received(), bench.connection.read_all()), (80, 0));
        assert_eq!(bench.data(90, &[0; 11], false), Err(TransportErrorCode::FlowControl));
        assert!(!bench.half.is_over());
        let end = if ends_by_reset { bench.reset(1, 90) } else { bench.data(90, b"", true) };
        assert_eq!(end, Ok(false));
        assert_eq!((bench.connection.received(), bench.connection.read_all()), (90, 0));
        assert!(bench.half.is_over());
        assert_eq!(bench.half.announce(PACE, 0), None);
    }
}

#[test]
fn stopping_a_half_whose_end_is_known_sends_nothing() {
    let ended: [fn(&mut Bench); 3] = [
        |bench| _ = bench.data(5, b"x", true),
        |bench| _ = bench.data(0, b"x", true),
        |bench| _ = bench.reset(1, 4),
    ];
    for end in ended {
        let mut bench = Bench::new(100, 100);
        end(&mut bench);
        assert!(!bench.stop());
        assert!(bench.half.is_over());
        assert_eq!(bench.connection.read_all(), 0);
        assert_eq!(bench.read(), Err(ReadError::Stopped));
    }
}

#[test]
fn new_credit_is_announced_only_while_the_end_is_unknown() {
    let mut bench = Bench::new(100, 1000);
    bench.data(0, &[0; 60], false).unwrap();
    assert!(!bench.half.is_announcement_due());
    bench.read().unwrap();
    assert!(bench.half.is_announcement_due());
    assert_eq!(bench.half.announce(PACE, 0), Some(160));
    bench.data(60, &[0; 90], true).unwrap();
    bench.read().unwrap();
    assert!(!bench.half.is_announcement_due());
    assert_eq!(bench.half.announce(PACE, 0), None);
}
