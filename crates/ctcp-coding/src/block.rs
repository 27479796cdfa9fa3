//! Recovers what is missing of one block whose packets lie in memory: nothing is copied but what was computed.
//!
//! A [`Decoder`](crate::Decoder) takes anything in any order and keeps it. Where a whole block has arrived, as many
//! combinations as symbols are missing, and the packets stay where they are, only the system of the missing symbols must be solved:
//!
//! ```text
//! payloads = A * missing + B * arrived          A: combinations x missing, B: combinations x arrived
//! missing  = A^-1 * payloads + (A^-1 * B) * arrived
//! ```
//!
//! The last line is one fused sweep over as many sources as the block has symbols, each payload in the place of a missing symbol.

use crate::gf256::Matrix;
use crate::sweep::{BATCH, OUTPUTS, combine_batch};
use alloc::vec::Vec;
use core::fmt;

/// A linear combination of all symbols of a block.
#[derive(Clone, Copy, Debug)]
pub struct Combination<'a> {
    /// How often each symbol enters it.
    pub coefficients: &'a [u8],
    /// The sum, as long as a symbol.
    pub payload: &'a [u8],
}

/// Why nothing was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// There must be as many combinations, and as many outputs, as symbols are missing.
    Count,
    /// Symbols, payloads and outputs must be equally long, and rows of coefficients as long as the block.
    Length,
    /// The combinations do not determine the missing symbols: another one is needed in place of one of them.
    Dependent,
}

/// Recovers blocks, one after another. It keeps nothing of a block but the memory.
#[derive(Debug, Default)]
pub struct BlockDecoder {
    missing: Vec<usize>,
    inverse: Matrix,
    /// For each missing symbol, how often each source enters it.
    rows: Matrix,
}

impl BlockDecoder {
    /// Computes the missing symbols (those that are `None`) into `outs`, in their order.
    pub fn recover(
        &mut self,
        symbols: &[Option<&[u8]>],
        combinations: &[Combination<'_>],
        outs: &mut [&mut [u8]],
    ) -> Result<(), RecoverError> {
        self.missing.clear();
        self.missing.extend((0..symbols.len()).filter(|&index| symbols[index].is_none()));
        if combinations.len() != self.missing.len() || outs.len() != self.missing.len() {
            return Err(RecoverError::Count);
        }
        let Some(length) = outs.first().map(|out| out.len()) else { return Ok(()) };
        let are_long = symbols.iter().flatten().all(|symbol| symbol.len() == length)
            && outs.iter().all(|out| out.len() == length)
            && combinations.iter().all(|combination| {
                combination.payload.len() == length && combination.coefficients.len() == symbols.len()
            });
        if !are_long {
            return Err(RecoverError::Length);
        }
        self.solve(symbols.len(), combinations)?;
        let mut payloads = combinations.iter();
        let sources = symbols.iter().map(|symbol| {
            symbol.unwrap_or_else(|| payloads.next().map_or(&[], |combination| combination.payload))
        });
        // One pass over the sources for all outputs would need as many registers as there are; four at a time it is.
        let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
        let mut filled = 0;
        let mut start = 0;
        for source in sources {
            batch[filled] = source;
            filled += 1;
            if filled == BATCH {
                combine(&self.rows, start, &batch, outs);
                start += filled;
                filled = 0;
            }
        }
        combine(&self.rows, start, &batch[..filled], outs);
        Ok(())
    }

    /// Finds the coefficients of the missing symbols.
    fn solve(&mut self, n: usize, combinations: &[Combination<'_>]) -> Result<(), RecoverError> {
        let missing = self.missing.len();
        self.inverse.reshape(missing, missing);
        for (row, combination) in self.inverse.rows_mut().zip(combinations) {
            if missing == n {
                row.copy_from_slice(combination.coefficients);
                continue;
            }
            for (element, &index) in row.iter_mut().zip(&self.missing) {
                *element = combination.coefficients[index];
            }
        }
        self.inverse.invert().map_err(|_| RecoverError::Dependent)?;
        if missing == n {
            core::mem::swap(&mut self.rows, &mut self.inverse);
            return Ok(());
        }
        self.rows.reshape(missing, n);
        self.multiply_by_inverse(combinations);
        for (r, row) in self.rows.rows_mut().enumerate() {
            for (&element, &index) in self.inverse.row(r).iter().zip(&self.missing) {
                row[index] = element;
            }
        }
        Ok(())
    }

    /// `rows = inverse * coefficients`.
    fn multiply_by_inverse(&mut self, combinations: &[Combination<'_>]) {
        let mut outs: Vec<&mut [u8]> = self.rows.rows_mut().collect();
        let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
        for (number, combinations) in combinations.chunks(BATCH).enumerate() {
            for (source, combination) in batch.iter_mut().zip(combinations) {
                *source = combination.coefficients;
            }
            combine(&self.inverse, number * BATCH, &batch[..combinations.len()], &mut outs);
        }
    }
}

/// `outs (^)= rows * sources`, where the sources are those of the columns from `start` on; the first ones replace.
fn combine(rows: &Matrix, start: usize, sources: &[&[u8]], outs: &mut [&mut [u8]]) {
    for (group, outs) in outs.chunks_mut(OUTPUTS).enumerate() {
        let first = group * OUTPUTS;
        let rows: [&[u8]; OUTPUTS] =
            core::array::from_fn(|r| if r < outs.len() { rows.row(first + r) } else { &[] });
        combine_batch(outs, &rows[..outs.len()], start, sources);
    }
}

impl fmt::Display for RecoverError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Count => "not as many combinations or outputs as symbols are missing",
            Self::Length => "symbols, payloads or rows of coefficients of different lengths",
            Self::Dependent => "the combinations do not determine the missing symbols",
        })
    }
}

