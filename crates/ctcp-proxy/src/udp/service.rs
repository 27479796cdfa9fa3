//! UDP at the server: admits associations.

use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::warn;

use super::association::{Association, NOTICES_MAX};
use super::names::NAMES_MAX;
use super::rate::{ClientRate, Rates};
use super::router::Entry;
use super::{Router, UdpLimits};
use crate::address::TargetAddress;
use crate::coded::CodedConnection;
use crate::counters::Counters;
use crate::dial::Dialer;
use crate::failures::Failures;
use crate::request::{Associate, Notice, ReplyCode};
use crate::seldom::{Seldom, WARNING_PAUSE};
use crate::shares::{Place, Shares, Taken};

/// What all associations of a server share.
pub(crate) struct UdpService {
    pub(super) limits: UdpLimits,
    pub(super) dialer: Arc<Dialer>,
    pub(super) counters: Arc<Counters>,
    pub(super) refused: Arc<Failures>,
    shares: Shares,
    rates: Rates,
    full: Seldom,
}

/// An association that was admitted.
pub(crate) struct Admitted<C> {
    pub(super) association: Arc<Association<C>>,
    pub(super) lookups: mpsc::Receiver<TargetAddress>,
    pub(super) notices: mpsc::Receiver<Notice>,
    pub(super) _entry: Entry,
    pub(super) _place: Place,
}

impl UdpService {
    pub(crate) fn new(
        limits: UdpLimits,
        dialer: Arc<Dialer>,
        counters: Arc<Counters>,
        refused: Arc<Failures>,
    ) -> Self {
        let shares = Shares::new(limits.associations, limits.associations_per_client);
        let (rates, full) = (Rates::new(limits), Seldom::new(WARNING_PAUSE));
        Self { limits, dialer, counters, refused, shares, rates, full }
    }

    pub(super) fn rate(&self, client: &str) -> Arc<ClientRate> {
        self.rates.of(client)
    }

    /// Admits an association, whose messages `router` delivers; or returns the reply for the client.
    pub(crate) fn admit<C: CodedConnection>(
        self: &Arc<Self>,
        connection: &C,
        router: &Arc<Router>,
        asked: Associate,
    ) -> Result<Admitted<C>, (ReplyCode, &'static str)> {
        if connection.message_size_max().is_none() {
            return Err((ReplyCode::CommandNotSupported, "this connection carries no messages"));
        }
        let place = self.shares.place_now(&connection.peer()).map_err(|taken| {
            let text = match taken {
                Taken::Share => "this client has too many UDP associations",
                Taken::All => "the server has too many UDP associations",
            };
            if let Some(suppressed) = self.full.is_due() {
                warn!(suppressed, "an association is refused: {text}");
            }
            (ReplyCode::TooManyStreams, text)
        })?;
        let granted = Associate { full_cone: asked.full_cone && self.limits.full_cone, ..asked };
        let (lookups_sender, lookups) = mpsc::channel(NAMES_MAX);
        let (notices_sender, notices) = mpsc::channel(NOTICES_MAX);
        let association =
            Association::new(self.clone(), connection.clone(), granted, (lookups_sender, notices_sender));
        let association = Arc::new(association);
        let receiver = association.clone();
        let receiver = Arc::new(move |message: Vec<u8>| receiver.on_message(&message));
        let entry = router.enter(asked.number, receiver, &self.counters.udp);
        let entry = entry.ok_or((ReplyCode::BadRequest, "an association of this number is open"))?;
        Ok(Admitted { association, lookups, notices, _entry: entry, _place: place })
    }
}
