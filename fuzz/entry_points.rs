//! One function per target: it accepts any bytes, must not panic, and checks properties that hold for all inputs. The
//! fuzz targets and the test that replays their corpora (`crates/ctcp-sim/tests/fuzz_corpora.rs`) share this file.
#![allow(dead_code, reason = "each target uses one of the modules")]
#![allow(unreachable_pub, reason = "targets and the replay test are separate crates")]

#[path = "entry_points/assembler.rs"]
pub mod assembler;
#[path = "../crates/ctcp-coding/tests/decoder_operations.rs"]
pub mod decoder;
#[path = "entry_points/early.rs"]
pub mod early;
#[path = "entry_points/edits.rs"]
mod edits;
#[path = "entry_points/file_name.rs"]
pub mod file_name;
#[path = "entry_points/frame.rs"]
pub mod frame;
#[path = "entry_points/handshake.rs"]
pub mod handshake;
#[path = "entry_points/http.rs"]
pub mod http;
#[path = "entry_points/messages.rs"]
pub mod messages;
#[path = "entry_points/packet_header.rs"]
pub mod packet_header;
#[path = "entry_points/parameters.rs"]
pub mod parameters;
#[path = "entry_points/proxy_request.rs"]
pub mod proxy_request;
#[path = "entry_points/ready.rs"]
mod ready;
#[path = "../crates/ctcp-coding/tests/recoder_operations.rs"]
pub mod recoder;
#[path = "entry_points/sealed_packet.rs"]
pub mod sealed_packet;
#[path = "entry_points/socks5.rs"]
pub mod socks5;
#[path = "entry_points/streams.rs"]
pub mod streams;
