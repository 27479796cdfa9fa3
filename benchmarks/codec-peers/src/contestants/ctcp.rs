//! This project's decoders.

use super::Contestant;
use crate::case::{Case, SYMBOL};
use ctcp_coding::{Arrival, Decoder, DecoderConfig};

/// The decoder as used by connections: packets in any order, each copied into its window.
pub struct Streaming<'c> {
    case: &'c Case,
    decoder: Decoder,
    first: u64,
    is_new: bool,
}

impl<'c> Streaming<'c> {
    pub fn new(case: &'c Case) -> Self {
        let decoder = Decoder::new(DecoderConfig::new(SYMBOL, 2 * case.n));
        Self { case, decoder, first: 0, is_new: true }
    }
}

impl Contestant for Streaming<'_> {
    fn library(&self) -> String {
        "ctcp".into()
    }

    fn run(&mut self) {
        let case = self.case;
        if !self.is_new {
            self.first += case.n as u64;
            self.decoder.release_before(self.first);
        }
        self.is_new = false;
        for index in case.arrived() {
            let arrival = self.decoder.handle_source(self.first + index as u64, case.symbols.packet(index));
            assert_eq!(arrival, Ok(Arrival::Innovative));
        }
        let range = case.range(self.first);
        for (index, row) in case.rows.iter().enumerate() {
            let arrival = self.decoder.handle_combination(range, row, case.payloads.packet(index));
            assert_eq!(arrival, Ok(Arrival::Innovative));
        }
        let mut count = 0;
        while self.decoder.poll_decoded().is_some() {
            count += 1;
        }
        assert_eq!(count, case.n);
    }

    fn check(&self, case: &Case) {
        for index in 0..case.n {
            let symbol = self.decoder.symbol(self.first + index as u64).expect("decoded and held");
            case.check("ctcp", index, symbol);
        }
    }
}
