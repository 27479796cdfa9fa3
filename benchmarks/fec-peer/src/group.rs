//! Groups of datagrams and their parity.
//!
//! ```text
//!   datagram: group (32) index (8)    0 (8) data
//!   parity:   group (32) index (8) size (8) parity of [length (16) data zeros]
//! ```
//!
//! The index counts the datagrams of a group from 0, then its parity packets; the size is the number of its datagrams.

use std::collections::BTreeMap;

use reed_solomon_erasure::galois_8::ReedSolomon;

const HEADER: usize = 6;

/// Groups that a receiver keeps. Reordering and delay span fewer.
const GROUPS_MAX: usize = 64;

/// The group that is being sent.
pub(crate) struct Encoder {
    data: usize,
    parity: usize,
    group: u32,
    shards: Vec<Vec<u8>>,
}

impl Encoder {
    /// Groups of at most `data` datagrams, each with `parity` packets.
    pub(crate) fn new(data: u8, parity: u8) -> Self {
        Self { data: data.into(), parity: parity.into(), group: 0, shards: Vec::new() }
    }

    /// The packet for a datagram.
    pub(crate) fn encode(&mut self, datagram: &[u8]) -> Vec<u8> {
        let packet = packet(self.group, self.shards.len(), 0, datagram);
        self.shards.push([&(datagram.len() as u16).to_be_bytes()[..], datagram].concat());
        packet
    }

    pub(crate) fn is_full(&self) -> bool {
        self.shards.len() >= self.data
    }

    /// The parity packets. The next datagram belongs to another group.
    pub(crate) fn end_group(&mut self) -> Vec<Vec<u8>> {
        let (mut shards, group) = (std::mem::take(&mut self.shards), self.group);
        self.group = group.wrapping_add(1);
        let size = shards.len();
        let longest = shards.iter().map(Vec::len).max().unwrap_or(0);
        shards.resize(size + self.parity, Vec::new());
        shards.iter_mut().for_each(|shard| shard.resize(longest, 0));
        let Ok(code) = ReedSolomon::new(size, self.parity) else { return Vec::new() };
        if code.encode(&mut shards).is_err() {
            return Vec::new();
        }
        let parity = shards.iter().enumerate().skip(size);
        parity.map(|(index, shard)| packet(group, index, size, shard)).collect()
    }
}

fn packet(group: u32, index: usize, size: usize, content: &[u8]) -> Vec<u8> {
    [&group.to_be_bytes()[..], &[index as u8, size as u8], content].concat()
}

/// What has arrived of a group.
#[derive(Default)]
struct Group {
    /// Data and parity, by index; data with its length.
    shards: BTreeMap<usize, Vec<u8>>,
    /// The number of its datagrams, once a parity packet has arrived.
    size: usize,
}

/// The groups that are being received.
#[derive(Default)]
pub(crate) struct Decoder {
    groups: BTreeMap<u32, Group>,
}

impl Decoder {
    /// The datagrams that are new with a packet.
    pub(crate) fn decode(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        let Some((header, content)) = packet.split_first_chunk::<HEADER>() else { return Vec::new() };
        let [a, b, c, d, index, size] = *header;
        let (number, index, size) = (u32::from_be_bytes([a, b, c, d]), usize::from(index), usize::from(size));
        let group = self.groups.entry(number).or_default();
        if group.shards.contains_key(&index) {
            return Vec::new();
        }
        let mut new = Vec::new();
        if size == 0 {
            group.shards.insert(index, [&(content.len() as u16).to_be_bytes()[..], content].concat());
            new.push(content.to_vec());
        } else {
            group.shards.insert(index, content.to_vec());
            group.size = size;
        }
        new.extend(group.repaired());
        if self.groups.len() > GROUPS_MAX {
            self.groups.pop_first();
        }
        new
    }
}

impl Group {
    /// The datagrams that were lost, as soon as they can be computed.
    fn repaired(&mut self) -> Vec<Vec<u8>> {
        let lost: Vec<usize> = (0..self.size).filter(|index| !self.shards.contains_key(index)).collect();
        if lost.is_empty() || self.shards.len() < self.size {
            return Vec::new();
        }
        let longest = self.shards.values().map(Vec::len).max().unwrap_or(0);
        // A parity packet depends only on its own index, so packets after the last that arrived need not be counted.
        let last = self.shards.last_key_value().map_or(0, |(index, _)| *index);
        let shard = |index| {
            self.shards.get(&index).cloned().map(|mut shard: Vec<u8>| {
                shard.resize(longest, 0);
                shard
            })
        };
        let mut shards: Vec<Option<Vec<u8>>> = (0..=last).map(shard).collect();
        let Ok(code) = ReedSolomon::new(self.size, last + 1 - self.size) else { return Vec::new() };
        if code.reconstruct_data(&mut shards).is_err() {
            return Vec::new();
        }
        let found: Vec<Vec<u8>> = lost.iter().filter_map(|&index| shards[index].take()).collect();
        self.shards.extend(lost.into_iter().zip(found.iter().cloned()));
        found.iter().filter_map(|shard| datagram(shard)).collect()
    }
}

/// The datagram in a shard.
fn datagram(shard: &[u8]) -> Option<Vec<u8>> {
    let (length, data) = shard.split_first_chunk::<2>()?;
    data.get(..usize::from(u16::from_be_bytes(*length))).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_as_many_packets_as_a_group_has_datagrams_restore_it() {
        let mut encoder = Encoder::new(10, 3);
        let datagrams: Vec<Vec<u8>> = (1..=4).map(|length| vec![length; usize::from(length)]).collect();
        let mut packets: Vec<Vec<u8>> = datagrams.iter().map(|datagram| encoder.encode(datagram)).collect();
        packets.extend(encoder.end_group());
        assert_eq!(packets.len(), 7);
        for lost in [[0, 1, 2], [3, 4, 6], [0, 3, 5], [4, 5, 6]] {
            let mut decoder = Decoder::default();
            let arrived = packets.iter().enumerate().filter(|(index, _)| !lost.contains(index));
            let mut found: Vec<Vec<u8>> = arrived.flat_map(|(_, packet)| decoder.decode(packet)).collect();
            found.sort();
            assert_eq!(found, datagrams, "{lost:?}");
        }
    }
}
