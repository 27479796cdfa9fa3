//! Sends datagrams of the given sizes to an echo through a SOCKS5 proxy, with the crate fast-socks5.
//!
//! `socks-rust PROXY TARGET PORT SIZE...` prints a line for each size, as `udp.py sizes` does.

use std::time::Duration;

use fast_socks5::client::Socks5Datagram;
use tokio::net::TcpStream;
use tokio::time::timeout;

const TRIES: u32 = 4;
const PATIENCE: Duration = Duration::from_millis(1500);

type Socks = Socks5Datagram<TcpStream>;

/// Returns what became of one size, in words.
async fn echoed(socks: &Socks, target: &str, port: u16, data: &[u8]) -> String {
    for attempt in 1..=TRIES {
        if let Err(error) = socks.send_to(data, (target, port)).await {
            return format!("error {error}");
        }
        let mut buffer = vec![0; 65_536];
        while let Ok(received) = timeout(PATIENCE, socks.recv_from(&mut buffer)).await {
            match received {
                Ok((count, _)) if buffer[..count] == *data => return format!("ok {attempt}"),
                Ok(_) => {} // late, of an earlier size
                Err(error) => return format!("error {error}"),
            }
        }
    }
    "silence".to_owned()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [proxy, target, port, sizes @ ..] = arguments.as_slice() else { panic!("PROXY TARGET PORT SIZE...") };
    let control = TcpStream::connect(proxy).await.expect("the proxy is there");
    let socks = Socks5Datagram::bind(control, "0.0.0.0:0").await.expect("the proxy grants an association");
    for size in sizes {
        let size: usize = size.parse().expect("a size");
        let data: Vec<u8> = (0..size).map(|at| ((at * 31 + size) % 251) as u8).collect();
        println!("{size} {}", echoed(&socks, target, port.parse().expect("a port"), &data).await);
    }
}
