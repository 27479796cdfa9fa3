//! The papers' closed forms, as printed and, if the text has an error, as they follow from its own derivation.
//!
//! | form | paper | file |
//! |---|---|---|
//! | throughput shares of AIMD flows | CTCP, Eq. 6 | [`shares`] |
//! | packets sent ahead for nothing | CTCP, Eq. 7 | [`block_code`] |
//! | redundancy for a success rate | EOT/PB, R_a | [`adjusted_redundancy`] |
//! | window under random loss | CTCP, section 4.3 (Padhye) | [`padhye`] |
//! | probability of seeing the next packet | TCP/NC, Lemma 1 | [`seen`] |
//! | queues along a chain | TCP/NC, Theorem 2 | [`queues`] |
//! | packets until a block is known | thesis, section 3.1.4 | [`completion`] |
//!
//! Arguments and results are plain numbers. Probabilities lie in `[0, 1]`; each function documents further
//! requirements.

pub mod adjusted_redundancy;
pub mod block_code;
pub mod completion;
pub mod padhye;
pub mod queues;
pub mod seen;
pub mod shares;
