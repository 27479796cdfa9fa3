//! Control frames of the streams: which ones wait and which ones are repeated.

use super::repeats::Repeats;
use crate::stream::{Control, Pace, Streams};
use crate::wire::{DatagramBuilder, Frame};

/// An upper bound of the size of a control frame.
const CONTROL_SIZE_MAX: usize = 32;

/// Control frames on their way into packets.
#[derive(Debug, Default)]
pub(super) struct ControlFrames {
    /// A frame that has not fitted into a packet yet.
    waiting: Option<Control>,
    repeats: Repeats,
}

impl ControlFrames {
    /// Takes a frame from the streams if none waits.
    pub(super) fn fetch(&mut self, streams: &mut Streams, pace: Pace) {
        if self.waiting.is_none() {
            self.waiting = streams.poll_control(pace);
        }
    }

    /// Whether a frame waits for a packet.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Writes the frames that fit, repeats first. `loss` is the fraction of packets lost. New frames are added to `sent`.
    pub(super) fn write(
        &mut self,
        streams: &mut Streams,
        pace: Pace,
        loss: f64,
        builder: &mut DatagramBuilder,
        sent: &mut Vec<Control>,
    ) {
        for control in &self.repeats.take(builder.remaining() / CONTROL_SIZE_MAX) {
            builder.write(&frame_of(control));
        }
        while builder.remaining() >= CONTROL_SIZE_MAX {
            self.fetch(streams, pace);
            let Some(control) = self.waiting.take() else { return };
            builder.write(&frame_of(&control));
            self.repeats.on_first(control, loss);
            sent.push(control);
        }
    }
}

fn frame_of(control: &Control) -> Frame<'static> {
    match *control {
        Control::MaxData(credit) => Frame::MaxData(credit),
        Control::MaxStreamData { id, credit } => Frame::MaxStreamData { id, credit },
        Control::MaxStreams(count) => Frame::MaxStreams(count),
        Control::ResetStream { id, code, final_size } => Frame::ResetStream { id, code, final_size },
        Control::StopSending { id, code } => Frame::StopSending { id, code },
    }
}
