//! Key phases (RFC 9001 section 6): which key seals and which keys may open packets.
//!
//! ```text
//!  sending      [n] ---- advance: a packet of n was acknowledged, and the peer is at n ----> [n+1]
//!                 \----- advance: the peer is at n+1 --------------------------------------> [n+1]
//!
//!  receiving    [previous n-1 | current n | next n+1]  -- a packet opened with next -->  [n | n+1 | n+2]
//! ```
//!
//! The previous and the next phase have the same bit K. The packet number distinguishes them: a sender never returns to an older key, so on
//! each path all numbers of a phase are larger than those of the phase before.

use ring::aead::Tag;
use zeroize::Zeroizing;

use super::PacketKey;
use super::header::Unprotected;
use crate::crypto::derive::expand;
use crate::crypto::suite::Suite;
use crate::id::{PacketNumber, PathId};
use crate::wire::VARINT_MAX;

/// The secret from which the next key is derived, and which is then replaced by its successor.
struct Chain {
    suite: Suite,
    secret: Zeroizing<[u8; 32]>,
}

impl Chain {
    /// Derives the key of the current secret.
    fn key(&self) -> PacketKey {
        PacketKey::new(self.suite, &self.secret)
    }

    fn advance(&mut self) {
        *self.secret = expand(&self.secret, &[b"ctcp ku"]);
    }

    /// Derives the key of the current secret and advances to the next one.
    fn next_key(&mut self) -> PacketKey {
        let key = self.key();
        self.advance();
        key
    }

    fn mix(&mut self, shared: &[u8; 32]) {
        *self.secret = expand(&self.secret, &[b"ctcp share", shared]);
    }
}

/// Packets sealed on a path. There is at most one entry per path id, 256 in all.
struct SentOnPath {
    path: PathId,
    /// The phase that `first` belongs to.
    phase: u64,
    /// The first packet of that phase.
    first: PacketNumber,
    last: PacketNumber,
}

/// The sending side.
pub(super) struct SendPhases {
    chain: Chain,
    key: PacketKey,
    number: u64,
    sealed: u64,
    is_acked: bool,
    paths: Vec<SentOnPath>,
}

impl SendPhases {
    pub(super) fn new(suite: Suite, secret: [u8; 32]) -> Self {
        let mut chain = Chain { suite, secret: Zeroizing::new(secret) };
        let key = chain.next_key();
        Self { chain, key, number: 0, sealed: 0, is_acked: false, paths: Vec::new() }
    }

    /// The current phase, from 0.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The key phase bit K.
    pub(super) const fn bit(&self) -> bool {
        self.number % 2 == 1
    }

    /// Number of packets sealed in this phase.
    pub(super) const fn sealed(&self) -> u64 {
        self.sealed
    }

    /// Whether the peer has acknowledged a packet of this phase.
    pub(super) const fn is_acked(&self) -> bool {
        self.is_acked
    }

    /// Mixes a secret into the next key.
    pub(super) fn mix_into_next(&mut self, shared: &[u8; 32]) {
        self.chain.mix(shared);
    }

    pub(super) fn advance(&mut self) {
        self.key = self.chain.next_key();
        self.number += 1;
        self.sealed = 0;
        self.is_acked = false;
    }

    pub(super) fn seal(
        &mut self,
        path: PathId,
        number: PacketNumber,
        associated: &[u8],
        payload: &mut [u8],
    ) -> Tag {
        self.note_sent(path, number);
        self.sealed += 1;
        self.key.seal(self.key.nonce(path, number), associated, payload)
    }

    fn note_sent(&mut self, path: PathId, number: PacketNumber) {
        assert!(number.0 <= VARINT_MAX, "packet numbers end at 2^62 - 1");
        let phase = self.number;
        match self.paths.iter_mut().find(|sent| sent.path == path) {
            None => self.paths.push(SentOnPath { path, phase, first: number, last: number }),
            Some(sent) => {
                assert!(number > sent.last, "a packet number is sealed once, in order");
                sent.last = number;
                if sent.phase != phase {
                    sent.phase = phase;
                    sent.first = number;
                }
            }
        }
    }

