//! The messages of a connection.

use core::time::Duration;

use ctcp_base::Instant;

use super::{Connection, Established, State};
use crate::id::ContextId;
use crate::message::{Incoming, MessageError, Outgoing};
use crate::wire::MESSAGE_SIZE_MAX;

/// Both halves.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
}

impl Default for Messages {
    fn default() -> Self {
        Self { outgoing: Outgoing::default(), incoming: Incoming::new() }
    }
}

impl Messages {
    /// Bytes of memory.
    pub(super) fn memory(&self) -> u64 {
        self.outgoing.memory() + self.incoming.memory()
    }
}

impl Connection {
    /// Queues a message, which is sent ahead of streams and repaired until `deadline` from now has passed, then dropped. It arrives whole,
    /// once, in any order, or not at all.
    ///
    /// # Errors
    /// Returns an error if the message was not queued.
    pub fn send_message(
        &mut self,
        now: Instant,
        data: &[u8],
        deadline: Duration,
    ) -> Result<(), MessageError> {
        let now = self.advance(now);
        let State::Established(established) = &mut self.state else { return Err(MessageError::Closed) };
        if !established.contexts.takes(ContextId::Messages) {
            return Err(MessageError::Unsupported);
        }
        let result = established.messages.outgoing.push(now, data, now + deadline);
        self.settle();
        result
    }

    /// Returns the next message, also after the connection has closed. After `None`, [`crate::Event::MessageReceived`] announces the next one.
    pub fn receive_message(&mut self) -> Option<Vec<u8>> {
        let message = match (&mut self.state, &mut self.remains) {
            (State::Established(established), _) => established.messages.incoming.pop(),
            (_, Some(remains)) => remains.messages.pop(),
            _ => None,
        };
        self.settle();
        message
    }

    /// The longest message that the peer takes, in bytes. `None` if it takes none, or before the handshake has ended.
    #[must_use]
    pub fn message_size_max(&self) -> Option<usize> {
        let State::Established(established) = &self.state else { return None };
        established.contexts.takes(ContextId::Messages).then_some(MESSAGE_SIZE_MAX)
    }
}

impl Established {
    /// Drops messages whose deadlines have passed, sent or not.
    pub(super) fn expire_messages(&mut self, now: Instant) {
        if let Some(floor) = self.messages.outgoing.expire(now)
            && let Some(context) = self.contexts.get_mut(ContextId::Messages)
        {
            context.sender.give_up_before(floor);
        }
    }
}
