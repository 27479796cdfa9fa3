//! An attacker next to the link. It observes datagrams and sends copies, damaged copies, copies from other addresses,
//! and noise. It has no keys, so nothing it sends may have any effect.

use core::net::{IpAddr, SocketAddr};

use ctcp_base::{Prng, Probability};

use crate::node::Datagram;

/// Number of datagrams it remembers.
const MEMORY: usize = 32;

/// The port of its own addresses, which no host uses.
const PORT: u16 = 666;

/// The attacker.
#[derive(Clone, Debug)]
pub struct Mischief {
    prng: Prng,
    rate: Probability,
    memory: Vec<Datagram>,
    seen: u64,
}

impl Mischief {
    /// Creates an attacker that adds a datagram with the probability `rate` whenever one passes.
    #[must_use]
    pub fn new(rate: Probability, prng: Prng) -> Self {
        Self { prng, rate, memory: Vec::new(), seen: 0 }
    }

    /// Returns whether an address belongs to the attacker and not to a host.
    #[must_use]
    pub fn invented(address: SocketAddr) -> bool {
        address.port() == PORT
    }

    /// Observes a passing datagram. Returns a datagram to send in the same direction, if any.
    pub(crate) fn on_datagram(&mut self, datagram: &Datagram) -> Option<Datagram> {
        if self.memory.len() < MEMORY {
            self.memory.push(datagram.clone());
        } else {
            let place = (self.seen % MEMORY as u64) as usize;
            self.memory[place] = datagram.clone();
        }
        self.seen += 1;
        self.prng.chance(self.rate).then(|| self.invent(datagram))
    }

    fn invent(&mut self, passing: &Datagram) -> Datagram {
        // A remembered datagram may have travelled in the other direction; it is then sent back to its sender.
        let remembered = self.prng.below(self.memory.len() as u64) as usize;
        let model = if self.prng.below(2) == 0 { passing } else { &self.memory[remembered] };
        let mut bytes = model.bytes.clone();
        match self.prng.below(5) {
            0 => {}
            1 => {
                let length = self.prng.below(bytes.len() as u64 + 1) as usize;
                bytes.truncate(length);
            }
            2 => self.damage(&mut bytes),
            3 => {
                // Keep the header, so that the datagram reaches a connection.
                let keep = bytes.len().min(9 + self.prng.below(8) as usize);
                self.prng.fill(&mut bytes[keep..]);
            }
            _ => {
                bytes.resize(self.prng.below(1_400) as usize, 0);
                self.prng.fill(&mut bytes);
            }
        }
        let source = self.source(passing.source);
        Datagram { source, destination: passing.destination, ecn: passing.ecn, bytes }
    }

    fn damage(&mut self, bytes: &mut [u8]) {
        for _ in 0..=self.prng.below(4) {
            let place = self.prng.below(bytes.len() as u64) as usize;
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << self.prng.below(8);
            }
        }
    }

    /// Returns the true sender's address or one of the attacker's.
    fn source(&mut self, true_source: SocketAddr) -> SocketAddr {
        if self.prng.below(2) == 0 {
            return true_source;
        }
        SocketAddr::new(IpAddr::from([203, 0, 113, 1 + self.prng.below(4) as u8]), PORT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram() -> Datagram {
        Datagram {
            source: SocketAddr::from(([192, 0, 2, 2], 1000)),
            destination: SocketAddr::from(([192, 0, 2, 1], 2000)),
            ecn: None,
            bytes: vec![7; 100],
        }
    }

    #[test]
    fn the_attacker_sends_to_observed_destinations_from_true_or_recognizable_addresses() {
        let mut mischief = Mischief::new(Probability::ONE, Prng::new(1));
        let sent: Vec<Datagram> = (0..200).filter_map(|_| mischief.on_datagram(&datagram())).collect();
        assert_eq!(sent.len(), 200);
        assert!(sent.iter().all(|sent| sent.destination == datagram().destination));
        let invented = sent.iter().filter(|sent| Mischief::invented(sent.source)).count();
        assert!((50..150).contains(&invented), "{invented}");
        assert!(sent.iter().any(|sent| sent.bytes == datagram().bytes));
        assert!(sent.iter().any(|sent| sent.bytes.len() < 100));
        assert_eq!(mischief.memory.len(), MEMORY);
    }

    #[test]
    fn the_same_seed_gives_the_same_attack() {
        let run = || {
            let mut mischief = Mischief::new(Probability::new(0.5).expect("a probability"), Prng::new(2));
            (0..50).map(|_| mischief.on_datagram(&datagram())).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }
}
