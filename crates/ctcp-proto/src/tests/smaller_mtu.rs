//! Transfers on a path that suddenly carries smaller datagrams than those for which the symbols in flight were made.

use core::time::Duration;

use ctcp_base::{Instant, Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, QueueLimit};

use super::pair::Pair;
use crate::{Connection, Profile, ReadOutcome, StreamId, TransportConfig, WriteError};

const SIZE: usize = 2_000_000;

/// The datagram size that the network carries after the change.
const SMALLER: usize = 1_250;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Download,
    Upload,
}

/// A transfer of [`SIZE`] bytes on the client's first stream.
struct Transfer {
    direction: Direction,
    stream: Option<StreamId>,
    serving: Option<StreamId>,
    written: usize,
    read: usize,
}

fn pattern(index: usize) -> u8 {
    ((index * 31) ^ (index >> 8) ^ (index >> 16)) as u8
}

impl Transfer {
    fn new(direction: Direction) -> Self {
        Self { direction, stream: None, serving: None, written: 0, read: 0 }
    }

    /// Advances both applications. Returns true once all bytes and the end were read.
    fn advance(&mut self, pair: &mut Pair) -> bool {
        let now = pair.now;
        let client = pair.client_connection();
        if self.stream.is_none() && client.is_connected() {
            let id = client.open().expect("a stream");
            self.stream = Some(id);
            if self.direction == Direction::Download {
                client.write(now, id, b"GET").expect("room");
            }
        }
        if self.direction == Direction::Upload {
            self.write(now, self.stream, pair.client_connection());
        }
        let is_read = match pair.server_connection() {
            Some(server) => {
                self.serving = self.serving.or_else(|| server.accept());
                match self.direction {
                    Direction::Download => {
                        self.write(now, self.serving, server);
                        false
                    }
                    Direction::Upload => self.read(self.serving, server),
                }
            }
            None => false,
        };
        match self.direction {
            Direction::Download => self.read(self.stream, pair.client_connection()),
            Direction::Upload => is_read,
        }
    }

    fn write(&mut self, now: Instant, id: Option<StreamId>, connection: &mut Connection) {
        while let Some(id) = id.filter(|_| self.written < SIZE) {
            let end = (self.written + 65_536).min(SIZE);
            let chunk: Vec<u8> = (self.written..end).map(pattern).collect();
            match connection.write(now, id, &chunk) {
                Ok(taken) => self.written += taken,
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
            if self.written == SIZE {
                connection.finish(id).expect("open");
            }
        }
    }

    fn read(&mut self, id: Option<StreamId>, connection: &mut Connection) -> bool {
        let Some(id) = id else { return false };
        let mut buffer = [0; 4_096];
        loop {
            match connection.read(id, &mut buffer) {
                Ok(ReadOutcome::Data(count)) => {
                    for &byte in &buffer[..count] {
                        assert_eq!(byte, pattern(self.read), "at {}", self.read);
                        self.read += 1;
                    }
                }
                Ok(ReadOutcome::Blocked) => return false,
                Ok(ReadOutcome::Finished) => return true,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Returns how long the rest of the transfer took after the path changed in its middle.
fn transfer(profile: Profile, direction: Direction, loss: f64, moves: bool) -> Duration {
    let link = LinkConfig {
        rate: Rate::from_megabits_per_second(25),
        delay: Duration::from_millis(10),
        loss: LossModel::Bernoulli(Probability::new(loss).expect("a probability")),
        queue: QueueLimit::Packets(42),
        overhead: 28,
        ..LinkConfig::default()
    };
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    let mut pair = Pair::new(link, transport.clone(), 1);
    pair.connect(transport);
    let mut transfer = Transfer::new(direction);
    assert!(pair.run_until(Duration::from_secs(60), |pair| {
        assert!(!transfer.advance(pair), "the transfer ended before its middle");
        transfer.read > SIZE / 2
    }));
    let sender = |pair: &mut Pair| match direction {
        Direction::Download => pair.server_connection().expect("a connection").stats(),
        Direction::Upload => pair.client_connection().stats(),
    };
    let before = sender(&mut pair);
    assert!(before.datagram_size > SMALLER as u64 && before.symbols_outstanding > 0, "{before:?}");
    pair.datagram_size_max = SMALLER;
    if moves {
        pair.client.address = "198.51.100.7:1000".parse().expect("an address");
    }
    let start = pair.now;
    let done = pair.run_until(Duration::from_secs(60), |pair| transfer.advance(pair));
    let stats = sender(&mut pair);
    assert!(done && transfer.read == SIZE, "{} bytes after {:?}: {stats:?}", transfer.read, pair.now - start);
    assert!(stats.datagram_size <= SMALLER as u64, "{stats:?}");
    pair.now - start
}

/// Profiles and losses.
const CASES: [(Profile, f64); 4] =
    [(Profile::DEFAULT, 0.0), (Profile::DEFAULT, 0.1), (Profile::CTCP, 0.1), (Profile::TCP, 0.02)];

/// Includes the search for the new size with its timeouts; 1 MB alone takes 0.3 s.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_download_continues_when_the_client_moves_to_a_path_of_smaller_datagrams() {
    for (profile, loss) in CASES {
        let rest = transfer(profile, Direction::Download, loss, true);
        println!("{profile} at {loss}: {rest:?}");
        assert!(rest < PATIENCE, "{profile} at {loss}: {rest:?}");
    }
}

#[test]
fn an_upload_continues_when_the_client_moves_to_a_path_of_smaller_datagrams() {
    for (profile, loss) in CASES {
        let rest = transfer(profile, Direction::Upload, loss, true);
        println!("{profile} at {loss}: {rest:?}");
        assert!(rest < PATIENCE, "{profile} at {loss}: {rest:?}");
    }
}

#[test]
fn a_black_hole_during_a_transfer_is_detected_and_everything_arrives() {
    for direction in [Direction::Download, Direction::Upload] {
        for loss in [0.0, 0.1] {
            let rest = transfer(Profile::DEFAULT, direction, loss, false);
            println!("{direction:?} at {loss}: {rest:?}");
            assert!(rest < PATIENCE, "{direction:?} at {loss}: {rest:?}");
        }
    }
}
