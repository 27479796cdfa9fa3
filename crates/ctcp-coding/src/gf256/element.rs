//! Arithmetic on single elements of GF(2^8), polynomial 0x11D.

use super::tables::{EXPONENTIALS, LOGARITHMS, PRODUCTS};

/// The field's polynomial, x^8 + x^4 + x^3 + x^2 + 1. The element 2 generates its multiplicative group.
pub const POLYNOMIAL: u16 = 0x11D;

/// Returns the product of two elements. (Sum and difference are `^`.)
#[must_use]
#[inline]
pub fn mul(a: u8, b: u8) -> u8 {
    PRODUCTS[usize::from(a)][usize::from(b)]
}

/// Returns the element whose product with `a` is 1, or `None` for 0, which has no inverse.
#[must_use]
#[inline]
pub fn inverse(a: u8) -> Option<u8> {
    (a != 0).then(|| EXPONENTIALS[255 - usize::from(LOGARITHMS[usize::from(a)])])
}

/// Computes the product bit by bit from the definition. The tables are built from this and tested against it.
#[must_use]
pub const fn mul_by_definition(a: u8, b: u8) -> u8 {
    let mut product = 0u16;
    let mut shifted = a as u16;
    let mut rest = b;
    while rest != 0 {
        if rest & 1 != 0 {
            product ^= shifted;
        }
        shifted <<= 1;
        if shifted & 0x100 != 0 {
            shifted ^= POLYNOMIAL;
        }
        rest >>= 1;
    }
    product as u8
}
