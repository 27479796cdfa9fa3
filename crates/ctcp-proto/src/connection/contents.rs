//! The contents of a sent packet, kept until the packet is acknowledged or lost and then returned to the components concerned.

use super::early::Early;
use super::keys::Keys;
use super::paths::PathChanges;
use super::resets::Resets;
use crate::code::Carried;
use crate::id::{ContextId, PathId};
use crate::stream::{Control, Streams};

/// The contents of a sent packet. Coded data is never retransmitted as such, so a combination is recorded only as a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The combination it carried, or a segment of one.
    pub(crate) combination: Option<Carried>,
    /// Control frames, sent again if the packet is lost.
    pub(crate) control: Vec<Control>,
    /// The largest packet number acknowledged by the ACK in this packet.
    pub(crate) largest_acked: Option<u64>,
    /// The number of the report of each context's decoder in this packet; 0 if there is none.
    pub(crate) reports: [u64; ContextId::ALL.len()],
    /// It carried a RESET_TOKEN.
    pub(crate) reset_token: bool,
    /// It carried a NEW_TICKET.
    pub(crate) ticket: bool,
    /// The number of the ACK_FREQUENCY that it carried.
    pub(crate) ack_frequency: Option<u64>,
    /// It carried a KEY_SHARE.
    pub(crate) key_share: bool,
    /// It carried a PATH_ABANDON of this path.
    pub(crate) abandoned: Option<PathId>,
    /// It carried a NEW_CONNECTION_ID for this path.
    pub(crate) path_id: Option<PathId>,
    /// The datagram size that it probed, if it was an MTU probe.
    pub(crate) mtu_probe: Option<u64>,
}

impl Contents {
    /// The frames of [`Self::tell_again`] go on another path, where their fate is followed from now on.
    pub(super) fn forget_told(&mut self) {
        self.control.clear();
        (self.reset_token, self.ticket, self.key_share) = (false, false, false);
        (self.abandoned, self.path_id) = (None, None);
    }

    /// Queues the frames that still apply to be sent again, after the packet was lost or a probe timeout.
    pub(super) fn tell_again(
        &self,
        streams: &mut Streams,
        resets: &mut Resets,
        keys: &mut Keys,
        early: &mut Early,
        changes: &mut PathChanges,
    ) {
        self.control.iter().for_each(|control| streams.on_control_lost(control));
        if self.reset_token {
            resets.tell();
        }
        if self.ticket {
            early.on_ticket_lost();
        }
        if let Some(id) = self.abandoned {
            changes.tell(id);
        }
        if let Some(path) = self.path_id {
            changes.ids.tell(path);
        }
        if self.key_share {
            keys.on_share_lost();
        }
    }
}
