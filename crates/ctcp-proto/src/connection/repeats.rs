//! Repetition of control frames on lossy paths.
//!
//! A peer that waits for credit sends nothing. If the credit is lost, no ACK reveals the loss and the peer waits for a probe timeout. A
//! control frame takes only a few bytes in a packet that is sent anyway. It is therefore repeated in enough packets that losing all of them
//! is unlikely. Receiving any of these frames twice has no effect.

use crate::stream::Control;

/// Acceptable probability that all copies are lost.
const RISK: f64 = 1e-3;

/// Maximum number of copies, including the first. Beyond about a third of packets lost, [`RISK`] is no longer met.
const COPIES_MAX: u8 = 6;

/// Maximum number of frames waiting to be repeated. If there are more, the oldest are dropped.
const FRAMES_MAX: usize = 16;

/// Frames to repeat, with the number of copies left.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    frames: Vec<(Control, u8)>,
}

impl Repeats {
    /// Registers a frame that is sent for the first time. `loss` is the fraction of packets lost.
    pub(super) fn on_first(&mut self, control: Control, loss: f64) {
        self.frames.retain(|(other, _)| subject(other) != subject(&control));
        let more = copies(loss) - 1;
        if more > 0 {
            if self.frames.len() == FRAMES_MAX {
                self.frames.remove(0);
            }
            self.frames.push((control, more));
        }
    }

    /// Returns the frames for the next packet, at most `room` of them.
    pub(super) fn take(&mut self, room: usize) -> Vec<Control> {
        let due = self.frames.iter_mut().take(room);
        let frames = due.map(|(control, more)| {
            *more -= 1;
            *control
        });
        let frames = frames.collect();
        self.frames.retain(|&(_, more)| more > 0);
        frames
    }
}

/// The smallest number of copies whose joint loss has a probability of at most [`RISK`].
fn copies(loss: f64) -> u8 {
    let mut all_lost = loss;
    let mut copies = 1;
    while all_lost > RISK && copies < COPIES_MAX {
        all_lost *= loss;
        copies += 1;
    }
    copies
}

/// What a frame is about. A newer frame on the same subject replaces an older one.
fn subject(control: &Control) -> (u8, u64) {
    match *control {
        Control::MaxData(_) => (0, 0),
        Control::MaxStreams(_) => (1, 0),
        Control::MaxStreamData { id, .. } => (2, id.0),
        Control::ResetStream { id, .. } => (3, id.0),
        Control::StopSending { id, .. } => (4, id.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamId;

    #[test]
    fn frames_are_repeated_more_often_as_loss_grows() {
        let all = [0.0, 0.001, 0.01, 0.05, 0.09, 0.2, 0.3, 0.9].map(copies);
        assert_eq!(all, [1, 1, 2, 3, 3, 5, 6, 6]);
    }

    #[test]
    fn only_the_latest_credit_is_repeated() {
        let mut repeats = Repeats::default();
        let credit = |id, credit| Control::MaxStreamData { id: StreamId(id), credit };
        repeats.on_first(credit(0, 10), 0.05);
        repeats.on_first(credit(4, 10), 0.05);
        assert_eq!(repeats.take(1), [credit(0, 10)]);
        repeats.on_first(credit(0, 20), 0.05);
        assert_eq!(repeats.take(9), [credit(4, 10), credit(0, 20)]);
        assert_eq!(repeats.take(9), [credit(4, 10), credit(0, 20)]);
        assert_eq!(repeats.take(9), []);
        repeats.on_first(credit(0, 30), 0.0);
        assert_eq!(repeats.take(9), []);
    }

    #[test]
    fn the_number_of_waiting_frames_is_limited() {
        let mut repeats = Repeats::default();
        (0..100).for_each(|id| repeats.on_first(Control::StopSending { id: StreamId(id), code: 0 }, 0.2));
        assert_eq!(repeats.take(usize::MAX).len(), FRAMES_MAX);
    }
}
