//! Constant tables of the field, computed at compile time.

use super::element::POLYNOMIAL;

/// `EXPONENTIALS[i]` = 2^i, for i up to 510 so that sums of two logarithms need no reduction.
pub(crate) static EXPONENTIALS: [u8; 512] = exponentials();
/// `LOGARITHMS[a]` = i with 2^i = a. The entry for 0 is unused.
pub(crate) static LOGARITHMS: [u8; 256] = logarithms();
/// `PRODUCTS[a][b]` = a * b (64 KiB). A row is the scalar engine's table for one coefficient.
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

/// For shuffles: `NIBBLES[c].low[i]` = c * i and `NIBBLES[c].high[i]` = c * (16 i), for i below 16.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) static NIBBLES: [Nibbles; 256] = nibbles();

/// The products of a coefficient with all low and all high halves of a byte. Aligned to lie in one cache line, since a
/// load that crosses two is slower.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Nibbles {
    pub(crate) low: [u8; 16],
    pub(crate) high: [u8; 16],
}

/// For `gf2p8affineqb`: multiplication by c as an 8 x 8 bit matrix. Output bit i of the instruction is the parity of
/// the input AND byte 7 - i of the matrix.
#[cfg(target_arch = "x86_64")]
pub(crate) static MATRICES: [u64; 256] = matrices();

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn nibbles() -> [Nibbles; 256] {
    let products = products();
    let mut table = [Nibbles { low: [0; 16], high: [0; 16] }; 256];
    let mut c = 0;
    while c < 256 {
        let mut i = 0;
        while i < 16 {
            table[c].low[i] = products[c][i];
            table[c].high[i] = products[c][16 * i];
            i += 1;
        }
        c += 1;
    }
    table
}

#[cfg(target_arch = "x86_64")]
const fn matrices() -> [u64; 256] {
    let products = products();
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut column = 0;
        while column < 8 {
            // Column j of the matrix is the image of input bit j.
            let image = products[c][1 << column];
            let mut row = 0;
            while row < 8 {
                let bit = (image >> row) as u64 & 1;
                table[c] |= bit << (8 * (7 - row) + column);
                row += 1;
            }
            column += 1;
        }
        c += 1;
    }
    table
}
