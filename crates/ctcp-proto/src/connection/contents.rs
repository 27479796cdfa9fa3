//! What a sent packet held, remembered until its fate is known and then handed back to whom it concerns.

use super::keys::Keys;
use super::resets::Resets;
use crate::code::Carried;
use crate::stream::{Control, Streams};

/// The contents of a sent packet. Coded data is never sent again as such, so a combination is only a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The combination it carried, or a piece of one.
    pub(crate) combination: Option<Carried>,
    /// Control frames, asked for again when lost.
    pub(crate) control: Vec<Control>,
    /// The largest packet number that its ACK acknowledged.
    pub(crate) largest_acked: Option<u64>,
    /// It told the client its reset token.
    pub(crate) reset_token: bool,
    /// It held a share of new keys.
    pub(crate) key_share: bool,
    /// The size it probed the path for.
    pub(crate) mtu_probe: Option<u64>,
}

impl Contents {
    /// Has said again what it said and is still true: it was lost, or will not be waited for.
    pub(super) fn tell_again(&self, streams: &mut Streams, resets: &mut Resets, keys: &mut Keys) {
        self.control.iter().for_each(|control| streams.on_control_lost(control));
        if self.reset_token {
            resets.tell();
        }
        if self.key_share {
            keys.on_share_lost();
        }
    }
}
