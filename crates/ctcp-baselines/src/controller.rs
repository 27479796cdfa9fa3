//! Congestion controls that only the papers have.

mod thesis;
mod vegas;

use ctcp_proto::congestion::{Algorithm, AlgorithmSpec, Ctcp};

use thesis::Thesis;
use vegas::Vegas;

/// TCP Vegas, for classical TCP and TCP/NC.
pub const VEGAS: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 2,
    name: "vegas",
    make: |_| Box::new(Vegas::new()),
    answers_to_marks: false,
    is_punctual: false,
    needs_symbols: true,
});

/// The thesis's, which compares a round trip with the smoothed one and ignores loss.
pub const THESIS: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 3,
    name: "thesis",
    make: |datagram_size| Box::new(Thesis::new(datagram_size)),
    answers_to_marks: false,
    is_punctual: false,
    needs_symbols: false,
});

/// Algorithm 2 of the CTCP paper with the same growth always, as Eqs. 4 to 6 have it.
pub const CTCP_CONSTANT_ALPHA: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 6,
    name: "ctcp-constant-alpha",
    make: |datagram_size| Box::new(Ctcp::with_constant_alpha(datagram_size)),
    answers_to_marks: true,
    is_punctual: true,
    needs_symbols: false,
});
