//! A coded connection in memory, for tests: streams that half-close, reset and stop, and connections that a test can
//! lose at any time.
#![cfg(test)]

use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, watch};

use crate::coded::{CodedConnection, CodedStream, PathHealth};
use crate::link::{ConnectFailure, Connector};
use crate::request::stream_code;
use crate::server::ReverseProxy;
use crate::splice::SpliceEnd;

/// How many bytes a pipe holds before its writer blocks.
pub(crate) const PIPE_BYTES: usize = 4096;

#[derive(Default)]
struct Pipe {
    data: VecDeque<u8>,
    is_finished: bool,
    reset: Option<u64>,
    stopped: Option<u64>,
    is_lost: bool,
    is_low_latency: bool,
    wakers: Vec<core::task::Waker>,
}

impl Pipe {
    fn wake(&mut self) {
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
    }

    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.wakers.push(context.waker().clone());
        Poll::Pending
    }
}

type Shared = Arc<Mutex<Pipe>>;

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection is lost")
}

/// One end of a stream in memory.
pub(crate) struct Stream {
    read: Shared,
    write: Shared,
}

/// Two ends of a stream without a connection.
pub(crate) fn stream_pair() -> (Stream, Stream) {
    let (there, back) = (Shared::default(), Shared::default());
    (Stream { read: back.clone(), write: there.clone() }, Stream { read: there, write: back })
}

impl Stream {
    /// Simulates the loss of its connection: both ends fail after the data that has arrived.
    pub(crate) fn lose(&self) {
        for pipe in [&self.read, &self.write] {
            let mut pipe = pipe.lock().unwrap();
            pipe.is_lost = true;
            pipe.wake();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        CodedStream::reset(self, stream_code::DROPPED);
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut pipe = self.read.lock().unwrap();
        if let Some(code) = pipe.reset {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, ctcp::StreamReset(code))));
        }
        if pipe.data.is_empty() && !pipe.is_finished {
            return if pipe.is_lost { Poll::Ready(Err(lost())) } else { pipe.wait(context) };
        }
        while buffer.remaining() > 0
            && let Some(byte) = pipe.data.pop_front()
        {
            buffer.put_slice(&[byte]);
        }
        pipe.wake();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.write.lock().unwrap();
        if pipe.is_lost {
            return Poll::Ready(Err(lost()));
        }
        if let Some(code) = pipe.stopped {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, ctcp::StreamStopped(code))));
        }
        let room = PIPE_BYTES - pipe.data.len();
        if room == 0 {
            return pipe.wait(context);
        }
        let count = room.min(data.len());
        pipe.data.extend(&data[..count]);
        pipe.wake();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.write.lock().unwrap();
        if pipe.is_lost {
            return Poll::Ready(Err(lost()));
        }
        pipe.is_finished = true;
        pipe.wake();
        Poll::Ready(Ok(()))
    }
}

impl SpliceEnd for Stream {
    const KEEPS: bool = true;

    fn abort(&mut self) {
        CodedStream::reset(self, stream_code::ABORTED);
    }

    fn leave(&mut self) {
        CodedStream::reset(self, stream_code::ENOUGH);
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut pipe = self.write.lock().unwrap();
        if pipe.is_lost || pipe.stopped.is_some() { Poll::Ready(()) } else { pipe.wait(context) }
    }
}

impl Stream {
    /// Whether the other side asked for low latency for what it writes.
    pub(crate) fn has_low_latency(&self) -> bool {
        self.read.lock().unwrap().is_low_latency
    }
}

impl CodedStream for Stream {
    fn set_low_latency(&mut self, is_wanted: bool) {
        self.write.lock().unwrap().is_low_latency = is_wanted;
    }

    fn reset(&mut self, code: u64) {
        let mut write = self.write.lock().unwrap();
        if !write.is_finished && write.reset.is_none() {
            write.reset = Some(code);
        }
        write.wake();
        drop(write);
        let mut read = self.read.lock().unwrap();
        if !read.is_finished && read.stopped.is_none() {
            read.stopped = Some(code);
        }
        read.wake();
    }

