//! How long keys live. Each key follows from the one before by a one-way function, so a key that is gone cannot be had from
//! those that came after it: whoever steals the keys of a connection reads nothing of what was sent more than
//! [`LIFETIME`] and [`LATE`] before. What is sent afterwards he can read, until the next handshake.

use core::time::Duration;

use ctcp_base::Instant;

use super::Established;

/// How long a key seals at most while packets flow: the time after which WireGuard renews its keys.
const LIFETIME: Duration = Duration::from_secs(120);

/// For so long packets under the previous key may be late; then it is wiped. No path holds packets back for longer.
const LATE: Duration = Duration::from_secs(10);

/// When the keys last changed.
#[derive(Debug)]
pub(super) struct KeyAge {
    /// The phases of sending and receiving.
    phases: (u64, u64),
    since: Instant,
}

impl KeyAge {
    pub(super) fn new(now: Instant) -> Self {
        Self { phases: (0, 0), since: now }
    }
}

impl Established {
    /// Takes the next key when the present one is old and the peer can follow, and forgets the previous one. It has no
    /// timer: keys that seal and open nothing grow no older by it, and a connection without packets is soon over.
    pub(super) fn renew_keys(&mut self, now: Instant) {
        if now - self.key_age.since >= LIFETIME {
            self.protection.initiate_key_update();
        }
        let phases = self.protection.phases();
        if phases != self.key_age.phases {
            self.key_age = KeyAge { phases, since: now };
        } else if now - self.key_age.since >= LATE {
            self.protection.forget_previous_key();
        }
    }
}
