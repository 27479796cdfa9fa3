//! CTCP's Algorithm 2 with the same growth with and without a queue.

use ctcp_proto::congestion::{Algorithm, AlgorithmSpec, Ctcp, WindowOf};

pub(super) const PARTS: &[Algorithm] = &[CTCP_CONSTANT_ALPHA];

/// Algorithm 2 of the CTCP paper with constant growth, as in Eqs. 4 to 6.
pub const CTCP_CONSTANT_ALPHA: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 6,
    name: "ctcp-constant-alpha",
    make: |datagram_size| Box::new(Ctcp::with_constant_alpha(datagram_size)),
    answers_to_marks: true,
    is_punctual: true,
    window: Some(WindowOf::Packets),
});
