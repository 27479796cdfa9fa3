//! Assembly of a datagram with a sealed packet: the header, frames, and room for the tag.
//!
//! ```text
//!  |<------------------------------- size limit --------------------------------->|
//!  | header, plain | frames ... PADDING ... combination to the end |   tag (16)   |
//!                                                    ^ remaining() ends here
//! ```
//!
//! The builder enforces the rules for every packet: the frames fit, a combination is the last frame, and the packet is long enough for the
//! sample of header protection.

use crate::id::{ConnectionId, ContextId, PacketNumber, PathId, SymbolIndex};
use crate::wire::frame::kind_length;
use crate::wire::varint::varint_length;
use crate::wire::{DecoderReport, Frame, PathAck, ShortHeader, TAG_LENGTH, TruncatedNumber};

/// The length of the longest header plus the tag.
pub const SHORT_OVERHEAD_MAX: usize = ShortHeader::LENGTH_MAX + TAG_LENGTH;

/// The longest header of a SOURCE or CODED frame whose first symbol is at most `index`, from a sender with a window of `window` symbols:
/// type 1, context 0 or 1, first symbol 1 to 8, density, length and key 4, floor distance 1 to 4 bytes.
#[must_use]
pub fn combination_overhead(context: ContextId, index: SymbolIndex, window: u64) -> usize {
    kind_length(context) + varint_length(index) + 4 + varint_length(window)
}

/// Minimum length of packet number and payload together, so that with the tag the sample exists.
const NUMBER_AND_PAYLOAD_MIN: usize = TruncatedNumber::LENGTH_MAX;

/// Minimum room for frames that makes a packet worth building.
const PAYLOAD_MIN: usize = 3;

/// The largest symbol whose combinations always fit a datagram of `datagram_size` bytes, alone in a packet to `destination` and with frame
/// headers of at most `overhead` bytes ([`combination_overhead`]). For an id of 8 bytes and four-byte indices it is `datagram_size - 40`.
#[must_use]
pub fn symbol_size_for_datagram(datagram_size: usize, destination: &ConnectionId, overhead: usize) -> usize {
    let unused = ConnectionId::MAX - destination.as_bytes().len();
    datagram_size.saturating_sub(SHORT_OVERHEAD_MAX - unused + overhead)
}

/// The header fields of a new packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPacket {
    /// The connection id of the receiver.
    pub destination: ConnectionId,
    /// The path of the packet.
    pub path: PathId,
    /// The packet number on that path.
    pub packet_number: PacketNumber,
    /// The largest packet number that the peer has acknowledged on that path.
    pub largest_acked: Option<PacketNumber>,
}

/// Collects frames until the datagram is full.
#[derive(Debug)]
pub struct DatagramBuilder {
    buffer: Vec<u8>,
    /// Where this datagram begins in the buffer.
    start: usize,
    /// Where the plaintext must end: the size limit without the tag.
    limit: usize,
    packet: NewPacket,
    packet_number_length: usize,
    is_ack_eliciting: bool,
    has_combination: bool,
}

/// A finished packet, to be sealed in place: the buffer that it ends, and the parameters of sealing.
#[derive(Debug, PartialEq, Eq)]
pub struct SealablePacket {
    /// Earlier contents of the buffer, followed by header and frames.
    pub buffer: Vec<u8>,
    /// Where the datagram begins.
    pub start: usize,
    /// The length of the destination connection id in bytes.
    pub destination_length: usize,
    /// The path of the packet.
    pub path: PathId,
    /// The packet number on that path.
    pub packet_number: PacketNumber,
    /// The length of the packet number in the header in bytes.
    pub packet_number_length: usize,
    /// Whether it elicits an acknowledgement.
    pub is_ack_eliciting: bool,
}

impl DatagramBuilder {
    /// Begins a packet with a short header after the contents of `buffer`. The sealed datagram will have at most `size_max` bytes. The key
    /// phase is set when the packet is sealed.
    ///
    /// # Panics
    /// Panics if `size_max` leaves no room for a frame of 3 bytes.
    #[must_use]
    pub fn short(buffer: Vec<u8>, size_max: usize, packet: NewPacket) -> Self {
        let number = TruncatedNumber::new(packet.packet_number, packet.largest_acked);
        Self::with_number(buffer, size_max, packet, number)
    }

    /// The same for a path on which packets may arrive long after later ones.
    ///
    /// # Panics
    /// Panics if `size_max` leaves no room for a frame of 3 bytes.
    #[must_use]
    pub fn for_reordering(buffer: Vec<u8>, size_max: usize, packet: NewPacket) -> Self {
        let number = TruncatedNumber::for_reordering(packet.packet_number, packet.largest_acked);
        Self::with_number(buffer, size_max, packet, number)
    }

