//! Status codes: the result of an arrival, or a negative number for an error.

use ctcp_coding::{Arrival, CombineError, DecodeError, PushError, RecodeError};

/// Success; or an arrival that carries nothing new; or no symbol to poll.
pub const OK: i32 = 0;
/// An arrival raised the rank by one, or a symbol was returned.
pub const INNOVATIVE: i32 = 1;
/// An arrival refers to symbols that were released.
pub const TOO_OLD: i32 = 2;
/// An arrival was innovative but dropped, because too many equations are held already.
pub const NO_ROOM: i32 = 3;
/// A required pointer is null.
pub const NULL: i32 = -1;
/// Contents or payload exceed the size of a symbol.
pub const TOO_LONG: i32 = -2;
/// A range is empty, exceeds the maximum span, or reaches outside the window.
pub const OUTSIDE_WINDOW: i32 = -3;
/// The number of coefficients or weights is wrong.
pub const COUNT: i32 = -4;
/// The window is full.
pub const WINDOW_FULL: i32 = -5;
/// A buffer is too short for the result.
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
