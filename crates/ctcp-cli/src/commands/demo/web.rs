//! The two ends of the demo's download: a web server with one file, and a client that fetches it through SOCKS5 and
//! checks every byte.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ctcp_base::Prng;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::link::clock;

/// The longest head of a request or response.
const HEAD_MAX: usize = 4096;

/// The SOCKS5 reply of a proxy without a connection to its server.
const UNREACHABLE: u8 = 3;

/// The file's contents: pseudo-random, so that wrong or shifted bytes are noticed.
struct Contents {
    prng: Prng,
    chunk: [u8; 8192],
    used: usize,
}

impl Contents {
    fn new() -> Self {
        Self { prng: Prng::new(0x00c7_c900), chunk: [0; 8192], used: 8192 }
    }

    /// Returns the next bytes, at least one and at most `limit`.
    fn next(&mut self, limit: usize) -> &[u8] {
        if self.used == self.chunk.len() {
            self.prng.fill(&mut self.chunk);
            self.used = 0;
        }
        let start = self.used;
        self.used = (start + limit).min(self.chunk.len());
        &self.chunk[start..self.used]
    }
}

/// Serves one file of `size` bytes on loopback until the runtime ends; returns its address.
pub(super) async fn serve(size: u64) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that disconnects early is not a failure of the server.
            tokio::spawn(async move { drop(answer(stream, size).await) });
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, size: u64) -> io::Result<()> {
    read_head(&mut stream).await?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut contents = Contents::new();
    let mut left = size;
    while left > 0 {
        let chunk = contents.next(usize::try_from(left).unwrap_or(usize::MAX));
        left -= chunk.len() as u64;
        stream.write_all(chunk).await?;
    }
    stream.shutdown().await
}

/// The result of a download.
#[derive(Clone, Copy, Debug)]
pub(super) struct Download {
    /// Bytes that arrived and were correct.
    pub(super) bytes: u64,
    /// From the first byte sent to the proxy to the last byte received.
    pub(super) elapsed: Duration,
    /// All bytes arrived.
    pub(super) is_complete: bool,
}

/// Fetches the file from `server` through the SOCKS5 proxy; stops after `limit`. `progress` is called with the bytes so
/// far.
pub(super) async fn download(
    proxy: SocketAddr,
    server: SocketAddr,
    limit: Duration,
    mut progress: impl FnMut(u64),
) -> io::Result<Download> {
    let start = clock();
    let mut bytes = 0;
    let whole = tokio::time::timeout(
        limit,
        fetch(proxy, server, |count| {
            bytes = count;
            progress(count);
        }),
    )
    .await;
    let is_complete = match whole {
        Ok(outcome) => outcome.map(|()| true)?,
        Err(_) => false,
    };
    Ok(Download { bytes, elapsed: clock().duration_since(start), is_complete })
}

async fn fetch(proxy: SocketAddr, server: SocketAddr, mut progress: impl FnMut(u64)) -> io::Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(proxy).await?);
    let SocketAddr::V4(target) = server else {
        return Err(io::Error::other("the demo's web server is on IPv4 loopback"));
    };
    // RFC 1928: no authentication, then CONNECT to an IPv4 address.
    let mut request = vec![5, 1, 0, 5, 1, 0, 1];
    request.extend_from_slice(&target.ip().octets());
    request.extend_from_slice(&target.port().to_be_bytes());
    stream.write_all(&request).await?;
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).await?;
    if reply[..2] == [5, 0] && reply[2..4] == [5, UNREACHABLE] {
        return Err(io::Error::other("the connection over this link failed; try a lower --loss or --rtt"));
    }
    if reply[..2] != [5, 0] || reply[2..4] != [5, 0] {
        return Err(io::Error::other(format!("the SOCKS5 proxy refused with code {}", reply[3])));
    }
    stream.write_all(b"GET /file HTTP/1.1\r\nHost: demo\r\n\r\n").await?;
    let size = content_length(&read_head(&mut stream).await?)?;
    let (mut contents, mut received, mut buffer) = (Contents::new(), 0, vec![0; 65_536]);
    while received < size {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::Error::other(format!("the download ended after {received} of {size} bytes")));
        }
        check(&mut contents, &buffer[..count], received)?;
        received += count as u64;
        progress(received);
    }
    Ok(())
}

fn check(contents: &mut Contents, mut bytes: &[u8], position: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let expected = contents.next(bytes.len());
        if bytes[..expected.len()] != *expected {
            return Err(io::Error::other(format!("wrong bytes after position {position}")));
        }
        bytes = &bytes[expected.len()..];
    }
    Ok(())
}

/// Reads up to and including the empty line.
async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_MAX {
            return Err(io::Error::other("the HTTP head is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    String::from_utf8(head).map_err(io::Error::other)
}

fn content_length(head: &str) -> io::Result<u64> {
    let value = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    value.and_then(|value| value.parse().ok()).ok_or_else(|| io::Error::other("no Content-Length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_do_not_depend_on_the_sizes_of_reads() {
        let mut whole = Vec::new();
        let mut contents = Contents::new();
        while whole.len() < 50_000 {
            whole.extend_from_slice(contents.next(50_000 - whole.len()));
        }
        let mut cut = Contents::new();
        for (index, piece) in whole.chunks(777).enumerate() {
            check(&mut cut, piece, index as u64 * 777).expect("the same bytes");
        }
        assert!(check(&mut Contents::new(), &whole[1..100], 0).is_err(), "shifted bytes are noticed");
    }
}
