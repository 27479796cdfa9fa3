//! A client that moves, or one of whose paths fails, needs the reset token of a path that works (PROTOCOL.md section 2.3). The server sends
//! it until it arrives.

use super::{Established, TransportError};
use crate::crypto::{ResetKey, ResetToken};
use crate::id::Role;
use crate::wire::{DatagramBuilder, Frame};

use super::contents::Contents;

/// Reset tokens to send, or received.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// The key from which a server derives the tokens.
    key: Option<ResetKey>,
    /// A RESET_TOKEN must be sent.
    is_due: bool,
    /// A token that the client received and has not passed to its endpoint yet.
    new_token: Option<ResetToken>,
}

impl Resets {
    pub(super) fn new(key: Option<ResetKey>) -> Self {
        Self { key, ..Self::default() }
    }

    /// The client's address has changed, or the packet with its RESET_TOKEN was lost.
    pub(super) fn tell(&mut self) {
        self.is_due = self.key.is_some();
    }

    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    pub(super) fn poll_new_token(&mut self) -> Option<ResetToken> {
        self.new_token.take()
    }
}

impl Established {
    /// Writes a RESET_TOKEN if one is due and fits.
    pub(super) fn write_reset_token(&mut self, builder: &mut DatagramBuilder, contents: &mut Contents) {
        let Some(key) = self.resets.key.as_ref().filter(|_| self.resets.is_due) else { return };
        let path = self.paths.working();
        let frame = Frame::ResetToken(key.token(path.network.remote, &self.path_changes.ids.own(path.id)).0);
        if builder.write_if_it_fits(&frame) {
            contents.reset_token = true;
            self.resets.is_due = false;
        }
    }

    pub(super) fn on_reset_token(&mut self, token: [u8; ResetToken::LENGTH]) -> Result<(), TransportError> {
        if self.role != Role::Client {
            return Err(TransportError::violation("RESET_TOKEN sent by a client"));
        }
        self.negotiated.reset_token = Some(ResetToken(token));
        self.resets.new_token = Some(ResetToken(token));
        Ok(())
    }
}
