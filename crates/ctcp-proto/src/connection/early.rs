//! Early data: what a client with a ticket sends before the RESPONSE (PROTOCOL.md section 3.3).
//!
//! ```text
//!  client                                                server
//!    INITIATE (token: ticket), its part     ------->     proves the address; the ticket is spent
//!    EARLY 0, 1, .. (symbols)               ------->     their frames go to the streams, as those of any symbol
//!                                           <-------     RESPONSE, its part, and packets: nothing waits for the client's first
//!    everything again, as combinations      ------->     what arrived early is not news
//! ```
//!
//! Early data is a copy. It needs no acknowledgement and no repair: what was written early is sent once more under the connection's keys,
//! coded like everything else. So a server may ignore early data at any time. It costs a few packets per visit.

use super::{Connection, Established, State, TransportError};
use crate::config::TransportConfig;
use crate::crypto::{EarlyKey, TICKET_LIFETIME, Ticket, TicketKey};
use crate::id::{ConnectionId, Role, StreamId};
use crate::network::NetworkPath;
use crate::stream::Streams;
use crate::wire::{
    DATAGRAM_SIZE_MIN, DatagramBuilder, FIRST_PACKET_TAG_LENGTH, Frame, LongHeader, NewTicket, StreamFrame,
    SymbolBuilder, TAG_LENGTH,
};

use ctcp_base::Instant;

use super::contents::Contents;

/// Maximum number of datagrams with early data. With those of the INITIATE they are within the initial window of a connection.
pub(super) const DATAGRAMS_MAX: usize = 4;

/// How many streams a server lets a client open before the handshake is complete, if its settings allow them. Lack of memory never makes a
/// connection's first limit smaller ([`TransportConfig::within`]).
const STREAMS: u64 = 4;

/// How long a ticket is shown before it is replaced. Half its lifetime, so that a client that leaves has hours to come back.
const RENEWAL: core::time::Duration = TICKET_LIFETIME.checked_div(2).expect("two is not zero");

/// The largest symbol that fits into a datagram of the smallest size.
const SYMBOL_MAX: usize =
    DATAGRAM_SIZE_MIN - (1 + 4 + 2 * (1 + ConnectionId::MAX) + 1 + TAG_LENGTH + FIRST_PACKET_TAG_LENGTH);

/// Whether the first limits of connections with this configuration have room for early data, so that tickets are of use.
pub(crate) fn has_room_for_early_data(config: &TransportConfig) -> bool {
    let credit = config.connection_credit.min(config.stream_credit);
    config.streams > 0 && credit >= (DATAGRAMS_MAX * SYMBOL_MAX) as u64
}

/// The streams of a client with a ticket during the handshake, and the copies of what it wrote to them.
pub(crate) struct EarlyFlight {
    key: EarlyKey,
    pub(super) streams: Streams,
    /// How far each stream was copied.
    copied: Vec<(StreamId, u64)>,
    symbol: SymbolBuilder,
    /// The sealed symbols, which are repeated with the INITIATE.
    sealed: Vec<Vec<u8>>,
    /// A stream asked for low latency.
    pub(super) wants_lane: bool,
}

impl EarlyFlight {
    /// `message` is Noise message 1, `streams` those of the connection.
    pub(crate) fn new(ticket: &Ticket, message: &[u8], mut streams: Streams) -> Self {
        streams.allow_early(ticket.streams());
        Self {
            key: ticket.early_key(message),
            streams,
            copied: Vec::new(),
            symbol: SymbolBuilder::new(SYMBOL_MAX),
            sealed: Vec::new(),
            wants_lane: false,
        }
    }

    /// Copies what was written to a stream, as far as there is room.
    pub(super) fn copy(&mut self, id: StreamId, mut data: &[u8], fin: bool) {
        let index = self.copied.iter().position(|(other, _)| *other == id).unwrap_or_else(|| {
            self.copied.push((id, 0));
            self.copied.len() - 1
        });
        let mut offset = self.copied[index].1;
        // What does not continue the copy is not copied.
        if self.streams.written(id) != Some(offset + data.len() as u64) {
            return;
        }
        while self.sealed.len() < DATAGRAMS_MAX {
            let room = self.symbol.max_data_length(id, offset);
            if let Some(room) = room.filter(|&room| room > 0 || data.is_empty()) {
                let (piece, rest) = data.split_at(room.min(data.len()));
                self.symbol.push(StreamFrame { id, offset, data: piece, fin: fin && rest.is_empty() });
                offset += piece.len() as u64;
                data = rest;
                if data.is_empty() {
                    break;
                }
            }
            self.seal();
        }
        self.copied[index].1 = offset;
        self.streams.on_early(id, offset);
    }

    /// Seals the current symbol and begins the next one.
    fn seal(&mut self) {
        let symbol = core::mem::replace(&mut self.symbol, SymbolBuilder::new(SYMBOL_MAX)).finish();
        let index = u8::try_from(self.sealed.len()).expect("there are few");
        self.sealed.push(self.key.seal(index, symbol));
    }

