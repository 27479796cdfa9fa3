//! Several interfaces (section 4.2): the same file over two wireless cards at once.
//!
//! A connection has one path, so there is nothing to measure yet. The thesis prints, at 0, 5, 10 and 15 % added loss,
//! 13.5 and 16.28, 8.99 and 9.3, 13.79 and 13.13, 9.89 and 10.25 Mbit/s.

use super::PAPER;
use crate::experiment::Waiting;

/// The figure, which cannot be reproduced yet.
pub const WAITING: Waiting = Waiting {
    id: "thesis-multi",
    paper: PAPER,
    title: "a file over two lossy interfaces at once",
    waits_for: "multipath: a connection uses one interface",
};
