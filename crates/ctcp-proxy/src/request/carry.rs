//! Requests to relays: carry the datagrams of another connection further (PROTOCOL.md section 9).
//!
//! ```text
//!  CARRY   repair (8), count (8), stops ...    stop: key (32 bytes), address     none: here is the end of the way
//!          reply: repair (8)                   how the other side repairs this hop: 1 combinations, 2 repetitions
//!                 3 (8), port (16)             it forwards UDP datagrams, to and from this port
//! ```

use core::num::NonZeroU16;

use ctcp::{HopRepair, PublicKey};

use super::body::{Body, BodyError, put_target};
use super::{BODY_BYTES_MAX, HeadError, Reply, ReplyCode};
use crate::address::TargetAddress;

/// The most relays after one another. Each sees the rest of the way.
pub const STOPS_MAX: usize = 8;

/// A relay or a server on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Where it is.
    pub address: TargetAddress,
    /// Its public key.
    pub key: PublicKey,
}

/// The rest of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry {
    /// How the sender of the request repairs the hop on which it is sent.
    pub repair: HopRepair,
    /// The stops after the receiver of the request; the last one is the server. None if the receiver is the server.
    pub stops: Vec<Stop>,
}

/// What the receiver of a request does with the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// The connection on which it was asked carries them, and the receiver repairs losses on it so.
    Repair(HopRepair),
    /// It forwards them as they are.
    Forward {
        /// Its UDP port that faces the sender of the request.
        port: NonZeroU16,
    },
}

/// The number of [`Granted::Forward`].
const FORWARD: u8 = 3;

impl core::fmt::Display for Stop {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{}={}", self.address, self.key)
    }
}

impl core::str::FromStr for Stop {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, key) = text.split_once('=').ok_or("expected HOST:PORT=PUBKEY")?;
        let address = address.parse().map_err(|error| format!("{address}: {error}"))?;
        // The key itself may end with `=`.
        let key = key.parse().map_err(|error| format!("the public key of {address}: {error}"))?;
        Ok(Self { address, key })
    }
}

impl Carry {
    /// Whether a request can hold the way: names of stops may be long.
    #[must_use]
    pub fn fits(&self) -> bool {
        let mut body = Vec::new();
        let is_short = self.stops.len() <= STOPS_MAX;
        if is_short {
            self.write(&mut body);
        }
        is_short && body.len() <= BODY_BYTES_MAX
    }

    pub(super) fn write(&self, body: &mut Vec<u8>) {
        let count = u8::try_from(self.stops.len()).expect("the sender checks that the way fits");
        body.extend([number(self.repair), count]);
        for stop in &self.stops {
            body.extend_from_slice(&stop.key.0);
            put_target(body, &stop.address);
        }
    }

    pub(super) fn parse(body: &mut Body<'_>) -> Result<Self, HeadError> {
        let repair = repair(body.u8()?);
        let count = usize::from(body.u8()?);
        if count > STOPS_MAX {
            return Err(BodyError::Stops(count).into());
        }
        let mut stops = Vec::with_capacity(count);
        for _ in 0..count {
            stops.push(Stop { key: PublicKey(body.array()?), address: body.target()? });
        }
        Ok(Self { repair, stops })
    }

    /// The reply that the way is open, from a side that handles datagrams like this.
    #[must_use]
    pub fn reply(granted: Granted) -> Reply {
        let mut body = Vec::new();
        match granted {
            Granted::Repair(repair) => body.push(number(repair)),
            Granted::Forward { port } => {
                body.push(FORWARD);
                body.extend_from_slice(&port.get().to_be_bytes());
            }
        }
        Reply { code: ReplyCode::Succeeded, body }
    }

    /// What the side that sent a successful reply does with the datagrams.
    ///
    /// # Errors
    /// Returns an error if the body holds something else.
    pub fn granted(reply: &Reply) -> Result<Granted, HeadError> {
        let mut body = Body::new(&reply.body);
        let granted = match body.u8()? {
            known @ (1 | 2) => Granted::Repair(repair(known)),
            FORWARD => {
                let port = NonZeroU16::new(body.u16()?).ok_or(BodyError::Granted(FORWARD))?;
                Granted::Forward { port }
            }
            unknown => return Err(BodyError::Granted(unknown).into()),
        };
        body.end()?;
        Ok(granted)
    }
}

fn number(repair: HopRepair) -> u8 {
    match repair {
        HopRepair::Repetitions => 2,
        _ => 1,
    }
}

/// In requests, numbers of later versions count as combinations: any receiver understands any repair.
fn repair(number: u8) -> HopRepair {
    if number == 2 { HopRepair::Repetitions } else { HopRepair::Combinations }
}
