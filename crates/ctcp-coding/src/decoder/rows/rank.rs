//! The rank of the basis within a range of symbols.

use super::Rows;
use crate::gf256::{self, element};
use crate::symbol_range::SymbolRange;
use alloc::vec::Vec;

impl Rows {
    /// Returns the dimension of the subspace of the rows' span that involves only symbols of `range`.
    ///
    /// Only rows led by a symbol of the range can contribute. They contribute one each, less the rank of their parts beyond the
    /// end of the range, which must cancel.
    pub(in crate::decoder) fn rank_within(&self, range: SymbolRange) -> usize {
        let mut rank = 0;
        let mut beyond: Vec<(u64, Vec<u8>)> = Vec::new();
        for (id, &pivot) in (0..).zip(&self.pivots) {
            if !range.contains(pivot) {
                continue;
            }
            rank += 1;
            if range.end() < self.end && self.end_of(id) > range.end() {
                let mut elements = self.free_elements(id, range.end());
                elements.resize((self.end - range.end()) as usize, 0);
                reduce_into(&mut beyond, elements);
            }
        }
        rank - beyond.len()
    }
}

/// Adds `vector` to an echelon form of (lead position, vector), unless it is linearly dependent on it.
fn reduce_into(echelon: &mut Vec<(u64, Vec<u8>)>, mut vector: Vec<u8>) {
    for (lead, other) in echelon.iter() {
        let factor = vector[*lead as usize];
        if factor != 0 {
            gf256::mul_add(&mut vector, factor, other);
        }
    }
    if let Some(lead) = vector.iter().position(|&coefficient| coefficient != 0) {
        let inverse = element::inverse(vector[lead]).expect("the lead is not zero");
        gf256::scale(&mut vector, inverse);
        echelon.push((lead as u64, vector));
    }
}
