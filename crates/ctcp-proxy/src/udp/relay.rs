//! The relay of a SOCKS5 UDP association (RFC 1928 section 7).
//!
//! ```text
//!  datagram   00 00 FRAG atyp addr port data      between the program and the relay
//!  message    number (32) kind addr port data     between the proxies: the same from the fourth byte on
//! ```
//!
//! A relay is a UDP socket on the address that the program reached with TCP. It takes datagrams only from the address at
//! the other end of that connection: from the port that the program declared, or else from the first port that sends a
//! valid datagram. Whoever forges that address can make the association useless for its program, which then opens
//! another one, but gets no answers to another port, and cannot divert those of a program that has sent before.
//!
//! The association ends with its TCP connection, and the TCP connection is closed when the association ends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use tokio::net::{TcpStream, UdpSocket};
use tracing::debug;

use super::associations::Outlet;
use super::{BATCH, DATAGRAM_BYTES_MAX, bind, plain, send_answer};
use crate::address::UNSPECIFIED;
use crate::client::{ForwardProxy, close_gently};
use crate::coded::CodedConnection;
use crate::counters::{Counters, DropReason};
use crate::link::Connector;
use crate::request::{HeadError, ReplyCode, split_datagram};
use crate::socks5::write_reply;

/// Where FRAG is in a datagram, and in a buffer with one more byte in front, for the number.
const FRAGMENT_AT: usize = 2;

/// Why a datagram of a program is dropped.
#[derive(Debug, thiserror::Error)]
enum DatagramError {
    #[error("the datagram ends inside its header")]
    Short,
    #[error("fragments are not supported")]
    Fragment,
    #[error(transparent)]
    Address(#[from] HeadError),
}

/// Checks the header of a SOCKS5 datagram and returns how many bytes of data follow it. The first two bytes are
/// reserved and ignored.
fn check_datagram(datagram: &[u8]) -> Result<usize, DatagramError> {
    let fragment = *datagram.get(FRAGMENT_AT).ok_or(DatagramError::Short)?;
    if fragment != 0 {
        return Err(DatagramError::Fragment);
    }
    let (_, data) = split_datagram(&datagram[FRAGMENT_AT + 1..])?;
    Ok(data.len())
}

struct Relay {
    socket: UdpSocket,
    counters: Arc<Counters>,
    /// The program's address, as the TCP connection shows it.
    ip: IpAddr,
    /// The port that the program declared; 0 if none.
    declared: u16,
    /// Where the program sends from, once it has sent a valid datagram.
    program: OnceLock<SocketAddr>,
}

impl Relay {
    fn is_program(&self, from: SocketAddr) -> bool {
        let is_declared = self.declared == 0 || self.declared == from.port();
        plain(from).ip() == self.ip && is_declared && self.program.get().is_none_or(|known| *known == from)
    }

    /// Carries the datagrams that wait in the socket.
    fn carry<C: CodedConnection>(&self, outlet: &Outlet<C>) {
        let mut message = Vec::with_capacity(1 + DATAGRAM_BYTES_MAX);
        for _ in 0..BATCH {
            message.clear();
            message.push(0);
            let from = match self.socket.try_recv_buf_from(&mut message) {
                Ok((_, from)) => from,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => continue, // an ICMP message about an answer
            };
            let udp = &self.counters.udp;
            if !self.is_program(from) {
                udp.on_dropped(DropReason::Sender, format_args!("{from} does not own the association"));
                continue;
            }
            match check_datagram(&message[1..]) {
                Ok(bytes) => {
                    let _ = self.program.set(from);
                    outlet.send(&mut message, bytes);
                }
                Err(error @ DatagramError::Fragment) => udp.on_dropped(DropReason::Fragment, error),
                Err(error) => udp.on_dropped(DropReason::Malformed, error),
            }
        }
    }

    /// Sends an answer to the program.
    fn answer(&self, mut message: Vec<u8>) {
        let udp = &self.counters.udp;
        let bytes = match message.get(4..).map(split_datagram) {
            Some(Ok((_, data))) => data.len(),
            _ => return udp.on_dropped(DropReason::Malformed, "a message of the server"),
        };
        let Some(program) = self.program.get() else {
            return udp.on_dropped(DropReason::Unknown, "the program has not sent anything");
        };
        message[..4].fill(0);
        send_answer(&self.socket, &message[1..], bytes, *program, udp);
    }
}

impl<K: Connector> ForwardProxy<K> {
    /// Serves a UDP association until the application's TCP connection or the association ends.
    pub(crate) async fn serve_association(
        &self,
        mut application: TcpStream,
        declared: u16,
    ) -> io::Result<()> {
        let mut local = application.local_addr()?;
        local.set_port(0);
        if local.ip().to_canonical().is_ipv4() {
            local = plain(local);
        }
        let relay = bind(local).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (bound, socket) = match relay {
            Ok(bound) => bound,
            Err(error) => {
                write_reply(&mut application, ReplyCode::GeneralFailure, UNSPECIFIED).await?;
                close_gently(application).await;
                return Err(error);
            }
        };
        let (counters, ip) = (self.link().counters().clone(), plain(application.peer_addr()?).ip());
        let relay = Arc::new(Relay { socket, counters, ip, declared, program: OnceLock::new() });
        let receiver = relay.clone();
        let receiver = Arc::new(move |message| receiver.answer(message));
        let opened = self.associate(false, receiver, |_| {}).await;
        let mut association = match opened {
            Ok(association) => association,
            Err(error) => {
                write_reply(&mut application, error.code(), UNSPECIFIED).await?;
                close_gently(application).await;
                return Ok(());
            }
        };
        let _present = relay.counters.udp.associations.enter();
        let advertised = SocketAddr::new(self.udp.options.advertise.unwrap_or(bound.ip()), bound.port());
        write_reply(&mut application, ReplyCode::Succeeded, advertised).await?;
        debug!(%advertised, "a UDP association is open");
        let outlet = association.outlet.clone();
        let carry = async {
            while relay.socket.readable().await.is_ok() {
                relay.carry(&outlet);
                tokio::task::coop::consume_budget().await;
            }
        };
        // Nothing more belongs on this connection; what comes is dropped.
        let mut nowhere = tokio::io::sink();
        let control = tokio::io::copy(&mut application, &mut nowhere);
        tokio::select! {
            () = carry => {}
            () = self.watch(&mut association, |_| {}) => {}
            _ = control => {}
        }
        Ok(())
    }
}
