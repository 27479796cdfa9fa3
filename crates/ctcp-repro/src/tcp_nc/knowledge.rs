//! What a node knows about a few packets: a basis in echelon form, whose leading columns are the packets seen.

use ctcp_base::Prng;

use super::field::Field;

/// The number of packets.
pub(super) const PACKETS: usize = 6;

/// Coefficients of a combination of all packets.
pub(super) type Combination = [u8; PACKETS];

/// A basis. The row at index i begins in column i with a one.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    rows: [Option<Combination>; PACKETS],
}

impl Knowledge {
    /// Receives a combination. Returns the packet that the node has now seen, if the combination is innovative.
    pub(super) fn receive(&mut self, field: &Field, mut combination: Combination) -> Option<usize> {
        for column in 0..PACKETS {
            let entry = combination[column];
            if entry == 0 {
                continue;
            }
            let Some(row) = &self.rows[column] else {
                let inverse = field.inverse(entry);
                self.rows[column] = Some(combination.map(|entry| field.multiply(entry, inverse)));
                return Some(column);
            };
            // In these fields addition equals subtraction.
            combination
                .iter_mut()
                .zip(row)
                .for_each(|(target, &part)| *target ^= field.multiply(part, entry));
        }
        None
    }

    /// Returns a combination of all rows with uniform weights. It has the same distribution as one of the witnesses,
    /// which span the same space.
    pub(super) fn combine(&self, field: &Field, prng: &mut Prng) -> Combination {
        let mut combination = [0; PACKETS];
        for row in self.rows.iter().flatten() {
            let weight = field.draw(prng);
            combination
                .iter_mut()
                .zip(row)
                .for_each(|(target, &part)| *target ^= field.multiply(part, weight));
        }
        combination
    }

    pub(super) fn has_seen(&self, packet: usize) -> bool {
        self.rows[packet].is_some()
    }

    pub(super) fn oldest_unseen(&self) -> Option<usize> {
        (0..PACKETS).find(|&packet| !self.has_seen(packet))
    }

    /// Returns d*: the oldest packet that this node has seen and the other one has not.
    pub(super) fn oldest_beyond(&self, other: &Self) -> Option<usize> {
        (0..PACKETS).find(|&packet| self.has_seen(packet) && !other.has_seen(packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_seen_packets_is_the_number_of_innovative_combinations() {
        let field = Field::new(16);
        let mut node = Knowledge::default();
        assert_eq!(node.receive(&field, [0, 3, 5, 0, 0, 1]), Some(1));
        assert_eq!(node.receive(&field, [0, 6, 10, 0, 0, 2]), None, "twice the first");
        assert_eq!(node.receive(&field, [0, 6, 10, 7, 0, 2]), Some(3));
        assert_eq!(node.receive(&field, [0; PACKETS]), None);
        assert_eq!((node.oldest_unseen(), node.oldest_beyond(&Knowledge::default())), (Some(0), Some(1)));
        for seed in 0..100 {
            let combination = node.combine(&field, &mut Prng::new(seed));
            assert_eq!(node.clone().receive(&field, combination), None, "it is known");
        }
    }
}
