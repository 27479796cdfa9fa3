//! Headers: a parsed header survives encoding and parsing.

use ctcp_proto::ConnectionId;
use ctcp_proto::wire::{LongPacket, ShortHeader, VersionNegotiation, peek};

pub fn run(data: &[u8]) {
    let _ = peek(data, ConnectionId::LOCAL);
    if let Ok(packet) = LongPacket::parse(data) {
        let mut written = Vec::new();
        packet.write(&mut written);
        assert_eq!(LongPacket::parse(&written), Ok(packet));
    }
    if let Ok(header) = ShortHeader::parse(data, ConnectionId::LOCAL) {
        let mut written = Vec::new();
        header.write(&mut written);
        assert_eq!(ShortHeader::parse(&written, ConnectionId::LOCAL), Ok(header));
    }
    if let Ok(list) = VersionNegotiation::parse(data) {
        assert!(list.versions().count() <= data.len() / 4);
    }
}