    fn with_number(
        mut buffer: Vec<u8>,
        size_max: usize,
        packet: NewPacket,
        packet_number: TruncatedNumber,
    ) -> Self {
        let NewPacket { destination, path, .. } = packet;
        let header = ShortHeader { key_phase: false, destination, path, packet_number };
        let least = header.length() + PAYLOAD_MIN + TAG_LENGTH;
        assert!(size_max >= least, "no room for a packet in {size_max} bytes");
        let start = buffer.len();
        header.write(&mut buffer);
        let limit = start + size_max - TAG_LENGTH;
        let packet_number_length = packet_number.length();
        let (is_ack_eliciting, has_combination) = (false, false);
        Self { buffer, start, limit, packet, packet_number_length, is_ack_eliciting, has_combination }
    }

    /// The number of bytes left for frames.
    #[must_use]
    pub fn remaining(&self) -> usize {
        if self.has_combination { 0 } else { self.limit - self.buffer.len() }
    }

    /// The number of bytes for frames in an empty packet.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.limit - self.payload_start()
    }

    /// Whether no frame was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.len() == self.payload_start()
    }

    /// Whether a frame elicits an acknowledgement.
    #[must_use]
    pub const fn is_ack_eliciting(&self) -> bool {
        self.is_ack_eliciting
    }

    /// The length of the datagram if it were sealed now.
    #[must_use]
    pub fn sealed_length(&self) -> usize {
        self.buffer.len().max(self.shortest()) - self.start + TAG_LENGTH
    }

    /// Appends a frame. Returns whether the packet elicits an acknowledgement.
    ///
    /// # Panics
    /// Panics if the frame does not fit into [`DatagramBuilder::remaining`], in particular after a combination.
    pub fn write(&mut self, frame: &Frame<'_>) -> bool {
        let length = frame.encoded_length();
        assert!(length <= self.remaining(), "{length} bytes of a frame, {} left", self.remaining());
        frame.write(&mut self.buffer);
        self.on_written(frame)
    }

    /// Appends a frame if it fits. Returns whether it did.
    pub fn write_if_it_fits(&mut self, frame: &Frame<'_>) -> bool {
        let fits = frame.encoded_length() <= self.remaining();
        if fits {
            self.write(frame);
        }
        fits
    }

    /// Appends as much of an acknowledgement as fits into `max_length` bytes and into the datagram. Returns whether anything was written.
    pub fn write_path_ack(&mut self, ack: &PathAck, max_length: usize) -> bool {
        let space = max_length.min(self.remaining());
        ack.write_within(&mut self.buffer, space)
    }

    /// Appends as much of a report as fits into `max_length` bytes and into the datagram. Returns whether anything was written.
    pub fn write_report(&mut self, context: ContextId, report: &DecoderReport, max_length: usize) -> bool {
        let space = max_length.min(self.remaining());
        report.write_within(context, &mut self.buffer, space)
    }

    /// Appends PADDING until the sealed datagram has `size` bytes, if it has fewer.
    ///
    /// # Panics
    /// Panics if `size` exceeds the limit or a combination was written, because zeros after it would lengthen it.
    pub fn pad_to(&mut self, size: usize) {
        assert!(!self.has_combination, "padding comes before a combination");
        let end = self.start + size.saturating_sub(TAG_LENGTH);
        assert!(end <= self.limit, "padding to {size} bytes is above the limit");
        self.buffer.resize(self.buffer.len().max(end), 0);
    }

    /// Returns the packet, padded if it is too short for the sample of header protection.
    #[must_use]
    pub fn finish(mut self) -> SealablePacket {
        // Only a packet with frames of one or two bytes is too short, never one with a combination.
        self.buffer.resize(self.buffer.len().max(self.shortest()), 0);
        SealablePacket {
            buffer: self.buffer,
            start: self.start,
            destination_length: self.packet.destination.as_bytes().len(),
            path: self.packet.path,
            packet_number: self.packet.packet_number,
            packet_number_length: self.packet_number_length,
            is_ack_eliciting: self.is_ack_eliciting,
        }
    }

    /// Returns the buffer without the packet.
    #[must_use]
    pub fn abandon(mut self) -> Vec<u8> {
        self.buffer.truncate(self.start);
        self.buffer
    }

    fn on_written(&mut self, frame: &Frame<'_>) -> bool {
        self.has_combination = frame.is_combination();
        self.is_ack_eliciting |= frame.is_ack_eliciting();
        self.is_ack_eliciting
    }

    fn payload_start(&self) -> usize {
        let destination_length = self.packet.destination.as_bytes().len();
        self.start + 1 + destination_length + 1 + self.packet_number_length
    }

    /// The minimum end of the plaintext, so that the sample exists.
    fn shortest(&self) -> usize {
        self.payload_start() - self.packet_number_length + NUMBER_AND_PAYLOAD_MIN
    }
}

#[cfg(test)]
mod tests;
