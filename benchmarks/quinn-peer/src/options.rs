//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quinn::TransportConfig;
use quinn::congestion::{BbrConfig, CubicConfig};

use crate::Failure;

/// The flow control windows: more than 100 Mbit/s, 100 ms and a full queue need, so that they never limit.
const WINDOW: u32 = 8 * 1_024 * 1_024;

/// The role of the process.
pub(crate) enum Role {
    /// Connects what arrives to a server.
    Server { target: SocketAddr },
    /// Carries what programs send to a QUIC server.
    Client { server: SocketAddr },
}

/// The parsed command line.
pub(crate) struct Options {
    pub(crate) role: Role,
    pub(crate) listen: SocketAddr,
    pub(crate) certificate: PathBuf,
    /// Carries UDP instead of TCP.
    pub(crate) is_udp: bool,
    pub(crate) transport: Arc<TransportConfig>,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Self, Failure> {
        let value = |name: &str| {
            let place = words.iter().position(|word| word == name);
            place.and_then(|place| words.get(place + 1)).ok_or_else(|| format!("`{name}` is missing"))
        };
        let role = match words.first().map(String::as_str) {
            Some("server") => Role::Server { target: value("--target")?.parse()? },
            Some("client") => Role::Client { server: value("--server")?.parse()? },
            _ => return Err("the first word is `server` or `client`".into()),
        };
        Ok(Self {
            role,
            listen: value("--listen")?.parse()?,
            certificate: value("--certificate")?.into(),
            is_udp: words.iter().any(|word| word == "--udp"),
            transport: Arc::new(transport(value("--congestion")?)?),
        })
    }
}

fn transport(congestion: &str) -> Result<TransportConfig, Failure> {
    let mut transport = TransportConfig::default();
    match congestion {
        "cubic" => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "bbr" => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        other => return Err(format!("no congestion control is called `{other}`").into()),
    };
    transport
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .send_window(WINDOW.into())
        .keep_alive_interval(Some(Duration::from_secs(5)));
    Ok(transport)
}
