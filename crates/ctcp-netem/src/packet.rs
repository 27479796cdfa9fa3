//! The properties of a packet that a link uses besides its bytes.

/// A packet that can cross a link: bytes that may be corrupted and copied, and the header fields that a queue looks at.
///
/// The defaults describe plain bytes without headers: all packets belong to one flow and are not ECN-capable.
pub trait Packet: AsRef<[u8]> + AsMut<[u8]> + Clone {
    /// Returns the flow of the packet, for queues that separate flows. Equal addresses and ports give equal numbers.
    fn flow(&self) -> u64 {
        0
    }

    /// Returns whether the packet may be marked instead of dropped, that is, whether its codepoint is ECT(0), ECT(1) or
    /// already CE (RFC 3168 section 5).
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Sets the codepoint CE, congestion experienced. Called only for ECN-capable packets.
    fn set_congestion_experienced(&mut self) {}
}

impl Packet for Vec<u8> {}
