//! What a link has to know of a packet besides its bytes.

/// A packet that can cross a link: bytes that may be damaged and copied, and what a queue looks at in the headers.
///
/// The defaults describe plain bytes without headers: all of one flow, and without ECN.
pub trait Packet: AsRef<[u8]> + AsMut<[u8]> + Clone {
    /// The flow of the packet, for queues that keep flows apart: the same number for the same addresses and ports.
    fn flow(&self) -> u64 {
        0
    }

    /// Whether the packet may be marked instead of dropped: its codepoint is ECT(0), ECT(1) or already CE
    /// (RFC 3168 section 5).
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Sets the codepoint CE, congestion experienced. Only called for packets that are capable.
    fn set_congestion_experienced(&mut self) {}
}

impl Packet for Vec<u8> {}
