//! Input from an application to the HTTP proxy: any input is answered or the connection is closed. No target is ever
//! available.

use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use ctcp_proxy::address::TargetAddress;
use ctcp_proxy::counters::Counters;
use ctcp_proxy::http_proxy::{LocalStatus, Proxy, serve};
use ctcp_proxy::link::{LinkError, Opened};
use ctcp_proxy::splice::SpliceEnd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub fn run(data: &[u8]) {
    let mut answer = Vec::new();
    let application = Application { unread: data, answer: &mut answer };
    let proxy = Lonely(Arc::new(Counters::new("client")));
    let local = "127.0.0.1:8118".parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let served = runtime.block_on(async {
        let serve = serve(application, local, &proxy, Duration::from_secs(5));
        tokio::time::timeout(Duration::from_secs(2), serve).await.expect("the proxy does not wait").is_ok()
    });
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
    assert!(!served || !data.starts_with(b"GET http://") || !answer.starts_with(b"HTTP/1.1 200"));
}

/// Sends its input and accepts every answer.
struct Application<'a> {
    unread: &'a [u8],
    answer: &'a mut Vec<u8>,
}

impl AsyncRead for Application<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.unread).poll_read(context, buffer)
    }
}

impl AsyncWrite for Application<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.answer.extend_from_slice(data);
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl SpliceEnd for Application<'_> {
    fn abort(&mut self) {}
}

/// A proxy whose server never answers.
struct Lonely(Arc<Counters>);

impl Proxy for Lonely {
    type Connection = ctcp::Connection;

    async fn connect(&self, target: &TargetAddress) -> Result<Opened<ctcp::Connection>, LinkError> {
        assert_ne!(target.port, 0);
        Err(LinkError::Silent)
    }

    fn on_failed(&self, _: &TargetAddress, _: &str) {}

    fn status(&self) -> LocalStatus {
        LocalStatus::default()
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.0
    }
}
