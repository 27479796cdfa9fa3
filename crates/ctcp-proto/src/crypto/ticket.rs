//! Tickets, by which a returning client may send data in its first flight (PROTOCOL.md section 3.3).
//!
//! ```text
//!  server, any time     NEW_TICKET: secret, ticket             ticket = nonce (12) | sealed(address (128), client's key, secret)
//!  client, next visit   INITIATE: token = ticket               the address is proved, and the key is known:
//!                       EARLY: sealed stream frames            key and IV = Expand(secret, "ctcp early" | SHA-256(message 1), 44)
//! ```
//!
//! Only the server can open a ticket. Its key is derived from a secret that a restart replaces, and from the time. A ticket is spent by
//! the first handshake that uses it, so recorded early data has no effect the second time.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use std::collections::BTreeSet;

use ctcp_base::Instant;
use ring::{aead, digest};
use zeroize::{Zeroize, Zeroizing};

use super::derive::expand;
use super::keys::PublicKey;
use crate::wire::{NewTicket, TAG_LENGTH, TOKEN_MAX};

/// How long a key for tickets is used. The one before stays valid, so a ticket is valid for this time at least and twice as long at most.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(6 * 3600);

/// Maximum number of tickets spent under one key, 5 MB. Beyond it, early data waits for the next key.
const SPENT_MAX: usize = 65_536;

const NONCE_LENGTH: usize = 12;
const CONTENTS_LENGTH: usize = 16 + 32 + 32;

/// The length of a ticket in bytes.
pub const TICKET_LENGTH: usize = NONCE_LENGTH + CONTENTS_LENGTH + TAG_LENGTH;
const _: () = assert!(TICKET_LENGTH <= TOKEN_MAX, "a ticket is a token");

/// Permission to send data in the first flight of one later connection to the same server.
///
/// Keep it secret: whoever has it can read that data. A server takes it once, for the client and the address that it was given to, so
/// only this client's private key makes use of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    token: Vec<u8>,
    secret: [u8; 32],
    lifetime: Duration,
    streams: u64,
}

/// Bytes of [`Ticket::to_bytes`] in addition to the token.
const FIXED_LENGTH: usize = 4 + 8 + 32;

impl Ticket {
    /// The ticket of a NEW_TICKET.
    pub(crate) fn new(frame: &NewTicket<'_>) -> Self {
        // A century is enough. More could not be added to a calendar's time.
        let lifetime = Duration::from_secs(frame.lifetime.min(u32::MAX.into()));
        Self { token: frame.token.to_vec(), secret: frame.secret, lifetime, streams: frame.streams }
    }

    /// How long the server takes it, counted from when it was received.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// How many streams may be opened before the handshake is complete.
    pub(crate) fn streams(&self) -> u64 {
        self.streams
    }

    pub(crate) fn token(&self) -> &[u8] {
        &self.token
    }

    pub(crate) fn early_key(&self, message: &[u8]) -> EarlyKey {
        EarlyKey::new(&self.secret, message)
    }

