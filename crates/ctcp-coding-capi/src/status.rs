//! What functions return: what an arrival was worth, or a negative number that says what was wrong.

use ctcp_coding::{Arrival, CombineError, DecodeError, PushError, RecodeError};

/// It was done; or an arrival told nothing new.
pub const OK: i32 = 0;
/// An arrival raised the rank by one; or a symbol was handed out.
pub const INNOVATIVE: i32 = 1;
/// An arrival refers to symbols that were released.
pub const TOO_OLD: i32 = 2;
/// An arrival was new, but too many others wait already.
pub const NO_ROOM: i32 = 3;
/// A pointer is null that must not be.
pub const NULL: i32 = -1;
/// Contents or payload are longer than a symbol may be.
pub const TOO_LONG: i32 = -2;
/// A range is empty, longer than a combination may be, or reaches outside the window.
pub const OUTSIDE_WINDOW: i32 = -3;
/// Coefficients or weights are not as many as they must be.
pub const COUNT: i32 = -4;
/// The window is full.
pub const WINDOW_FULL: i32 = -5;
/// A buffer is too short for the answer.
pub const BUFFER: i32 = -6;
/// There is nothing to combine.
pub const NOTHING: i32 = -7;

pub(crate) fn of_arrival(arrival: Result<Arrival, DecodeError>) -> i32 {
    match arrival {
        Ok(Arrival::Redundant) => OK,
        Ok(Arrival::Innovative) => INNOVATIVE,
        Ok(Arrival::TooOld) => TOO_OLD,
        Ok(Arrival::NoRoom) => NO_ROOM,
        Err(DecodeError::TooLong) => TOO_LONG,
        Err(DecodeError::CoefficientCount) => COUNT,
        Err(DecodeError::OutsideWindow) => OUTSIDE_WINDOW,
    }
}

pub(crate) fn of_push(error: PushError) -> i32 {
    match error {
        PushError::WindowFull => WINDOW_FULL,
        PushError::TooLong => TOO_LONG,
    }
}

pub(crate) fn of_combine(error: CombineError) -> i32 {
    match error {
        CombineError::OutsideWindow => OUTSIDE_WINDOW,
        CombineError::CoefficientCount => COUNT,
    }
}

pub(crate) fn of_recode(error: RecodeError) -> i32 {
    match error {
        RecodeError::WeightCount => COUNT,
        RecodeError::Nothing => NOTHING,
    }
}
