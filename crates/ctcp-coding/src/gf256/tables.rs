//! Constant tables of the field, computed at compile time.

use super::element::POLYNOMIAL;

/// `EXPONENTIALS[i]` = 2^i, for i up to 510 so that sums of two logarithms need no reduction.
pub(crate) static EXPONENTIALS: [u8; 512] = exponentials();
/// `LOGARITHMS[a]` = i with 2^i = a. The entry of 0 has no meaning.
pub(crate) static LOGARITHMS: [u8; 256] = logarithms();
/// `PRODUCTS[a][b]` = a * b (64 KiB; a row is the scalar engine's table of one coefficient).
pub(crate) static PRODUCTS: [[u8; 256]; 256] = products();

const fn exponentials() -> [u8; 512] {
    let mut table = [0; 512];
    let mut power = 1u16;
    let mut i = 0;
    while i < 512 {
        table[i] = power as u8;
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let powers = exponentials();
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[powers[i] as usize] = i as u8;
        i += 1;
    }
    table
}

const fn products() -> [[u8; 256]; 256] {
    let powers = exponentials();
    let logarithms = logarithms();
    let mut table = [[0; 256]; 256];
    let mut a = 1;
    while a < 256 {
        let mut b = 1;
        while b < 256 {
            table[a][b] = powers[logarithms[a] as usize + logarithms[b] as usize];
            b += 1;
        }
        a += 1;
    }
    table
}
