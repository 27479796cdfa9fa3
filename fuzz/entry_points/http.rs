//! The head of an HTTP request to the proxy, and of a response through it.

use ctcp_proxy::http_proxy::{HEAD_BYTES_MAX, HttpRequest, ResponseHead, read_request};
use tokio::io::AsyncReadExt;

use super::ready;

pub fn run(data: &[u8]) {
    let mut reader = data;
    if let Ok(HttpRequest::Tunnel { target, early } | HttpRequest::Plain { target, early, .. }) =
        ready::result(read_request(&mut reader))
    {
        assert_ne!(target.port, 0);
        assert!(early.len() <= data.len() + HEAD_BYTES_MAX);
    }
    let mut passed = Vec::new();
    // One byte may become a field of its own; nothing else grows.
    if ready::result(ResponseHead::new(data).read_to_end(&mut passed)).is_ok() {
        assert!(passed.len() <= 2 * data.len() + 64);
    }
}
