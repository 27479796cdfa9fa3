//! The lifetime and renewal of keys (PROTOCOL.md section 2.2).
//!
//! ```text
//!  client  Idle -- key is old --> Wanted -- KEY_SHARE --> Offered -- KEY_SHARE arrives, mixed in --> Agreed -- update --> Idle
//!  server  Idle -- KEY_SHARE arrives --> Asked -- mixed in, KEY_SHARE --> Answered -- the client's update arrives --> Idle
//! ```
//!
//! Each key is derived from the previous one by a one-way function. Every [`LIFETIME`] a new shared secret, to which both sides contribute,
//! is mixed in. An attacker who steals the keys of a connection cannot read what was sent before the last update but one. A passive
//! attacker cannot read what is sent after the next update either.
//!
//! Invariant: both sides mix in a new secret before the same phase. Hence a client that sent its share starts no update before it has the
//! answer, and a server that answered starts none before it sees the client's update.

use core::time::Duration;

use ctcp_base::Instant;

use super::contents::Contents;
use super::{Established, TransportError};
use crate::crypto::exchange::{KeyShare, SHARE_LENGTH};
use crate::id::Role;
use crate::wire::{DatagramBuilder, Frame};

/// Maximum age of a key while packets flow. WireGuard renews its keys after the same time.
const LIFETIME: Duration = Duration::from_secs(120);

/// How long a server waits for its client to renew the keys before it derives the next key without a new secret.
const PATIENCE: Duration = Duration::from_secs(240);

/// Minimum interval between two answers of a server, since a key exchange costs it 0.1 ms.
const EARLIEST: Duration = Duration::from_secs(60);

/// How long packets under the previous key may arrive late, before that key is wiped. No path delays packets for longer.
const LATE: Duration = Duration::from_secs(10);

/// The state of a key exchange.
#[derive(Debug)]
enum Exchange {
    Idle,
    Wanted,
    Offered {
        share: KeyShare,
        is_due: bool,
    },
    Agreed,
    Asked {
        offer: [u8; SHARE_LENGTH],
    },
    Answered {
        public: [u8; SHARE_LENGTH],
        is_due: bool,
        /// The client's arrival in this phase shows that it has received the answer.
        phase: u64,
    },
}

/// The ages of the keys and the exchange for the next ones.
#[derive(Debug)]
pub(super) struct Keys {
    /// The phases of sending and receiving.
    phases: (u64, u64),
    since: Instant,
    /// When a new secret was last agreed on.
    exchanged: Instant,
    exchange: Exchange,
    /// The last offer that the server answered. The client may repeat it.
    answered: Option<[u8; SHARE_LENGTH]>,
}

impl Keys {
    pub(super) fn new(now: Instant) -> Self {
        Self { phases: (0, 0), since: now, exchanged: now, exchange: Exchange::Idle, answered: None }
    }

    /// Whether a KEY_SHARE must be sent. A secret is mixed in only while both directions are in the same phase.
    fn is_due(&self, now: Instant, phases: (u64, u64)) -> bool {
        match self.exchange {
            Exchange::Wanted => phases.0 == phases.1,
            Exchange::Asked { .. } => phases.0 == phases.1 && now - self.exchanged >= EARLIEST,
            Exchange::Offered { is_due, .. } | Exchange::Answered { is_due, .. } => is_due,
            Exchange::Idle | Exchange::Agreed => false,
        }
    }

    #[cfg(test)]
    pub(super) fn has_answered(&self) -> bool {
        self.answered.is_some()
    }

    /// A packet with this side's KEY_SHARE was lost.
    pub(super) fn on_share_lost(&mut self) {
        match &mut self.exchange {
            Exchange::Offered { is_due, .. } | Exchange::Answered { is_due, .. } => *is_due = true,
            Exchange::Idle | Exchange::Wanted | Exchange::Agreed | Exchange::Asked { .. } => {}
        }
    }
}

