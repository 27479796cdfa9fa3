//! The frames of a packet: a parsed frame survives encoding and parsing.

use ctcp_proto::wire::{frames, frames_in_symbol};

pub fn run(data: &[u8]) {
    for frame in frames(data) {
        let Ok(frame) = frame else { break };
        let mut written = Vec::new();
        frame.write(&mut written);
        assert_eq!(written.len(), frame.encoded_length());
        let mut again = frames(&written);
        assert_eq!(again.next(), Some(Ok(frame)));
        assert!(again.next().is_none());
    }
    // The same bytes as a decoded symbol.
    if let Ok(stream_frames) = frames_in_symbol(data) {
        for frame in stream_frames {
            let Ok(frame) = frame else { break };
            assert!(frame.offset.checked_add(frame.data.len() as u64).is_some());
        }
    }
}
