//! Datagrams waiting for the socket, joined into trains of equal size so that the system splits them (UDP segmentation
//! offload) instead of taking one call per datagram.
//!
//! ```text
//!   datagrams   1400 1400 1400 900 | 1400 1400 | 60
//!   trains      [ A: size 1400    ]  [ A 1400 ]  [ B ]     a shorter datagram ends its train
//! ```

use core::ops::Range;

use crate::socket::{Socket, Train};

/// No train is longer than the largest UDP payload over IPv4.
const TRAIN_SIZE_MAX: usize = 65_507;

/// Datagrams in order, kept until the socket has accepted them.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    trains: Vec<(Train, Range<usize>)>,
    /// The number of trains already sent.
    sent: usize,
}

impl Outbox {
    /// Returns true if the socket has accepted everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.trains.is_empty()
    }

    /// Bytes waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.trains.get(self.sent).map_or(0, |(_, range)| self.bytes.len() - range.start)
    }

    /// Appends a datagram. `head` holds its destination, with the datagram's size as segment size; trains grow to
    /// `train_length_max` datagrams.
    pub(crate) fn push(&mut self, head: Train, datagram: &[u8], train_length_max: usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        let end = self.bytes.len();
        if let Some((train, range)) = self.trains.last_mut() {
            let same_way = Train { segment_size: train.segment_size, ..head } == *train;
            let is_open = range.len() % train.segment_size == 0;
            let fits = datagram.len() <= train.segment_size
                && range.len() / train.segment_size < train_length_max
                && end - range.start <= TRAIN_SIZE_MAX;
            if same_way && is_open && fits {
                range.end = end;
                return;
            }
        }
        self.trains.push((head, start..end));
    }

    /// Sends as much as the socket accepts. Returns false if the socket is full.
    pub(crate) fn flush(&mut self, socket: &mut Socket) -> bool {
        while let Some((train, range)) = self.trains.get(self.sent) {
            let Some(bytes) = self.bytes.get(range.clone()) else { break };
            if !socket.try_send(train, bytes) {
                self.forget_sent();
                return false;
            }
            self.sent += 1;
        }
        self.bytes.clear();
        self.trains.clear();
        self.sent = 0;
        true
    }

    /// Frees the place of what was sent, once that is more than what waits: each byte moves once at most.
    fn forget_sent(&mut self) {
        let gone = self.bytes.len() - self.waiting();
        if gone <= self.waiting() {
            return;
        }
        self.bytes.drain(..gone);
        self.trains.drain(..self.sent);
        self.trains.iter_mut().for_each(|(_, range)| *range = range.start - gone..range.end - gone);
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    fn head(port: u16, size: usize) -> Train {
        let destination = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        Train { destination, source: None, ecn: None, segment_size: size }
    }

    fn trains(datagrams: &[(u16, usize)], train_length_max: usize) -> Vec<(u16, usize, usize)> {
        let mut outbox = Outbox::default();
        for &(port, size) in datagrams {
            outbox.push(head(port, size), &vec![0; size], train_length_max);
        }
        let describe = |(train, range): &(Train, Range<usize>)| {
            (train.destination.port(), train.segment_size, range.len())
        };
        outbox.trains.iter().map(describe).collect()
    }

    #[test]
    fn a_shorter_datagram_ends_a_train_and_a_longer_one_starts_the_next() {
        let datagrams = [(1, 1400), (1, 1400), (1, 900), (1, 900), (1, 1400)];
        assert_eq!(trains(&datagrams, 64), [(1, 1400, 3700), (1, 900, 900), (1, 1400, 1400)]);
    }

    #[test]
    fn another_destination_starts_another_train() {
        assert_eq!(
            trains(&[(1, 100), (2, 100), (2, 100), (1, 100)], 64),
            [(1, 100, 100), (2, 100, 200), (1, 100, 100)]
        );
    }

    #[test]
    fn what_was_sent_does_not_wait_and_its_place_is_freed() {
        let mut outbox = Outbox::default();
        for (port, byte) in [(1, 1), (2, 2), (3, 3)] {
            outbox.push(head(port, 100), &[byte; 100], 64);
        }
        outbox.sent = 1;
        outbox.forget_sent();
        assert_eq!((outbox.waiting(), outbox.bytes.len()), (200, 300));
        outbox.sent = 2;
        outbox.forget_sent();
        assert_eq!((outbox.waiting(), outbox.bytes.len(), outbox.sent), (100, 100, 0));
        let (train, range) = &outbox.trains[0];
        assert_eq!((train.destination.port(), &outbox.bytes[range.clone()]), (3, &[3; 100][..]));
    }

    #[test]
    fn trains_respect_the_length_of_the_system_and_the_largest_payload() {
        assert_eq!(trains(&[(1, 100); 5], 2), [(1, 100, 200), (1, 100, 200), (1, 100, 100)]);
        assert_eq!(trains(&[(1, 100); 2], 1), [(1, 100, 100), (1, 100, 100)]);
        assert!(trains(&[(1, 1472); 64], 64).iter().all(|&(_, _, length)| length <= TRAIN_SIZE_MAX));
    }
}
