//! Two endpoints in virtual time: what the parts do together.

mod bulk;
mod damage;
mod handshake;
mod hostile;
mod keys;
mod marks;
mod memory;
mod pair;
mod profiles;
mod randomness;
mod resets;
mod smaller_mtu;
mod strangers;