impl core::error::Error for RecoverError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256;
    use crate::test_random::TestRandom;
    use std::vec;

    /// A block of random symbols with `missing` of them lost, and random combinations of all.
    struct Block {
        symbols: Vec<Vec<u8>>,
        is_lost: Vec<bool>,
        rows: Vec<Vec<u8>>,
        payloads: Vec<Vec<u8>>,
    }

    impl Block {
        fn new(random: &mut TestRandom, n: usize, missing: usize, length: usize) -> Self {
            let symbols: Vec<Vec<u8>> = (0..n).map(|_| random.bytes(length)).collect();
            let mut is_lost = vec![false; n];
            while is_lost.iter().filter(|&&lost| lost).count() < missing {
                is_lost[random.below(n as u64) as usize] = true;
            }
            let rows: Vec<Vec<u8>> = (0..missing).map(|_| random.bytes(n)).collect();
            let views: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
            let mut payloads = vec![vec![0; length]; missing];
            for (payload, row) in payloads.iter_mut().zip(&rows) {
                gf256::combine(payload, row, &views);
            }
            Self { symbols, is_lost, rows, payloads }
        }

        fn recover(&self, decoder: &mut BlockDecoder) -> Result<Vec<Vec<u8>>, RecoverError> {
            let arrived = self.symbols.iter().zip(&self.is_lost);
            let arrived: Vec<Option<&[u8]>> =
                arrived.map(|(symbol, &lost)| (!lost).then_some(symbol.as_slice())).collect();
            let rows = self.rows.iter().zip(&self.payloads);
            let combinations: Vec<Combination<'_>> =
                rows.map(|(coefficients, payload)| Combination { coefficients, payload }).collect();
            let mut outs = vec![vec![0x55; self.symbols[0].len()]; self.rows.len()];
            let mut views: Vec<&mut [u8]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
            decoder.recover(&arrived, &combinations, &mut views)?;
            Ok(outs)
        }
    }

    #[test]
    fn missing_symbols_are_recovered_whatever_the_shape() {
        let mut random = TestRandom::new(9);
        let mut decoder = BlockDecoder::default();
        // Miri takes minutes for the long ones.
        let sizes: &[usize] = if cfg!(miri) { &[1, 2, 5, 9] } else { &[1, 2, 3, 5, 17, 32, 64, 65, 130] };
        for &n in sizes {
            for missing in [0, 1, n / 5, n / 2, n] {
                let block = Block::new(&mut random, n, missing, 1 + (n * 31) % 200);
                let lost = block.symbols.iter().zip(&block.is_lost).filter(|(_, lost)| **lost);
                let lost: Vec<Vec<u8>> = lost.map(|(symbol, _)| symbol.clone()).collect();
                match block.recover(&mut decoder) {
                    Ok(outs) => assert_eq!(outs, lost, "{n} {missing}"),
                    // One random matrix in 255 is singular.
                    Err(error) => assert_eq!(error, RecoverError::Dependent),
                }
            }
        }
    }

    #[test]
    fn dependent_combinations_are_told() {
        let mut block = Block::new(&mut TestRandom::new(10), 8, 3, 20);
        block.rows[2] = block.rows[0].clone();
        block.payloads[2] = block.payloads[0].clone();
        assert_eq!(block.recover(&mut BlockDecoder::default()), Err(RecoverError::Dependent));
    }

    #[test]
    fn wrong_counts_and_lengths_are_refused() {
        let mut decoder = BlockDecoder::default();
        let (a, b) = ([1; 8], [2; 8]);
        let symbols: [Option<&[u8]>; 3] = [Some(&a), None, Some(&b)];
        let combination = Combination { coefficients: &[1, 1, 1], payload: &[3; 8] };
        let mut out = [0; 8];
        let mut recover = |combinations: &[Combination<'_>], out: &mut [u8]| {
            decoder.recover(&symbols, combinations, &mut [out])
        };
        assert_eq!(recover(&[combination], &mut out), Ok(()));
        assert_eq!(recover(&[], &mut out), Err(RecoverError::Count));
        assert_eq!(recover(&[combination; 2], &mut out), Err(RecoverError::Count));
        assert_eq!(recover(&[combination], &mut [0; 7]), Err(RecoverError::Length));
        let short = Combination { coefficients: &[1, 1], ..combination };
        assert_eq!(recover(&[short], &mut out), Err(RecoverError::Length));
        let short = Combination { payload: &[3; 7], ..combination };
        assert_eq!(recover(&[short], &mut out), Err(RecoverError::Length));
        assert_eq!(out, [1 ^ 2 ^ 3; 8]);
    }
}