    async fn finished(&mut self) -> io::Result<()> {
        core::future::poll_fn(|context| {
            let mut pipe = self.write.lock().unwrap();
            if pipe.is_lost {
                return Poll::Ready(Err(lost()));
            }
            if pipe.is_finished && pipe.data.is_empty() { Poll::Ready(Ok(())) } else { pipe.wait(context) }
        })
        .await
    }
}

/// How many messages wait for the peer.
const MESSAGES_MAX: usize = 256;

/// As long as those of the transport.
const MESSAGE_BYTES_MAX: usize = 65_535;

struct Common {
    pipes: Mutex<Vec<Shared>>,
    lost: watch::Sender<bool>,
    held: watch::Sender<bool>,
    handshaking: watch::Sender<bool>,
    /// Streams accepted so far. The other end learns of each, as if by an acknowledgement.
    accepted: AtomicU64,
}

/// One end of a connection in memory.
#[derive(Clone)]
pub(crate) struct Connection {
    common: Arc<Common>,
    to_peer: mpsc::UnboundedSender<Stream>,
    from_peer: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Stream>>>,
    peer: String,
    to_mailbox: mpsc::Sender<Vec<u8>>,
    mailbox: Arc<tokio::sync::Mutex<mpsc::Receiver<Vec<u8>>>>,
    /// The longest message that the peer takes.
    message_size_max: Option<usize>,
}

/// Two ends of a connection: the client's and the server's.
pub(crate) fn connection_pair() -> (Connection, Connection) {
    connection_pair_of("client")
}

/// The same; the server's end knows the client by this name.
pub(crate) fn connection_pair_of(client: &str) -> (Connection, Connection) {
    let common = Arc::new(Common {
        pipes: Mutex::default(),
        lost: watch::channel(false).0,
        held: watch::channel(false).0,
        handshaking: watch::channel(false).0,
        accepted: AtomicU64::new(0),
    });
    let (to_server, from_client) = mpsc::unbounded_channel();
    let (to_client, from_server) = mpsc::unbounded_channel();
    let (to_servers_mailbox, servers_mailbox) = mpsc::channel(MESSAGES_MAX);
    let (to_clients_mailbox, clients_mailbox) = mpsc::channel(MESSAGES_MAX);
    let end = |to_peer, from_peer, (to_mailbox, mailbox), peer: &str| Connection {
        common: common.clone(),
        to_mailbox,
        mailbox: Arc::new(tokio::sync::Mutex::new(mailbox)),
        message_size_max: Some(MESSAGE_BYTES_MAX),
        to_peer,
        from_peer: Arc::new(tokio::sync::Mutex::new(from_peer)),
        peer: peer.to_owned(),
    };
    let client_end = end(to_server, from_server, (to_servers_mailbox, clients_mailbox), "server");
    (client_end, end(to_client, from_client, (to_clients_mailbox, servers_mailbox), client))
}

impl Connection {
    /// Simulates the loss of the path: every stream of both ends fails after the data that has arrived.
    pub(crate) fn lose(&self) {
        self.common.lost.send_replace(true);
        for pipe in self.common.pipes.lock().unwrap().iter() {
            let mut pipe = pipe.lock().unwrap();
            pipe.is_lost = true;
            pipe.wake();
        }
    }

    /// Simulates a peer that takes no messages, or only shorter ones.
    pub(crate) fn with_message_size_max(mut self, message_size_max: Option<usize>) -> Self {
        self.message_size_max = message_size_max;
        self
    }

    /// Simulates a connection by a ticket, whose handshake is incomplete for a while.
    pub(crate) fn set_handshaking(&self, is_handshaking: bool) {
        self.common.handshaking.send_replace(is_handshaking);
    }

    fn is_lost(&self) -> bool {
        *self.common.lost.borrow()
    }
}

impl CodedConnection for Connection {
    type Stream = Stream;