    /// The sealed symbol `index`, if it exists.
    pub(super) fn datagram(&mut self, index: usize) -> Option<&[u8]> {
        if index == self.sealed.len() && !self.symbol.is_empty() {
            self.seal();
        }
        self.sealed.get(index).map(Vec::as_slice)
    }
}

impl core::fmt::Debug for EarlyFlight {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("EarlyFlight").field("sealed", &self.sealed.len()).finish_non_exhaustive()
    }
}

/// What a server knows of a client's early data, and of the ticket for its next visit.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// Opens early data. `None` if the client showed no ticket.
    key: Option<EarlyKey>,
    /// Which datagrams have arrived.
    arrived: [bool; DATAGRAMS_MAX],
    /// Some data has arrived: the client is who it says, and is served although it is not confirmed.
    pub(super) is_accepted: bool,
    /// The application has not been told yet.
    pub(super) is_news: bool,
    /// Seals tickets, if the client wants some.
    tickets: Option<TicketKey>,
    /// When the next ticket is due.
    ticket_due: Option<Instant>,
    /// A ticket that the client received and the application has not taken.
    pub(super) ticket: Option<Ticket>,
    pub(super) is_ticket_news: bool,
}

impl Early {
    pub(super) fn new(key: Option<EarlyKey>, tickets: Option<TicketKey>) -> Self {
        Self { key, tickets, ticket_due: Some(Instant::ZERO), ..Self::default() }
    }

    /// A packet with a NEW_TICKET was lost.
    pub(super) fn on_ticket_lost(&mut self) {
        self.ticket_due = Some(Instant::ZERO);
    }
}

impl Established {
    /// Handles a datagram with early data. It is dropped unless it opens, so anyone may have sent it.
    pub(super) fn handle_early(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        header: LongHeader,
        (index, sealed): (u8, &[u8]),
    ) -> Result<(), TransportError> {
        let is_expected = self.response.is_some()
            && network_path.remote == self.paths.main().network.remote
            && header.source == self.remote_id;
        let arrived = self.early.arrived.get_mut(usize::from(index)).filter(|arrived| !**arrived);
        let (true, Some(arrived), Some(key)) = (is_expected, arrived, &self.early.key) else {
            return Ok(());
        };
        let Some(symbol) = key.open(index, sealed) else {
            self.counts.datagrams_dropped += 1;
            return Ok(());
        };
        *arrived = true;
        self.early.is_news |= !core::mem::replace(&mut self.early.is_accepted, true);
        self.timers.last_activity = now;
        self.streams.on_symbol_decoded(&symbol)
    }

    /// Whether packets may be sent only after the client has proved possession of its key and address.
    pub(super) fn is_gated(&self) -> bool {
        self.response.is_some() && !self.early.is_accepted
    }

    pub(super) fn is_ticket_due(&self, now: Instant) -> bool {
        let is_issuer = self.is_confirmed && self.early.tickets.is_some();
        is_issuer && self.early.ticket_due.is_some_and(|due| due <= now)
    }

    /// Writes a NEW_TICKET if one is due and fits.
    pub(super) fn write_ticket(
        &mut self,
        now: Instant,
        builder: &mut DatagramBuilder,
        contents: &mut Contents,
    ) {
        if !self.is_ticket_due(now) {
            return;
        }
        let (nonce, secret): ([u8; 32], [u8; 32]) = (self.rng.bytes(), self.rng.bytes());
        let nonce = nonce.first_chunk().copied().expect("it is longer");
        let address = self.paths.main().network.remote.ip();
        let Some(key) = &self.early.tickets else { return };
        let token = key.seal(now, nonce, address, &self.peer_key, &secret);
        let streams = STREAMS.min(self.config.streams);
        let frame = NewTicket { lifetime: TICKET_LIFETIME.as_secs(), streams, secret, token: &token };
        let frame = Frame::NewTicket(frame);
        if builder.write_if_it_fits(&frame) {
            contents.ticket = true;
            self.early.ticket_due = Some(now + RENEWAL);
        }
    }

    pub(super) fn on_new_ticket(&mut self, ticket: &NewTicket<'_>) -> Result<(), TransportError> {
        if self.role != Role::Client {
            return Err(TransportError::violation("NEW_TICKET sent by a client"));
        }
        self.early.ticket = Some(Ticket::new(ticket));
        self.early.is_ticket_news = true;
        Ok(())
    }
}

impl Connection {
    /// Takes the newest ticket of the server, see [`crate::TransportConfig::tickets`]. [`crate::Event::TicketReceived`] announces it.
    pub fn take_ticket(&mut self) -> Option<Ticket> {
        match &mut self.state {
            State::Established(established) => established.early.ticket.take(),
            _ => None,
        }
    }

    /// The early flight of a client with a ticket, during the handshake.
    pub(super) fn early_flight(&mut self) -> Option<&mut EarlyFlight> {
        match &mut self.state {
            State::Handshaking(handshake) => handshake.early_mut(),
            _ => None,
        }
    }
}