    pub(super) fn on_acked(&mut self, path: PathId, number: PacketNumber) {
        let phase = self.number;
        self.is_acked = self.is_acked
            || self.paths.iter().any(|sent| {
                sent.path == path && sent.phase == phase && (sent.first..=sent.last).contains(&number)
            });
    }
}

/// The first packet of a phase that arrived on a path. Numbers of earlier phases are below it, those of later phases above. There is at
/// most one entry per path id, 256 in all.
struct FirstOnPath {
    path: PathId,
    phase: u64,
    number: PacketNumber,
}

/// The result of opening a packet.
pub(super) struct OpenedWith {
    pub(super) key_phase_changed: bool,
}

/// The receiving side. The next key is derived in advance, so that the time to open a packet does not reveal its phase (RFC 9001 section
/// 9.5).
pub(super) struct ReceivePhases {
    /// Holds the secret of the next phase.
    chain: Chain,
    previous: Option<PacketKey>,
    current: PacketKey,
    next: PacketKey,
    number: u64,
    firsts: Vec<FirstOnPath>,
    /// A copy of the payload for when two keys must be tried, since a failed attempt overwrites it.
    scratch: Vec<u8>,
}

impl ReceivePhases {
    pub(super) fn new(suite: Suite, secret: [u8; 32]) -> Self {
        let mut chain = Chain { suite, secret: Zeroizing::new(secret) };
        let current = chain.next_key();
        let next = chain.key();
        Self { chain, previous: None, current, next, number: 0, firsts: Vec::new(), scratch: Vec::new() }
    }

    /// The current phase, from 0.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Mixes a secret into the next key.
    pub(super) fn mix_into_next(&mut self, shared: &[u8; 32]) {
        self.chain.mix(shared);
        self.next = self.chain.key();
    }

    pub(super) fn forget_previous(&mut self) {
        self.previous = None;
    }

    /// Opens a datagram whose header protection was removed. Returns `None` if no key opens it.
    pub(super) fn open(
        &mut self,
        datagram: &mut [u8],
        header: &Unprotected,
        number: PacketNumber,
    ) -> Option<OpenedWith> {
        let path = header.path;
        let (associated, payload) = datagram.split_at_mut_checked(header.length)?;
        let try_key =
            |key: &PacketKey, payload: &mut [u8]| key.open(key.nonce(path, number), associated, payload);

        if header.phase == (self.number % 2 == 1) {
            return try_key(&self.current, payload).then(|| self.on_current(path, number));
        }
        let first = self.first_on(path);
        if first.is_some_and(|first| number < first) {
            let previous = self.previous.as_ref()?;
            return try_key(previous, payload).then_some(OpenedWith { key_phase_changed: false });
        }
        // No packet of this phase has arrived on the path, so the packet may be of the previous or the next phase.
        if let (None, Some(previous)) = (first, &self.previous) {
            self.scratch.clear();
            self.scratch.extend_from_slice(payload);
            if try_key(previous, payload) {
                return Some(OpenedWith { key_phase_changed: false });
            }
            payload.copy_from_slice(&self.scratch);
        }
        try_key(&self.next, payload).then(|| self.on_next(path, number))
    }

    fn on_current(&mut self, path: PathId, number: PacketNumber) -> OpenedWith {
        let phase = self.number;
        match self.firsts.iter_mut().find(|first| first.path == path) {
            None => self.firsts.push(FirstOnPath { path, phase, number }),
            Some(first) if first.phase != phase => *first = FirstOnPath { path, phase, number },
            Some(_) => {}
        }
        OpenedWith { key_phase_changed: false }
    }

    fn on_next(&mut self, path: PathId, number: PacketNumber) -> OpenedWith {
        self.chain.advance();
        let current = core::mem::replace(&mut self.next, self.chain.key());
        self.previous = Some(core::mem::replace(&mut self.current, current));
        self.number += 1;
        self.on_current(path, number);
        OpenedWith { key_phase_changed: true }
    }

    fn first_on(&self, path: PathId) -> Option<PacketNumber> {
        let on_path = self.firsts.iter().find(|first| first.path == path);
        on_path.filter(|first| first.phase == self.number).map(|first| first.number)
    }
}