    /// The ticket as bytes, to be kept in a file that only its owner can read.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let seconds = u32::try_from(self.lifetime.as_secs()).unwrap_or(u32::MAX);
        [&seconds.to_be_bytes()[..], &self.streams.to_be_bytes(), &self.secret, &self.token].concat()
    }

    /// The ticket of [`Self::to_bytes`]; `None` for other bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fixed, token) = bytes.split_at_checked(FIXED_LENGTH)?;
        let (seconds, rest) = fixed.split_first_chunk()?;
        let (streams, secret) = rest.split_first_chunk()?;
        (1..=TOKEN_MAX).contains(&token.len()).then_some(Self {
            token: token.to_vec(),
            secret: secret.try_into().ok()?,
            lifetime: Duration::from_secs(u32::from_be_bytes(*seconds).into()),
            streams: u64::from_be_bytes(*streams),
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ticket").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

/// What a server reads from its own ticket.
pub(crate) struct Visit {
    epoch: u64,
    nonce: [u8; NONCE_LENGTH],
    /// The address of the client that got it.
    pub(crate) address: IpAddr,
    /// The static key of that client.
    pub(crate) client: PublicKey,
    secret: Zeroizing<[u8; 32]>,
}

impl Visit {
    /// The key of the early data after this message 1.
    pub(crate) fn early_key(&self, message: &[u8]) -> EarlyKey {
        EarlyKey::new(&self.secret, message)
    }
}

impl fmt::Debug for Visit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Visit").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Seals and opens a server's tickets.
#[derive(Clone)]
pub(crate) struct TicketKey(Zeroizing<[u8; 32]>);

impl TicketKey {
    /// The keys that follow from a secret of good entropy. Tickets under another secret do not open.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self(Zeroizing::new(secret))
    }

    fn key(&self, epoch: u64) -> aead::LessSafeKey {
        let key: Zeroizing<[u8; 32]> =
            Zeroizing::new(expand(&self.0, &[b"ctcp ticket", &epoch.to_be_bytes()]));
        chacha(&key)
    }

    /// The ticket of a client with this key, at this address. The nonce must not have been used before.
    pub(crate) fn seal(
        &self,
        now: Instant,
        nonce: [u8; NONCE_LENGTH],
        address: IpAddr,
        client: &PublicKey,
        secret: &[u8; 32],
    ) -> Vec<u8> {
        let mut ticket = nonce.to_vec();
        let mut contents = [&mapped(address).octets()[..], &client.0, secret].concat();
        let tag = self
            .key(epoch(now))
            .seal_in_place_separate_tag(
                aead::Nonce::assume_unique_for_key(nonce),
                aead::Aad::empty(),
                &mut contents,
            )
            .expect("the contents are far below the limit of the AEAD");
        ticket.extend_from_slice(&contents);
        ticket.extend_from_slice(tag.as_ref());
        ticket
    }

    /// Opens a ticket that is still valid; `None` if the token is none.
    pub(crate) fn open(&self, now: Instant, token: &[u8]) -> Option<Visit> {
        let (nonce, sealed) = token.split_first_chunk::<NONCE_LENGTH>()?;
        if token.len() != TICKET_LENGTH {
            return None;
        }
        let this = epoch(now);
        [Some(this), this.checked_sub(1)].into_iter().flatten().find_map(|epoch| {
            let mut bytes = Zeroizing::new(sealed.to_vec());
            let nonce_of_key = aead::Nonce::assume_unique_for_key(*nonce);
            let contents =
                self.key(epoch).open_in_place(nonce_of_key, aead::Aad::empty(), &mut bytes).ok()?;
            let (address, rest) = contents.split_first_chunk::<16>()?;
            let (client, secret) = rest.split_first_chunk()?;
            Some(Visit {
                epoch,
                nonce: *nonce,
                address: Ipv6Addr::from(*address).to_canonical(),
                client: PublicKey(*client),
                secret: Zeroizing::new((*secret).try_into().ok()?),
            })
        })
    }
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TicketKey(..)")
    }
}

/// The tickets that were spent under the current key and the one before.
#[derive(Debug, Default)]
pub(crate) struct SpentTickets {
    epoch: u64,
    current: Spent,
    previous: Spent,
}

/// The tickets that were spent under one key.
#[derive(Debug, Default)]
struct Spent {
    nonces: BTreeSet<[u8; NONCE_LENGTH]>,
    /// The ephemeral keys of the handshakes that spent them.
    handshakes: BTreeSet<[u8; 32]>,
}

impl Spent {
    fn has_room_for(&self, visit: &Visit) -> bool {
        self.nonces.len() < SPENT_MAX && !self.nonces.contains(&visit.nonce)
    }
}

impl SpentTickets {
    /// Whether the ticket can still be spent.
    pub(crate) fn is_fresh(&self, visit: &Visit) -> bool {
        match self.epoch.checked_sub(visit.epoch) {
            Some(0) => self.current.has_room_for(visit),
            Some(1) => self.previous.has_room_for(visit),
            Some(_) => false,
            // The first of a new key.
            None => true,
        }
    }

    /// Whether the handshake with this ephemeral key has spent a ticket. Its early data may have had its effect, and its client would send
    /// the same again. So if the connection is gone, it must not get another one.
    pub(crate) fn was_spent_by(&self, ephemeral: &[u8; 32]) -> bool {
        self.current.handshakes.contains(ephemeral) || self.previous.handshakes.contains(ephemeral)
    }

