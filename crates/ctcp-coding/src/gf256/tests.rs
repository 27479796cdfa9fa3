//! The laws of the field, and every engine against plain element arithmetic.

use super::*;
use crate::test_random::TestRandom;
use std::vec;
use std::vec::Vec;

#[test]
fn tables_agree_with_the_definition_for_all_pairs() {
    for a in 0..=255u8 {
        for b in 0..=255u8 {
            assert_eq!(element::mul(a, b), element::mul_by_definition(a, b));
        }
    }
}

#[test]
fn every_element_but_zero_has_an_inverse() {
    assert_eq!(element::inverse(0), None);
    for a in 1..=255u8 {
        assert_eq!(element::mul(a, element::inverse(a).unwrap()), 1);
    }
}

#[test]
fn two_generates_the_multiplicative_group() {
    let mut power = 1;
    for exponent in 1..=255 {
        power = element::mul(power, 2);
        assert_eq!(power == 1, exponent == 255);
    }
}

#[test]
fn scalar_and_naive_are_always_available_and_found_by_name() {
    let names: Vec<_> = Engine::available().map(Engine::name).collect();
    assert!(names.starts_with(&["naive", "scalar"]));
    for engine in Engine::available() {
        assert_eq!(Engine::named(engine.name()), Some(engine));
    }
    assert_eq!(Engine::named("abacus"), None);
}

#[test]
fn every_engine_agrees_with_the_table_for_all_pairs() {
    let all: Vec<u8> = (0..=255).collect();
    for engine in Engine::available() {
        for coefficient in 0..=255u8 {
            let mut out = vec![0xAA; 256];
            engine.combine(&mut out, &[coefficient], &[&all]);
            for (b, &product) in out.iter().enumerate() {
                assert_eq!(
                    product,
                    element::mul(coefficient, b as u8),
                    "{} {coefficient} * {b}",
                    engine.name()
                );
            }
        }
    }
}

/// Compares one engine with plain element arithmetic for one shape. Guard bytes detect writes outside the outputs.
fn check_shape(engine: Engine, random: &mut TestRandom, outputs: usize, sources: usize, length: usize) {
    let storage: Vec<(usize, Vec<u8>)> =
        (0..sources).map(|_| (random.below(64) as usize, random.bytes(length + 64))).collect();
    let views: Vec<&[u8]> = storage.iter().map(|(start, bytes)| &bytes[*start..*start + length]).collect();
    let rows: Vec<Vec<u8>> = (0..outputs).map(|_| random.bytes(sources)).collect();
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    for add in [false, true] {
        let start = random.below(64) as usize;
        let mut buffers: Vec<Vec<u8>> = (0..outputs).map(|_| random.bytes(length + 128)).collect();
        let mut expected = buffers.clone();
        for (out, row) in expected.iter_mut().zip(&rows) {
            for position in 0..length {
                let sum = row
                    .iter()
                    .zip(&views)
                    .fold(0, |sum, (&coefficient, source)| sum ^ element::mul(coefficient, source[position]));
                let old = if add { out[start + position] } else { 0 };
                out[start + position] = old ^ sum;
            }
        }
        let mut outs: Vec<&mut [u8]> =
            buffers.iter_mut().map(|out| &mut out[start..start + length]).collect();
        if add {
            engine.combine_rows_add(&mut outs, &rows, &views);
        } else {
            engine.combine_rows(&mut outs, &rows, &views);
        }
        assert_eq!(buffers, expected, "{} {outputs} {sources} {length} {add}", engine.name());
    }
}

