//! Round trips by ICMP (RFC 792): the kernel at the other end replies, so they contain no wake-up of a program.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::TestbedError;
use crate::network::Network;
use crate::priority::ask_for_real_time;

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// The identifier of our requests; the namespace has no others.
const IDENTIFIER: u16 = 0x7171;
/// Header and 56 bytes, as `ping` sends them.
const LENGTH: usize = 64;

/// A reply that takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pings the server from the client `count` times and returns the round trips of the replies.
///
/// # Errors
/// Returns an error if there are no such sockets, or the measurement was interrupted.
///
/// # Panics
/// Panics if the thread panicked.
pub fn ping(network: &Network, count: u16, interval: Duration) -> Result<Vec<Duration>, TestbedError> {
    let address = SocketAddr::new(IpAddr::V4(network.server_address()), 0);
    let (clock, stop) = (network.clock, network.stop.clone());
    let thread = network.client.spawn("ping", move || {
        ask_for_real_time();
        let mut socket = connect(address).map_err(TestbedError::of("cannot ping"))?;
        let mut round_trips = Vec::new();
        for sequence in 0..count {
            let sent = clock.now();
            socket.write_all(&request(sequence)).map_err(TestbedError::of("cannot ping"))?;
            if await_reply(&mut socket, sequence).map_err(TestbedError::of("cannot ping"))? {
                round_trips.push(clock.now().saturating_since(sent));
            }
            stop.sleep(interval)?;
        }
        Ok(round_trips)
    });
    thread.join().expect("a ping does not panic")
}

fn connect(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
    socket.connect(&address.into())?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Returns true if the reply arrived in time.
fn await_reply(socket: &mut Socket, sequence: u16) -> io::Result<bool> {
    let mut packet = [0; 256];
    loop {
        match socket.read(&mut packet) {
            Ok(length) if is_reply(&packet[..length], sequence) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

fn request(sequence: u16) -> [u8; LENGTH] {
    let mut message = [0; LENGTH];
    message[0] = ECHO_REQUEST;
    message[4..6].copy_from_slice(&IDENTIFIER.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Returns true if an IPv4 packet is the reply to this request.
fn is_reply(packet: &[u8], sequence: u16) -> bool {
    let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    let Some(message) = packet.get(header..).filter(|message| message.len() >= 8) else { return false };
    message[0] == ECHO_REPLY
        && message[4..6] == IDENTIFIER.to_be_bytes()
        && message[6..8] == sequence.to_be_bytes()
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_message_with_its_checksum_is_zero() {
        assert_eq!(checksum(&request(513)), 0);
        // RFC 1071, section 3: the sum of these is ddf2.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_reply_is_recognized_by_type_identifier_and_number() {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet.extend(request(7));
        assert!(!is_reply(&packet, 7), "that is a request");
        packet[20] = ECHO_REPLY;
        assert!(is_reply(&packet, 7) && !is_reply(&packet, 8));
        assert!(!is_reply(&packet[..24], 7) && !is_reply(&[], 7));
    }
}