    /// Spends the ticket, in the handshake with this ephemeral key. Returns false if it was spent before.
    pub(crate) fn spend(&mut self, visit: &Visit, ephemeral: [u8; 32]) -> bool {
        if visit.epoch > self.epoch {
            let is_next = visit.epoch == self.epoch + 1;
            let old = core::mem::take(&mut self.current);
            self.previous = if is_next { old } else { Spent::default() };
            self.epoch = visit.epoch;
        }
        if !self.is_fresh(visit) {
            return false;
        }
        let spent = if visit.epoch == self.epoch { &mut self.current } else { &mut self.previous };
        spent.handshakes.insert(ephemeral);
        spent.nonces.insert(visit.nonce)
    }
}

/// Seals or opens the early data of one handshake.
pub(crate) struct EarlyKey {
    key: aead::LessSafeKey,
    iv: [u8; NONCE_LENGTH],
}

impl EarlyKey {
    /// The key after Noise message 1, of which no two are alike.
    fn new(secret: &[u8; 32], message: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA256, message);
        let bytes: Zeroizing<[u8; 32 + NONCE_LENGTH]> =
            Zeroizing::new(expand(secret, &[b"ctcp early", hash.as_ref()]));
        let (key, iv) = bytes.split_first_chunk().expect("the key is shorter");
        Self { key: chacha(key), iv: iv.try_into().expect("the rest is the IV") }
    }

    fn nonce(&self, index: u8) -> aead::Nonce {
        let mut nonce = self.iv;
        nonce[NONCE_LENGTH - 1] ^= index;
        aead::Nonce::assume_unique_for_key(nonce)
    }

    /// Seals the contents of datagram `index`, which is used once.
    pub(crate) fn seal(&self, index: u8, mut contents: Vec<u8>) -> Vec<u8> {
        self.key
            .seal_in_place_append_tag(self.nonce(index), aead::Aad::empty(), &mut contents)
            .expect("a datagram is far below the limit of the AEAD");
        contents
    }

    /// Opens datagram `index`.
    pub(crate) fn open(&self, index: u8, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = sealed.to_vec();
        let length = self.key.open_in_place(self.nonce(index), aead::Aad::empty(), &mut bytes).ok()?.len();
        bytes.truncate(length);
        Some(bytes)
    }
}

impl fmt::Debug for EarlyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EarlyKey(..)")
    }
}