#[test]
fn every_engine_equals_element_arithmetic_at_all_lengths() {
    let mut random = TestRandom::new(1);
    for engine in Engine::available() {
        for length in 0..=257 {
            check_shape(engine, &mut random, 1 + length % 5, random_count(length), length);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn every_engine_equals_element_arithmetic_at_all_lengths_for_all_counts() {
    let mut random = TestRandom::new(3);
    for engine in Engine::available() {
        for length in 0..=257 {
            for (sources, outputs) in
                (0..=4).flat_map(|sources| (1..=5).map(move |outputs| (sources, outputs)))
            {
                check_shape(engine, &mut random, outputs, sources, length);
            }
        }
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
#[should_panic(expected = "one factor per row")]
#[cfg_attr(miri, ignore = "Miri would allocate the four gigabytes of zeros")]
fn a_matrix_whose_size_wraps_is_refused() {
    let zeros = std::vec![0; 1 << 32];
    Engine::fastest().spread(&mut [], &zeros, &zeros);
}

/// Returns a number of sources that varies with the length and includes zero.
fn random_count(length: usize) -> usize {
    (length * 7 + 3) % 6
}

#[test]
fn every_engine_equals_element_arithmetic_at_packet_sizes() {
    let mut random = TestRandom::new(2);
    for engine in Engine::available() {
        for length in [1200, 1344, 1345, 1407, 1500] {
            for outputs in 1..=5 {
                check_shape(engine, &mut random, outputs, 9, length);
            }
        }
    }
}

#[test]
fn every_engine_sums_at_all_lengths_and_alignments() {
    let mut random = TestRandom::new(5);
    for engine in Engine::available() {
        for length in (0..=257).chain([1344, 1427]) {
            let buffers: Vec<Vec<u8>> = (0..length % 5).map(|_| random.bytes(length + 64)).collect();
            let sources: Vec<&[u8]> =
                buffers.iter().map(|bytes| &bytes[random.below(64) as usize..][..length]).collect();
            let start = random.below(64) as usize;
            let mut out = random.bytes(length + 128);
            let mut expected = out.clone();
            for position in 0..length {
                expected[start + position] = sources.iter().fold(0, |sum, source| sum ^ source[position]);
            }
            engine.sum(&mut out[start..start + length], &sources);
            assert_eq!(out, expected, "{} {length}", engine.name());
        }
    }
}

#[test]
fn every_engine_spreads_a_source_over_rows() {
    let mut random = TestRandom::new(6);
    for engine in Engine::available() {
        for width in (0..=12).map(|units| 64 * units) {
            for rows in 0..=5usize {
                let start = random.below(64) as usize;
                let mut bytes = random.bytes(rows * width + 128);
                let (factors, source) = (random.bytes(rows), random.bytes(width));
                let mut expected = bytes.clone();
                for r in 0..rows {
                    for c in 0..width {
                        expected[start + r * width + c] ^= element::mul(factors[r], source[c]);
                    }
                }
                engine.spread(&mut bytes[start..start + rows * width], &factors, &source);
                assert_eq!(bytes, expected, "{} {width} {rows}", engine.name());
            }
        }
    }
}

#[test]
#[should_panic(expected = "one factor per row")]
fn a_matrix_with_the_wrong_number_of_rows_is_refused() {
    Engine::fastest().spread(&mut [0; 192], &[1, 2], &[0; 64]);
}

#[test]
#[should_panic(expected = "the length of a row is not a multiple of the unit")]
fn rows_of_half_a_unit_are_refused() {
    Engine::fastest().spread(&mut [0; 64], &[1, 2], &[0; 32]);
}

#[test]
fn every_engine_reads_all_bytes_of_its_sources() {
    let mut random = TestRandom::new(7);
    for engine in Engine::available() {
        for length in (0..=257).chain([1344, 1427, 4096]) {
            let bytes: Vec<Vec<u8>> = (0..length % 4).map(|_| random.bytes(length + 64)).collect();
            let sources: Vec<&[u8]> =
                bytes.iter().map(|bytes| &bytes[random.below(64) as usize..][..length]).collect();
            let mut expected = [0; 8];
            for source in &sources {
                source.iter().enumerate().for_each(|(position, byte)| expected[position % 8] ^= byte);
            }
            assert_eq!(engine.read(&sources), u64::from_le_bytes(expected), "{} {length}", engine.name());
        }
    }
}

#[test]
fn this_processor_has_the_basic_vector_engine_of_its_architecture() {
    // Every such processor of the last fifteen years has it. Without `std`, the build target decides instead of the
    // processor.
    let vector = if cfg!(target_arch = "aarch64") { "neon" } else { "ssse3" };
    let is_known =
        cfg!(feature = "std") && cfg!(any(target_arch = "aarch64", target_arch = "x86_64")) && !cfg!(miri);
    assert!(!is_known || Engine::named(vector).is_some());
}

#[test]
fn products_in_registers_are_counted() {
    for engine in Engine::available() {
        for outputs in 1..=4 {
            let once = engine.multiply_in_registers(outputs, 1);
            assert_eq!(engine.multiply_in_registers(outputs, 10), 10 * once);
            assert_eq!(once == 0, ["naive", "scalar"].contains(&engine.name()));
        }
    }
}

#[test]
#[should_panic(expected = "a source is shorter than the output")]
fn a_source_that_is_too_short_is_refused() {
    Engine::fastest().combine(&mut [0; 65], &[1, 2], &[&[0; 65], &[0; 64]]);
}

#[test]
#[should_panic(expected = "outputs differ in length")]
fn outputs_of_different_lengths_are_refused() {
    let (mut long, mut short) = ([0; 128], [0; 64]);
    Engine::fastest().combine_rows(&mut [&mut long, &mut short], &[&[1], &[1]], &[&[0; 128]]);
}

#[test]
#[should_panic(expected = "one coefficient per source")]
fn a_missing_coefficient_is_refused() {
    Engine::fastest().combine_rows(&mut [&mut [0; 64]], &[&[1]], &[&[0; 64], &[0; 64]]);
}

/// All combinations of lengths, alignments of source and output, and coefficients.
#[test]
#[ignore = "takes minutes; run with: cargo test --release -p ctcp-coding -- --ignored"]
fn every_engine_equals_element_arithmetic_for_all_lengths_alignments_and_coefficients() {
    let mut random = TestRandom::new(3);
    let bytes = random.bytes(512);
    for engine in Engine::available() {
        for length in 0..=257 {
            for alignment in 0..64 {
                for coefficient in 0..=255u8 {
                    let source = &bytes[alignment..alignment + length];
                    let mut out = [0x5A; 400];
                    let start = (alignment * 5 + usize::from(coefficient)) % 64;
                    engine.combine_add(&mut out[start..start + length], &[coefficient], &[source]);
                    for (position, &byte) in out.iter().enumerate() {
                        let product = position
                            .checked_sub(start)
                            .and_then(|inside| source.get(inside))
                            .map_or(0, |&factor| element::mul(coefficient, factor));
                        assert_eq!(byte, 0x5A ^ product, "{}", engine.name());
                    }
                }
            }
        }
    }
}

#[test]
fn slice_helpers_follow_element_arithmetic() {
    let source: Vec<u8> = (0..100).collect();
    let mut out = vec![3; 100];
    mul(&mut out, 7, &source);
    assert!(out.iter().zip(&source).all(|(&o, &s)| o == element::mul(7, s)));
    mul_add(&mut out, 7, &source);
    assert!(out.iter().all(|&o| o == 0));
    xor(&mut out, &source);
    assert_eq!(out, source);
    scale(&mut out, 9);
    assert!(out.iter().zip(&source).all(|(&o, &s)| o == element::mul(9, s)));
}

#[test]
fn forcing_an_engine_makes_it_current() {
    let before = Engine::current();
    Engine::named("scalar").unwrap().force();
    assert_eq!(Engine::current().name(), "scalar");
    before.force();
    assert_eq!(Engine::current(), before);
}
