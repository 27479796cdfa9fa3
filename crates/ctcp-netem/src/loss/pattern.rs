//! Scripted loss, for tests that need a specific packet to be lost.

/// Loses the packets whose entry is true. After the end, no packet is lost.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    rest: std::vec::IntoIter<bool>,
}

impl Pattern {
    pub(crate) fn new(lost: Vec<bool>) -> Self {
        Self { rest: lost.into_iter() }
    }

    pub(crate) fn is_lost(&mut self) -> bool {
        self.rest.next().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listed_packets_are_lost_and_none_after_them() {
        let mut pattern = Pattern::new(vec![false, true, true]);
        let fates: Vec<bool> = (0..6).map(|_| pattern.is_lost()).collect();
        assert_eq!(fates, [false, true, true, false, false, false]);
    }
}
