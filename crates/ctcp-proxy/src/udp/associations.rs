//! The associations of a forward proxy.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use ctcp::MessageError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;
use tracing::warn;

use super::router::{Entry, Receiver};
use super::{Deadline, Router, UdpOptions};
use crate::client::ForwardProxy;
use crate::coded::CodedConnection;
use crate::counters::{Counters, DropReason};
use crate::link::{Connector, LinkError, LinkState, Opened};
use crate::request::{Associate, Notice, Reply, ReplyCode, Request};
use crate::seldom::{Seldom, WARNING_PAUSE};

/// What the associations of a forward proxy share.
pub(crate) struct Associations {
    pub(super) options: UdpOptions,
    router: Arc<Router>,
    /// The next number. It continues over connections, so a late message never reaches a newer association.
    next: AtomicU32,
    slots: Arc<Semaphore>,
    /// Delivers the messages of the link's connections. Runs once there is an association.
    pump: OnceLock<Pump>,
    full: Seldom,
    narrow: Seldom,
}

struct Pump(AbortHandle);

impl Drop for Pump {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends the datagrams of an association.
pub(super) struct Outlet<C> {
    number: u32,
    connection: C,
    counters: Arc<Counters>,
    deadline: Deadline,
}

/// An open association. It ends when this is dropped.
pub(super) struct Association<C: CodedConnection> {
    pub(super) outlet: Arc<Outlet<C>>,
    stream: C::Stream,
    _entry: Entry,
    _slot: OwnedSemaphorePermit,
}

impl Associations {
    pub(crate) fn new(options: UdpOptions, limit: usize) -> Self {
        Self {
            options,
            router: Arc::default(),
            next: AtomicU32::new(1),
            slots: Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS))),
            pump: OnceLock::new(),
            full: Seldom::new(WARNING_PAUSE),
            narrow: Seldom::new(WARNING_PAUSE),
        }
    }
}

impl<C: CodedConnection> Outlet<C> {
    /// Sends a message whose first four bytes are free for the number; `bytes` of it are the datagram.
    pub(super) fn send(&self, message: &mut [u8], bytes: usize) {
        message[..4].copy_from_slice(&self.number.to_be_bytes());
        let udp = &self.counters.udp;
        match self.connection.send_message(message, self.deadline.of(&self.connection)) {
            Ok(()) => udp.on_upstream(bytes),
            Err(MessageError::QueueFull) => {
                udp.on_dropped(DropReason::Full, "the connection's queue is full");
            }
            Err(MessageError::TooLong) => {
                udp.on_dropped(DropReason::TooLong, format_args!("{bytes} bytes to the server"));
            }
            Err(_) => udp.on_dropped(DropReason::Unknown, "the connection is gone"),
        }
    }
}

impl<K: Connector> ForwardProxy<K> {
    /// Opens an association, whose messages `receiver` gets. `single`: all datagrams have the same target. `on_asked`
    /// gets an outlet that can be used before the reply; if the connection changes meanwhile, it gets another one.
    pub(super) async fn associate(
        &self,
        single: bool,
        receiver: Arc<Receiver>,
        on_asked: impl FnMut(Arc<Outlet<K::Connection>>),
    ) -> Result<Association<K::Connection>, LinkError> {
        let (udp, counters) = (&self.udp, self.link().counters());
        counters.streams_total.add(1);
        let opened = self.try_associate(single, receiver, on_asked).await.map_err(|error| match error {
            LinkError::Refused(reply) if reply.code == ReplyCode::CommandNotSupported => {
                unsupported(&reply.to_string())
            }
            error => error,
        });
        let (association, granted) = opened.inspect_err(|error| self.on_failure("udp", error))?;
        if udp.options.full_cone
            && !granted.full_cone
            && !single
            && let Some(suppressed) = udp.narrow.is_due()
        {
            warn!(suppressed, "the server grants no --udp-full-cone: only contacted targets can answer");
        }
        Ok(association)
    }

    async fn try_associate(
        &self,
        single: bool,
        receiver: Arc<Receiver>,
        mut on_asked: impl FnMut(Arc<Outlet<K::Connection>>),
    ) -> Result<(Association<K::Connection>, Associate), LinkError> {
        let (udp, link) = (&self.udp, self.link());
        let counters = link.counters();
        let Ok(slot) = udp.slots.clone().try_acquire_owned() else {
            if let Some(suppressed) = udp.full.is_due() {
                warn!(suppressed, "the limit of UDP associations is reached");
            }
            let reply = Reply::failure(ReplyCode::TooManyStreams, "this proxy has too many UDP associations");
            return Err(LinkError::Refused(reply));
        };
        udp.pump.get_or_init(|| {
            let pump = pump(link.state(), udp.router.clone(), link.counters().clone());
            Pump(tokio::spawn(pump).abort_handle())
        });
        let asked = Associate {
            number: udp.next.fetch_add(1, Relaxed),
            full_cone: udp.options.full_cone && !single,
            single,
        };
        let Some(entry) = udp.router.enter(asked.number, receiver, &counters.udp) else {
            let reply = Reply::failure(ReplyCode::GeneralFailure, "the numbers of associations are used up");
            return Err(LinkError::Refused(reply)); // after 2^32 associations
        };
        let outlet = |connection: &K::Connection| {
            let (connection, counters) = (connection.clone(), link.counters().clone());
            Arc::new(Outlet { number: asked.number, connection, counters, deadline: Deadline::default() })
        };
        let on_asked = |connection: &K::Connection| on_asked(outlet(connection));
        let Opened { stream, connection, reply } =
            link.request_and(&Request::Associate(asked), on_asked).await?;
        let granted = asked.granted(&reply)?;
        if connection.message_size_max().is_none() {
            return Err(unsupported("its connection carries no messages"));
        }
        Ok((Association { outlet: outlet(&connection), stream, _entry: entry, _slot: slot }, granted))
    }

    /// Reads the notices of the server and passes them on, until the association ends.
    pub(super) async fn watch(
        &self,
        association: &mut Association<K::Connection>,
        mut on_notice: impl FnMut(&Notice),
    ) {
        while let Ok(notice) = Notice::read(&mut association.stream).await {
            let counters = self.link().counters();
            counters.targets_refused.add(u64::from(notice.code == ReplyCode::NotAllowed));
            self.on_refused(&format!("udp:{}", notice.target), &notice.text);
            on_notice(&notice);
        }
    }
}

fn unsupported(why: &str) -> LinkError {
    let text = format!("the server does not carry UDP: {why}");
    LinkError::Refused(Reply::failure(ReplyCode::CommandNotSupported, &text))
}

/// Delivers the messages of each connection of the link.
async fn pump<C: CodedConnection>(
    mut state: watch::Receiver<LinkState<C>>,
    router: Arc<Router>,
    counters: Arc<Counters>,
) {
    loop {
        let connection = match &*state.borrow_and_update() {
            LinkState::Connected { connection, .. } => Some(connection.clone()),
            LinkState::Connecting { .. } => None,
        };
        if let Some(connection) = connection {
            router.pump(&connection, &counters.udp).await;
        }
        if state.changed().await.is_err() {
            return;
        }
    }
}