fn chacha(key: &[u8; 32]) -> aead::LessSafeKey {
    let key = aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key).expect("the key has the right length");
    aead::LessSafeKey::new(key)
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / TICKET_LIFETIME.as_nanos() as u64
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1_000_000);
    const CLIENT: PublicKey = PublicKey([7; 32]);

    fn here() -> IpAddr {
        "192.0.2.1".parse().unwrap()
    }

    fn ticket(key: &TicketKey, now: Instant, nonce: u8) -> Vec<u8> {
        key.seal(now, [nonce; NONCE_LENGTH], here(), &CLIENT, &[9; 32])
    }

    #[test]
    fn a_ticket_opens_only_unchanged_and_with_its_servers_key() {
        let key = TicketKey::new([1; 32]);
        let token = ticket(&key, NOW, 1);
        assert_eq!(token.len(), TICKET_LENGTH);
        let visit = key.open(NOW, &token).expect("it opens");
        assert_eq!((visit.address, visit.client, *visit.secret), (here(), CLIENT, [9; 32]));
        assert!(TicketKey::new([2; 32]).open(NOW, &token).is_none(), "a server that was restarted");
        for bit in 0..8 * token.len() {
            let mut changed = token.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(key.open(NOW, &changed).is_none(), "bit {bit}");
        }
        for length in 0..token.len() {
            assert!(key.open(NOW, &token[..length]).is_none());
        }
    }

    #[test]
    fn a_ticket_is_valid_for_its_lifetime_and_at_most_twice_as_long() {
        let key = TicketKey::new([1; 32]);
        let token = ticket(&key, NOW, 1);
        assert!(key.open(NOW + TICKET_LIFETIME, &token).is_some());
        assert!(key.open(NOW + 2 * TICKET_LIFETIME, &token).is_none());
    }

    #[test]
    fn a_ticket_is_spent_once() {
        let key = TicketKey::new([1; 32]);
        let mut spent = SpentTickets::default();
        let open = |now, token: &[u8]| key.open(now, token).expect("it is valid");
        let mut spend = |visit: &Visit| spent.spend(visit, [visit.nonce[0]; 32]);
        let (first, second) = (ticket(&key, NOW, 1), ticket(&key, NOW, 2));
        assert!(spend(&open(NOW, &first)) && !spend(&open(NOW, &first)));
        // The next key does not forget it.
        let later = NOW + TICKET_LIFETIME;
        assert!(spend(&open(later, &ticket(&key, later, 1))));
        assert!(!spend(&open(later, &first)) && spend(&open(later, &second)));
        assert!(!spend(&open(later, &second)));
        let visit = open(later, &first);
        let much_later = later + 5 * TICKET_LIFETIME;
        assert!(spend(&open(much_later, &ticket(&key, much_later, 3))) && !spend(&visit));
    }

    #[test]
    fn a_full_register_refuses_instead_of_forgetting() {
        let mut spent = SpentTickets::default();
        let visit = |number: u32| Visit {
            epoch: 5,
            nonce: core::array::from_fn(|index| number.to_be_bytes().get(index).copied().unwrap_or(0)),
            address: here(),
            client: CLIENT,
            secret: Zeroizing::new([0; 32]),
        };
        assert!((0..SPENT_MAX as u32).all(|number| spent.spend(&visit(number), [1; 32])));
        assert!(!spent.spend(&visit(SPENT_MAX as u32), [2; 32]) && !spent.is_fresh(&visit(0)));
        assert!(spent.was_spent_by(&[1; 32]) && !spent.was_spent_by(&[2; 32]));
    }

    #[test]
    fn early_data_opens_only_in_its_place_and_after_its_message() {
        let sealed = EarlyKey::new(&[1; 32], b"message").seal(3, b"data".to_vec());
        let open = |secret, message: &[u8], index| EarlyKey::new(&[secret; 32], message).open(index, &sealed);
        assert_eq!(open(1, b"message", 3), Some(b"data".to_vec()));
        assert_eq!(open(1, b"message", 2), None);
        assert_eq!(open(1, b"another", 3), None);
        assert_eq!(open(2, b"message", 3), None);
    }

    #[test]
    fn early_data_is_sealed_as_on_the_page() {
        let page = include_str!("../../../../docs/test-vectors.txt");
        let after = |name: &str| page.split_once(name).expect("it is on the page").1.trim_start();
        let hexadecimal = |text: &str| -> Vec<u8> {
            let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
            let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).unwrap());
            pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
        };
        let line = |name| hexadecimal(after(name).lines().next().unwrap());
        let message = hexadecimal(after("message 1   ").split_once("message 2").unwrap().0);
        let key = EarlyKey::new(&[0x0a; 32], &message);
        let symbol = vec![0, 5, 0x0a, 4, 2, 0x68, 0x69];
        assert_eq!(key.iv[..], line("early IV"));
        assert_eq!(key.seal(1, symbol), line("sealed, index 1"));
    }

    #[test]
    fn a_ticket_survives_a_file_and_other_bytes_are_none() {
        let frame = NewTicket { lifetime: 60, streams: 4, secret: [3; 32], token: &[5; TICKET_LENGTH] };
        let ticket = Ticket::new(&frame);
        let bytes = ticket.to_bytes();
        assert_eq!(Ticket::from_bytes(&bytes), Some(ticket));
        let eternal = Ticket::new(&NewTicket { lifetime: crate::wire::VARINT_MAX, ..frame });
        assert_eq!(Ticket::from_bytes(&eternal.to_bytes()), Some(eternal));
        assert_eq!(Ticket::from_bytes(&bytes[..FIXED_LENGTH]), None);
        assert_eq!(Ticket::from_bytes(&[]), None);
        assert_eq!(Ticket::from_bytes(&[0; FIXED_LENGTH + TOKEN_MAX + 1]), None);
    }
}
