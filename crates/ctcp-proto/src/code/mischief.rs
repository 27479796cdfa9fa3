//! Relays for tests that do not do what they should.

use ctcp_base::Prng;
use ctcp_coding::{Arrival, DecodeError, SymbolRange};

/// What a relay does wrong with a symbol or combination that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It changes a bit of the contents.
    Contents,
    /// It says that something else was combined.
    Coefficients,
    /// It says that these are the contents of another symbol.
    Index,
    /// It says that it has stored it.
    Withheld,
    /// It stores it again as what comes later.
    Replayed,
    /// It stores it only after the next one that it treats so.
    Reordered,
    /// It reports that it and the next hop have everything.
    Lied,
}

impl Wrong {
    pub(crate) const ALL: [Self; 7] = [
        Self::Contents,
        Self::Coefficients,
        Self::Index,
        Self::Withheld,
        Self::Replayed,
        Self::Reordered,
        Self::Lied,
    ];
}

/// A relay that does something wrong now and then.
#[derive(Debug)]
pub(crate) struct Mischief {
    wrongs: Vec<Wrong>,
    /// How often, in 256.
    rate: u8,
    prng: Prng,
    held: Option<(SymbolRange, Vec<u8>, Vec<u8>)>,
    /// Its reports are lies now.
    lies: bool,
}

impl Mischief {
    pub(crate) fn new(wrongs: Vec<Wrong>, rate: u8, prng: Prng) -> Self {
        Self { wrongs, rate, prng, held: None, lies: false }
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.prng.fill(&mut byte);
        byte[0]
    }

    /// Whether a report is a lie.
    pub(super) fn lies(&self) -> bool {
        self.lies
    }

    /// Stores what arrives, or something else.
    pub(super) fn apply(
        &mut self,
        range: SymbolRange,
        factors: &[u8],
        payload: &[u8],
        mut store: impl FnMut(SymbolRange, &[u8], &[u8]) -> Result<Arrival, DecodeError>,
    ) -> Result<Arrival, DecodeError> {
        self.lies = self.wrongs.contains(&Wrong::Lied) && self.byte() < self.rate;
        if self.byte() >= self.rate || self.wrongs.is_empty() {
            return store(range, factors, payload);
        }
        let chosen = usize::from(self.byte()) % self.wrongs.len();
        let wrong = self.wrongs[chosen];
        let (mut factors, mut payload) = (factors.to_vec(), payload.to_vec());
        let other = SymbolRange::new(range.first() + 1 + u64::from(self.byte() % 8), range.length());
        match (wrong, other) {
            (Wrong::Withheld, _) => return Ok(Arrival::Redundant),
            (Wrong::Lied, _) => {}
            (Wrong::Reordered, _) => {
                let Some((range, factors, payload)) = self.held.replace((range, factors, payload)) else {
                    return Ok(Arrival::Redundant);
                };
                return store(range, &factors, &payload);
            }
            (Wrong::Index, Some(other)) => return store(other, &factors, &payload),
            (Wrong::Replayed, Some(other)) => {
                let _ = store(other, &factors, &payload);
            }
            (Wrong::Coefficients, _) => {
                let place = usize::from(self.byte()) % factors.len();
                factors[place] ^= self.byte();
            }
            _ => {
                let (place, bit) = (usize::from(self.byte()) * 6, self.byte() % 8);
                if let Some(byte) = payload.get_mut(place) {
                    *byte ^= 1 << bit;
                }
            }
        }
        store(range, &factors, &payload)
    }
}
