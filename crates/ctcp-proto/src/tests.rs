//! Two endpoints in virtual time: what the parts do together.

mod bulk;
mod damage;
mod handshake;
mod hostile;
mod marks;
mod memory;
mod pair;
mod profiles;
mod smaller_mtu;
