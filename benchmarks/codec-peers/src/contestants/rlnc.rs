//! The `rlnc` crate: random linear network coding, full elimination of coefficients and payload at every arrival.

use super::Contestant;
use crate::case::{Case, SYMBOL};
use ::rlnc::full::{Decoder, Encoder};

pub struct Rlnc {
    n: usize,
    pieces: Vec<Vec<u8>>,
    decoders: Vec<Decoder>,
    decoded: Vec<u8>,
}

impl Rlnc {
    pub fn new(case: &Case) -> Self {
        let mut pieces: Vec<Vec<u8>> = case
            .arrived()
            .map(|index| {
                let mut piece = vec![0; case.n];
                piece[index] = 1;
                piece.extend_from_slice(case.symbols.packet(index));
                piece
            })
            .collect();
        // The encoder appends a marker to the data; together they form the block.
        let data = case.symbols.all(case.n)[..case.n * SYMBOL - 1].to_vec();
        let encoder = Encoder::new(data, case.n).expect("not empty");
        // Combinations of its own. Redundant ones are skipped, because a receiver would not have waited for them.
        let mut random = rand::rng();
        let mut decoder = Decoder::new(SYMBOL, case.n).expect("not empty");
        pieces.iter().for_each(|piece| decoder.decode(piece).expect("source symbols are independent"));
        while pieces.len() < case.n {
            let piece = encoder.code(&mut random);
            if decoder.decode(&piece).is_ok() {
                pieces.push(piece);
            }
        }
        Self { n: case.n, pieces, decoders: Vec::new(), decoded: Vec::new() }
    }
}

impl Contestant for Rlnc {
    fn library(&self) -> String {
        "rlnc".into()
    }

    fn arm(&mut self, runs: usize) {
        self.decoders = (0..runs).map(|_| Decoder::new(SYMBOL, self.n).expect("not empty")).collect();
    }

    fn run(&mut self) {
        let mut decoder = self.decoders.pop().expect("armed");
        for piece in &self.pieces {
            decoder.decode(piece).expect("independent");
        }
        self.decoded = decoder.get_decoded_data().expect("all pieces are there");
    }

    fn check(&self, case: &Case) {
        // The decoder removes the marker.
        assert!(self.decoded == case.symbols.all(case.n)[..case.n * SYMBOL - 1], "rlnc: a symbol is wrong");
    }
}
