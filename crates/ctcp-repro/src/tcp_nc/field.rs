//! GF(2^m) with up to 256 elements, by logarithm tables. The codec has only GF(256), but Lemma 1 is about any field.

use ctcp_base::Prng;

/// A field of `order` elements, numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Field {
    order: u16,
    logarithm: [u8; 256],
    /// Powers of x over two cycles, so that a sum of logarithms needs no reduction.
    power: [u8; 512],
}

impl Field {
    /// Creates the field of 2, 16 or 256 elements. GF(256) is the codec's.
    pub(super) fn new(order: u16) -> Self {
        let polynomial = match order {
            2 => 0b11,
            16 => 0b1_0011,
            _ => 0x11d,
        };
        let (mut logarithm, mut power) = ([0; 256], [0; 512]);
        let around = usize::from(order) - 1;
        let mut element = 1;
        for (exponent, power) in power.iter_mut().enumerate().take(2 * around) {
            *power = element as u8;
            if exponent < around {
                logarithm[usize::from(element)] = exponent as u8;
            }
            element <<= 1;
            if element >= order {
                element ^= polynomial;
            }
        }
        Self { order, logarithm, power }
    }

    pub(super) fn multiply(&self, a: u8, b: u8) -> u8 {
        if a == 0 || b == 0 {
            return 0;
        }
        self.power[usize::from(self.logarithm[usize::from(a)]) + usize::from(self.logarithm[usize::from(b)])]
    }

    /// Returns the inverse of an element, which must not be zero.
    pub(super) fn inverse(&self, element: u8) -> u8 {
        self.power[usize::from(self.order) - 1 - usize::from(self.logarithm[usize::from(element)])]
    }

    /// Draws uniformly from all elements.
    pub(super) fn draw(&self, prng: &mut Prng) -> u8 {
        prng.below(u64::from(self.order)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_coding::gf256::element;

    #[test]
    fn every_field_has_inverses_and_the_largest_is_the_codecs() {
        for order in [2, 16, 256] {
            let field = Field::new(order);
            let elements = || (0..=(order - 1) as u8).skip(1);
            assert!(elements().all(|element| field.multiply(element, field.inverse(element)) == 1));
            let mut products: Vec<u8> =
                elements().map(|other| field.multiply(other, (order - 1) as u8)).collect();
            products.sort_unstable();
            assert!(products.into_iter().eq(elements()), "multiplication by {} permutes", order - 1);
        }
        let field = Field::new(256);
        assert!(
            (0..=255).all(|a| [0, 1, 2, 29, 255].iter().all(|&b| field.multiply(a, b) == element::mul(a, b)))
        );
    }
}