impl Established {
    /// Renews and wipes keys by age. Called for every packet sent or received. There is no timer: keys that are not in use need no renewal,
    /// and a connection without packets soon times out.
    pub(super) fn renew_keys(&mut self, now: Instant) {
        match self.keys.exchange {
            Exchange::Agreed => {
                self.protection.hold_updates(false);
                if self.protection.initiate_key_update() {
                    self.keys.exchanged = now;
                    self.keys.exchange = Exchange::Idle;
                } else {
                    self.protection.hold_updates(true);
                }
            }
            Exchange::Answered { phase, .. } if self.protection.phases().1 >= phase => {
                self.protection.hold_updates(false);
                self.keys.exchange = Exchange::Idle;
            }
            Exchange::Idle if self.role == Role::Client && now - self.keys.exchanged >= LIFETIME => {
                self.keys.exchange = Exchange::Wanted;
            }
            Exchange::Idle if self.role == Role::Server && now - self.keys.since >= PATIENCE => {
                self.protection.initiate_key_update();
            }
            _ => {}
        }
        let phases = self.protection.phases();
        if phases != self.keys.phases {
            (self.keys.phases, self.keys.since) = (phases, now);
        } else if now - self.keys.since >= LATE {
            self.protection.forget_previous_key();
        }
    }

    pub(super) fn is_key_share_due(&self, now: Instant) -> bool {
        self.keys.is_due(now, self.protection.phases())
    }

    /// Whether a KEY_SHARE must be sent for which a new secret key must be drawn.
    pub(super) fn wants_entropy(&self, now: Instant) -> bool {
        matches!(self.keys.exchange, Exchange::Wanted | Exchange::Asked { .. }) && self.is_key_share_due(now)
    }

    /// Writes a KEY_SHARE if one is due and fits.
    pub(super) fn write_key_share(
        &mut self,
        now: Instant,
        builder: &mut DatagramBuilder,
        contents: &mut Contents,
    ) {
        if !self.is_key_share_due(now) || builder.remaining() < 1 + SHARE_LENGTH {
            return;
        }
        let public = match &mut self.keys.exchange {
            Exchange::Wanted => {
                let share = KeyShare::new(self.rng.bytes());
                let public = share.public();
                self.protection.hold_updates(true);
                self.keys.exchange = Exchange::Offered { share, is_due: false };
                public
            }
            Exchange::Offered { share, is_due } => {
                *is_due = false;
                share.public()
            }
            Exchange::Asked { offer } => {
                let (offer, share) = (*offer, KeyShare::new(self.rng.bytes()));
                let Some(shared) = share.agree(&offer) else { return };
                let public = share.public();
                self.protection.mix_into_next(&shared);
                self.protection.hold_updates(true);
                let phase = self.protection.phases().1 + 1;
                self.keys.exchanged = now;
                self.keys.answered = Some(offer);
                self.keys.exchange = Exchange::Answered { public, is_due: false, phase };
                public
            }
            Exchange::Answered { public, is_due, .. } => {
                *is_due = false;
                *public
            }
            Exchange::Idle | Exchange::Agreed => return,
        };
        builder.write(&Frame::KeyShare(public));
        contents.key_share = true;
    }

    pub(super) fn on_key_share(&mut self, public: [u8; SHARE_LENGTH]) -> Result<(), TransportError> {
        match (&self.keys.exchange, self.role) {
            (Exchange::Idle, Role::Server) if self.keys.answered != Some(public) => {
                // Reject an offer that leads to no secret before any state depends on it.
                KeyShare::new([1; SHARE_LENGTH]).agree(&public).ok_or(BAD_SHARE)?;
                self.keys.exchange = Exchange::Asked { offer: public };
            }
            (Exchange::Offered { share, .. }, Role::Client) => {
                let shared = share.agree(&public).ok_or(BAD_SHARE)?;
                self.protection.mix_into_next(&shared);
                self.keys.exchange = Exchange::Agreed;
                // The server waits for a packet under the new key.
                self.ping = true;
            }
            // A repeated share. If this side's share was lost, loss detection sends it again.
            _ => {}
        }
        Ok(())
    }
}

const BAD_SHARE: TransportError = TransportError::violation("KEY_SHARE that leads to no secret");
