//! Two endpoints in virtual time: what the parts do together.

mod acks;
mod bulk;
mod damage;
mod handshake;
mod hostile;
mod pair;
mod smaller_mtu;
