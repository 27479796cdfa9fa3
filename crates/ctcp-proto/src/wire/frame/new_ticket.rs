//! NEW_TICKET (PROTOCOL.md section 3.3).

use crate::wire::frame::kind;
use crate::wire::varint::{Reader, varint_length, write_varint};
use crate::wire::{Malformed, TOKEN_MAX};

/// A ticket for the client's next visit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NewTicket<'a> {
    /// For how many seconds the server takes it.
    pub lifetime: u64,
    /// How many streams may be opened before the handshake is complete.
    pub streams: u64,
    /// The secret from which the key of early data is derived.
    pub secret: [u8; 32],
    /// The ticket, 1..=[`TOKEN_MAX`] bytes that only the server understands.
    pub token: &'a [u8],
}

impl<'a> NewTicket<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (lifetime, streams) = (reader.varint()?, reader.varint()?);
        let secret = reader.array()?;
        let token = reader.prefixed()?;
        if token.is_empty() || token.len() > TOKEN_MAX {
            return Err(Malformed::new("ticket of 0 or above 108 bytes"));
        }
        Ok(Self { lifetime, streams, secret, token })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(kind::NEW_TICKET);
        write_varint(out, self.lifetime);
        write_varint(out, self.streams);
        out.extend_from_slice(&self.secret);
        write_varint(out, self.token.len() as u64);
        out.extend_from_slice(self.token);
    }

    pub(super) fn length(&self) -> usize {
        let numbers = [self.lifetime, self.streams, self.token.len() as u64];
        1 + numbers.into_iter().map(varint_length).sum::<usize>() + self.secret.len() + self.token.len()
    }
}

impl core::fmt::Debug for NewTicket<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Ticket and secret are secrets.
        formatter.debug_struct("NewTicket").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}
