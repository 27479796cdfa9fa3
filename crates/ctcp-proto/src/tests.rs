//! Tests with two endpoints in virtual time.

mod bulk;
mod chain;
mod damage;
mod early;
mod handshake;
mod handshake_times;
mod hostile;
mod interactive;
mod keys;
mod marks;
mod memory;
mod messages;
mod modes;
mod moving;
mod pair;
mod parts;
mod path_attacks;
mod paths;
mod profiles;
mod randomness;
mod relays;
mod resets;
mod several;
mod smaller_mtu;
mod strangers;
mod versions;
