//! What the HTTP proxy asks of a forward proxy, and what its status page shows.

use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::time::{Instant, sleep};

use super::ForwardProxy;
use crate::address::TargetAddress;
use crate::coded::CodedConnection;
use crate::counters::Counters;
use crate::http_proxy::{self, LocalStatus, ServerStatus};
use crate::link::{Connector, FailureKind, LinkError, LinkState, Opened};
use crate::pulse::{self, Look, Pulse};
use crate::request::Request;
use crate::unanswered::Unanswered;

impl<K: Connector> ForwardProxy<K> {
    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Samples the link periodically for the status page.
    pub(super) async fn watch_link(&self) {
        let mut last_error = None;
        loop {
            let connection = match &*self.link.state().borrow() {
                LinkState::Connected { connection, number } => {
                    last_error = None;
                    Some((*number, connection.clone()))
                }
                LinkState::Connecting { last_error: error, .. } => {
                    if let Some(error) = error.as_ref().filter(|error| last_error.as_ref() != Some(*error)) {
                        self.failures.note_server(error);
                        last_error = Some(error.clone());
                    }
                    None
                }
            };
            let connection = connection.map(|(number, connection)| (number, connection.health()));
            let counters = self.link.counters();
            let (downstream, upstream) = (counters.downstream.value(), counters.upstream.value());
            self.pulse().on_look(Look { at: Instant::now(), connection, downstream, upstream });
            sleep(pulse::INTERVAL).await;
        }
    }

    fn server_status(&self) -> ServerStatus {
        let (connection, last_error, has_answered) = match &*self.link.state().borrow() {
            LinkState::Connected { connection, .. } => (Some(connection.clone()), None, false),
            LinkState::Connecting { last_error, kind, .. } => {
                (None, last_error.clone(), *kind > FailureKind::NoAnswer)
            }
        };
        let mut address = self.link.server().to_owned();
        if let Some(remote) = connection.as_ref().map(CodedConnection::remote).filter(|at| *at != address) {
            address = format!("{address} (now at {remote})");
        }
        let pulse = self.pulse();
        let (downstream, upstream) = pulse.rates();
        ServerStatus {
            address,
            is_connected: connection.is_some(),
            last_error,
            has_answered,
            silent: pulse.silent(),
            path: connection.as_ref().map(CodedConnection::health),
            paths: connection.map(|connection| connection.paths()).unwrap_or_default(),
            downstream,
            upstream,
        }
    }
}

impl<K: Connector> http_proxy::Proxy for ForwardProxy<K> {
    type Connection = K::Connection;

    async fn connect(&self, target: &TargetAddress) -> Result<Opened<K::Connection>, LinkError> {
        Self::connect(self, target).await
    }

    async fn open(
        &self,
        target: &TargetAddress,
    ) -> Result<Unanswered<<K::Connection as CodedConnection>::Stream>, LinkError> {
        if !self.greets_at_once(target).await? {
            return self.connect(target).await.map(|opened| Unanswered::answered(opened.stream));
        }
        self.link.counters().streams_total.add(1);
        let opened = self.link.request_unanswered(&Request::Connect(target.clone())).await;
        opened.inspect_err(|error| self.on_unreached(target, error))
    }

    async fn greets_at_once(&self, target: &TargetAddress) -> Result<bool, LinkError> {
        Self::greets_at_once(self, target).await
    }

    fn on_unreached(&self, target: &TargetAddress, error: &LinkError) {
        self.count_failure(error);
        self.note(target, error);
    }

    fn on_failed(&self, target: &TargetAddress, reason: &str) {
        self.failures.note(&target.to_string(), reason);
    }

    fn status(&self) -> LocalStatus {
        let counters = self.link.counters();
        let numbers = vec![
            ("connections being carried", counters.streams_open.value()),
            ("connections so far", counters.streams_total.value()),
            ("of these failed", counters.streams_failed.value()),
            ("connections to the server so far", counters.connections_total.value()),
        ];
        LocalStatus {
            server: self.server_status(),
            socks5: self.socks5.get().copied(),
            numbers,
            from_targets: counters.downstream.value(),
            to_targets: counters.upstream.value(),
            failed: self.failures.last(),
        }
    }

    fn counters(&self) -> &Arc<Counters> {
        self.link.counters()
    }
}
