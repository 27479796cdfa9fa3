//! Messages with a deadline beside the streams of a script. They may be lost, but what arrives is what was sent, and
//! arrives once.

use core::time::Duration;
use std::collections::BTreeSet;

use ctcp_base::Instant;
use ctcp_proto::{Connection, MessageError, Role};

use super::script::MessagePlan;
use crate::ledger::Ledger;

/// The messages of one side of a connection.
#[derive(Debug, Default)]
pub(super) struct Chatter {
    sent: u32,
    received: BTreeSet<u32>,
}

impl Chatter {
    /// Returns when the next message is due, counted from the establishment of the connection.
    pub(super) fn next(&self, plan: Option<&MessagePlan>) -> Option<Duration> {
        let plan = plan.filter(|plan| self.sent < plan.count)?;
        Some(plan.interval.saturating_mul(self.sent))
    }

    /// Sends the next message of the side `role`.
    pub(super) fn send(
        &mut self,
        now: Instant,
        plan: &MessagePlan,
        role: Role,
        connection: &mut Connection,
        ledger: &mut Ledger,
    ) {
        let number = self.sent;
        self.sent += 1;
        let message = contents(plan, role, number);
        match connection.send_message(now, &message, plan.deadline) {
            // The peer takes no messages, the path does not carry what was queued before, or the connection is closing.
            Ok(()) | Err(MessageError::Unsupported | MessageError::QueueFull | MessageError::Closed) => {}
            Err(error) => ledger.complain(format!("{role:?}: message {number} was not queued: {error}")),
        }
    }

    /// Reads all messages and compares them with what the other side sends.
    pub(super) fn receive(
        &mut self,
        plan: Option<&MessagePlan>,
        role: Role,
        connection: &mut Connection,
        ledger: &mut Ledger,
    ) {
        while let Some(message) = connection.receive_message() {
            let number = message.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            let is_as_sent = plan.zip(number).is_some_and(|(plan, number)| {
                number < plan.count && message == contents(plan, role.peer(), number)
            });
            if !is_as_sent {
                ledger.complain(format!("{role:?}: message {number:?} was never sent, or otherwise"));
            } else if !number.is_some_and(|number| self.received.insert(number)) {
                ledger.complain(format!("{role:?}: message {number:?} arrived twice"));
            }
        }
    }
}

/// The message with this number: the number, and bytes that depend on it and on the sender.
fn contents(plan: &MessagePlan, sender: Role, number: u32) -> Vec<u8> {
    let mut message = number.to_be_bytes().to_vec();
    let length = message.len() + plan.sizes[number as usize % plan.sizes.len()];
    let first = if sender == Role::Client { 1 } else { 2 };
    let more = (message.len()..length).map(|index| (index as u32).wrapping_mul(first + number) as u8);
    message.extend(more);
    message
}
