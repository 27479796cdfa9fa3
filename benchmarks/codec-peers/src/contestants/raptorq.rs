//! The `raptorq` crate, RFC 6330.

use super::Contestant;
use crate::case::{Case, SYMBOL};
use raptorq::{EncodingPacket, ObjectTransmissionInformation, SourceBlockDecoder, SourceBlockEncoder};

pub struct Raptorq {
    config: ObjectTransmissionInformation,
    n: usize,
    packets: Vec<EncodingPacket>,
    armed: Vec<Vec<EncodingPacket>>,
    decoded: Vec<u8>,
}

impl Raptorq {
    pub fn new(case: &Case) -> Self {
        let size = (case.n * SYMBOL) as u64;
        let config = ObjectTransmissionInformation::new(size, SYMBOL as u16, 1, 1, 8);
        let encoder = SourceBlockEncoder::new(0, &config, case.symbols.all(case.n));
        let source = encoder.source_packets();
        let mut packets: Vec<EncodingPacket> = case.arrived().map(|index| source[index].clone()).collect();
        packets.extend(encoder.repair_packets(0, case.lost.len() as u32));
        // n packets decode almost always; otherwise the decoder gets as many more as it needs.
        let mut next = case.lost.len() as u32;
        while SourceBlockDecoder::new(0, &config, size).decode(packets.clone()).is_none() {
            packets.extend(encoder.repair_packets(next, 1));
            next += 1;
        }
        Self { config, n: case.n, packets, armed: Vec::new(), decoded: Vec::new() }
    }
}

impl Contestant for Raptorq {
    fn library(&self) -> String {
        "raptorq".into()
    }

    fn arm(&mut self, runs: usize) {
        self.armed = vec![self.packets.clone(); runs];
    }

    fn run(&mut self) {
        let packets = self.armed.pop().expect("armed");
        let mut decoder = SourceBlockDecoder::new(0, &self.config, (self.n * SYMBOL) as u64);
        self.decoded = decoder.decode(packets).expect("decoded before");
    }

    fn check(&self, case: &Case) {
        assert!(self.decoded == case.symbols.all(case.n), "raptorq: a symbol is wrong");
    }
}
