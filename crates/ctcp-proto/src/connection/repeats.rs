//! Control frames said more than once where packets get lost.
//!
//! A peer that waits for credit sends nothing, so nothing is under way whose ACK would tell that the credit was lost, and
//! it waits for a time-out. A frame costs a few bytes in a packet that leaves anyhow: so it rides along in as many
//! packets as make it unlikely that all of them are lost. All these frames mean the same when they come twice.

use crate::stream::Control;

/// How likely it may be that all copies are lost.
const RISK: f64 = 1e-3;

/// Copies at most, the first included: of a path that loses more than a third, no more can be expected.
const COPIES_MAX: u8 = 6;

/// Frames that wait to be repeated; of more than these the oldest are not repeated.
const FRAMES_MAX: usize = 16;

/// What is to be said again.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    frames: Vec<(Control, u8)>,
}

impl Repeats {
    /// A frame leaves for the first time; `loss`: the share of packets that get lost.
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

    /// The frames for the next packet that leaves anyhow, at most `room` of them.
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

/// The least number of copies of which all are lost with a chance of at most [`RISK`].
fn copies(loss: f64) -> u8 {
    let mut all_lost = loss;
    let mut copies = 1;
    while all_lost > RISK && copies < COPIES_MAX {
        all_lost *= loss;
        copies += 1;
    }
    copies
}

/// What a frame is about: a newer one of the same subject replaces it.
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
    fn the_more_is_lost_the_more_often_a_frame_is_said() {
        let all = [0.0, 0.001, 0.01, 0.05, 0.09, 0.2, 0.3, 0.9].map(copies);
        assert_eq!(all, [1, 1, 2, 3, 3, 5, 6, 6]);
    }

    #[test]
    fn the_latest_credit_is_repeated_and_no_older_one() {
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
    fn only_so_many_wait() {
        let mut repeats = Repeats::default();
        (0..100).for_each(|id| repeats.on_first(Control::StopSending { id: StreamId(id), code: 0 }, 0.2));
        assert_eq!(repeats.take(usize::MAX).len(), FRAMES_MAX);
    }
}