    async fn open(&self) -> io::Result<Stream> {
        if self.is_lost() {
            return Err(lost());
        }
        let (near, far) = stream_pair();
        self.common.pipes.lock().unwrap().extend([near.read.clone(), near.write.clone()]);
        self.to_peer.send(far).map_err(|_| lost())?;
        Ok(near)
    }

    async fn accept(&self) -> io::Result<Stream> {
        let mut gone = self.common.lost.subscribe();
        let mut held = self.common.held.subscribe();
        let mut from_peer = self.from_peer.lock().await;
        let next = async {
            let stream = from_peer.recv().await.ok_or_else(lost);
            let _ = held.wait_for(|is_held| !*is_held).await;
            self.common.accepted.fetch_add(1, Relaxed);
            stream
        };
        tokio::select! {
            _ = gone.wait_for(|is_lost| *is_lost) => Err(lost()),
            stream = next => stream,
        }
    }

    async fn established(&self) {
        let _ = self.common.handshaking.subscribe().wait_for(|is_handshaking| !*is_handshaking).await;
    }

    fn send_message(&self, data: &[u8], _deadline: core::time::Duration) -> Result<(), ctcp::MessageError> {
        let longest = self.message_size_max.ok_or(ctcp::MessageError::Unsupported)?;
        if self.is_lost() {
            return Err(ctcp::MessageError::Closed);
        }
        if data.len() > longest {
            return Err(ctcp::MessageError::TooLong);
        }
        self.to_mailbox.try_send(data.to_vec()).map_err(|_| ctcp::MessageError::QueueFull)
    }

    async fn receive_message(&self) -> io::Result<Vec<u8>> {
        let mut gone = self.common.lost.subscribe();
        let mut mailbox = self.mailbox.lock().await;
        tokio::select! {
            _ = gone.wait_for(|is_lost| *is_lost) => Err(lost()),
            message = mailbox.recv() => message.ok_or_else(lost),
        }
    }

    fn message_size_max(&self) -> Option<usize> {
        self.message_size_max
    }

    async fn closed(&self) -> String {
        let mut gone = self.common.lost.subscribe();
        let _ = gone.wait_for(|is_lost| *is_lost).await;
        "the connection is lost".to_owned()
    }

    fn close(&self, _reason: &str) {
        self.lose();
    }

    fn remote(&self) -> String {
        "memory".to_owned()
    }

    fn health(&self) -> PathHealth {
        let received = self.common.accepted.load(Relaxed);
        let rtt = core::time::Duration::from_millis(25);
        PathHealth { rtt, loss: 0.02, received, ..PathHealth::default() }
    }

    fn peer(&self) -> String {
        self.peer.clone()
    }
}

/// A connector that connects to a reverse proxy in memory; the test can lose the last connection.
#[derive(Clone)]
pub(crate) struct InMemory {
    server: Arc<ReverseProxy>,
    client: String,
    last: Arc<Mutex<Option<Connection>>>,
}

impl InMemory {
    pub(crate) fn new(server: Arc<ReverseProxy>) -> Self {
        Self { server, client: "client".to_owned(), last: Arc::default() }
    }

    /// A connector of another client to the same server.
    pub(crate) fn of_client(&self, client: &str) -> Self {
        Self { server: self.server.clone(), client: client.to_owned(), last: Arc::default() }
    }

    pub(crate) fn server(&self) -> &Arc<ReverseProxy> {
        &self.server
    }

    pub(crate) fn lose(&self) {
        self.last.lock().unwrap().as_ref().unwrap().lose();
    }

    /// While it is held, the server accepts no streams.
    pub(crate) fn hold(&self, is_held: bool) {
        self.last.lock().unwrap().as_ref().unwrap().common.held.send_replace(is_held);
    }
}

impl Connector for InMemory {
    type Connection = Connection;

    fn server(&self) -> String {
        "server.example:4433".to_owned()
    }

    async fn connect(&self) -> Result<Connection, ConnectFailure> {
        let (near, far) = connection_pair_of(&self.client);
        let server = self.server.clone();
        tokio::spawn(async move { server.serve_connection(far).await });
        *self.last.lock().unwrap() = Some(near.clone());
        Ok(near)
    }
}
