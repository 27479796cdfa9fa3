//! Allocations of the thesis's decoder.

use ctcp_baselines::coding::SparseDecoder;
use ctcp_coding::{SymbolRange, coefficients};

const SYMBOL_SIZE: usize = 1_200;

#[test]
fn a_decoder_of_blocks_allocates_nothing_after_its_first_ones() {
    let block = SymbolRange::new(0, 32).expect("short");
    let mut decoder = SparseDecoder::new(block, SYMBOL_SIZE);
    let mut row = [0; 32];
    let mut decode = |decoder: &mut SparseDecoder| {
        decoder.restart(block);
        for key in 0..64 {
            let (first, length) = if key < 40 { (u64::from(key) % 27, 6) } else { (0, 32) };
            let range = SymbolRange::new(first, length).expect("short");
            coefficients::generate(key, coefficients::DENSITY_MAX, &mut row[..usize::from(length)]);
            let row = &row[..usize::from(length)];
            decoder.handle_combination(range, row, &[1; SYMBOL_SIZE]).expect("inside the block");
        }
        assert!(decoder.is_decoded());
    };
    (0..3).for_each(|_| decode(&mut decoder));
    let info = allocation_counter::measure(|| (0..20).for_each(|_| decode(&mut decoder)));
    assert_eq!(info.count_total, 0);
}
