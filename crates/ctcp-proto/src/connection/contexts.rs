//! The contexts of a connection: that of the streams, and the others once they are used.

use super::negotiation::Negotiated;
use super::relayed::{Carriage, HopRepair};
use crate::code::{Choice, Code, CodedReceiver, CodedSender, RELAYED_SPAN_MAX, RelayBuffer, thrifty_sliding};
use crate::config::TransportConfig;
use crate::error::TransportError;
use crate::id::{ContextId, Role};
use crate::scheme;

/// Both halves of a context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) sender: CodedSender,
    pub(crate) receiver: CodedReceiver,
}

/// What the contexts other than that of the streams are made from.
#[derive(Clone, Copy, Debug)]
struct Plan {
    symbol_size: usize,
    window: u64,
    peer_window: u64,
    /// The largest number of symbols that this side keeps for the peer.
    kept_max: u64,
    setup: scheme::Setup,
}

/// All contexts of a connection.
#[derive(Debug)]
pub(crate) struct Contexts {
    streams: Context,
    /// The others, in the order of their numbers.
    others: [Option<Box<Context>>; ContextId::ALL.len() - 1],
    plan: Plan,
    /// How relayed datagrams are handled, once that is known.
    carriage: Option<Carriage>,
}

impl Contexts {
    pub(crate) fn new(role: Role, config: &TransportConfig, negotiated: &Negotiated) -> Self {
        let (profile, limits) = (negotiated.profile, negotiated.code);
        let setup = scheme::Setup {
            redundancy: profile.redundancy,
            limits,
            window_max: config.congestion_window_max,
        };
        let scheme = profile.code.make(&setup);
        let window = usize::try_from(negotiated.window).unwrap_or(usize::MAX);
        let (symbol_size, length_max) = (negotiated.symbol_size_max, limits.block_size);
        let id = ContextId::Streams;
        let (sender, receiver) = match &config.coding {
            None => (
                CodedSender::new(id, scheme, symbol_size, window, negotiated.peer_window),
                CodedReceiver::new(
                    id,
                    profile.code,
                    symbol_size,
                    window,
                    length_max,
                    config.coding_window as usize,
                ),
            ),
            Some(coding) => (
                CodedSender::with_encoder(id, scheme, coding.encoder(role), coding.peer_window()),
                CodedReceiver::with_decoder(id, coding.decoder(role), symbol_size, length_max),
            ),
        };
        let redundancy = if Code::SLIDING.takes(&profile.redundancy) {
            profile.redundancy
        } else {
            crate::Redundancy::FROM_LOSS
        };
        let plan = Plan {
            symbol_size,
            window: negotiated.context_window,
            // A scheme that admits its own packets knows nothing of those of other contexts.
            peer_window: if sender.scheme().is_unpaced() { 0 } else { negotiated.peer_context_window },
            kept_max: u64::from(config.coding_window),
            setup: scheme::Setup { redundancy, ..setup },
        };
        Self { streams: Context { sender, receiver }, others: [None, None, None], plan, carriage: None }
    }

    /// Whether this side may send in the context `id`.
    pub(crate) fn takes(&self, id: ContextId) -> bool {
        let is_asked = id != ContextId::Relayed || self.carriage.is_some();
        id == ContextId::Streams || is_asked && self.plan.peer_window > 0
    }

    /// Whether the peer may lack what a copy carries, and this side still has it.
    pub(super) fn needs_copy(&self, id: ContextId, copy: Choice) -> bool {
        self.get(id).is_some_and(|context| context.sender.is_copy_needed(copy))
    }

    /// A context that has been used. That of the streams always has.
    pub(crate) fn get(&self, id: ContextId) -> Option<&Context> {
        match id {
            ContextId::Streams => Some(&self.streams),
            _ => self.others[place(id)].as_deref(),
        }
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, id: ContextId) -> Option<&mut Context> {
        match id {
            ContextId::Streams => Some(&mut self.streams),
            _ => self.others[place(id)].as_deref_mut(),
        }
    }

    /// A context to send in, which [`Self::takes`] allows, or one that the peer uses. It is made at its first use.
    pub(crate) fn open(&mut self, id: ContextId) -> &mut Context {
        match id {
            ContextId::Streams => &mut self.streams,
            _ => self.others[place(id)]
                .get_or_insert_with(|| Box::new(self.plan.context(id, self.carriage.as_ref()))),
        }
    }

    /// The context of a combination that the peer sent.
    pub(crate) fn open_for_peer(&mut self, id: ContextId) -> Result<&mut Context, TransportError> {
        let is_asked = id != ContextId::Relayed || self.carriage.is_some();
        if id != ContextId::Streams && (self.plan.window == 0 || !is_asked) {
            return Err(TransportError::violation("combination in a context that was not granted"));
        }
        Ok(self.open(id))
    }

    /// Begins to handle relayed datagrams.
    pub(crate) fn carry(&mut self, carriage: Carriage) {
        self.carriage.get_or_insert(carriage);
        self.open(ContextId::Relayed);
    }

    /// The buffer for what arrives, if this side relays it.
    pub(crate) fn relay_buffer(&self) -> Option<&RelayBuffer> {
        match &self.carriage {
            Some(Carriage::Relay { incoming, .. }) => Some(incoming),
            _ => None,
        }
    }

    /// The context of the streams.
    pub(crate) fn streams(&self) -> &Context {
        &self.streams
    }

    /// The same, to be changed.
    pub(crate) fn streams_mut(&mut self) -> &mut Context {
        &mut self.streams
    }

    /// All contexts that have been used.
    pub(crate) fn used(&self) -> impl Iterator<Item = &Context> {
        core::iter::once(&self.streams).chain(self.others.iter().flatten().map(|context| &**context))
    }

    /// The same with their ids.
    pub(crate) fn used_with_ids(&self) -> impl Iterator<Item = (ContextId, &Context)> {
        ContextId::ALL.into_iter().filter_map(|id| Some((id, self.get(id)?)))
    }

    /// The same, to be changed.
    pub(crate) fn used_mut(&mut self) -> impl Iterator<Item = (ContextId, &mut Context)> {
        let others = self.others.iter_mut().map(|context| context.as_deref_mut());
        let all = core::iter::once(Some(&mut self.streams)).chain(others);
        ContextId::ALL.into_iter().zip(all).filter_map(|(id, context)| Some((id, context?)))
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        self.used().map(|context| context.sender.memory() + context.receiver.memory()).sum()
    }

    /// Frees memory kept for reuse.
    pub(crate) fn shrink(&mut self) {
        for (_, context) in self.used_mut() {
            context.sender.shrink();
            context.receiver.shrink();
        }
    }
}

impl Plan {
    fn context(&self, id: ContextId, carriage: Option<&Carriage>) -> Context {
        let carriage = carriage.filter(|_| id == ContextId::Relayed);
        if let Some(Carriage::Relay { incoming, outgoing, repair }) = carriage {
            let combines = *repair == HopRepair::Combinations;
            return Context {
                sender: CodedSender::of_relay(id, outgoing.clone(), self.peer_window, combines),
                receiver: CodedReceiver::of_relay(id, incoming.clone(), self.symbol_size),
            };
        }
        let window = usize::try_from(self.window).unwrap_or(usize::MAX);
        let kept = usize::try_from(self.peer_window.min(self.kept_max)).unwrap_or(usize::MAX);
        let (code, mut setup) = (Code::SLIDING, self.setup);
        let mut scheme = None;
        if let Some(Carriage::End { repair }) = carriage {
            setup.limits.block_size = setup.limits.block_size.min(RELAYED_SPAN_MAX);
            if *repair == HopRepair::Repetitions {
                setup.redundancy = crate::Redundancy::FEEDBACK;
                scheme = Some(Code::PLAIN.make(&setup));
            } else {
                setup.redundancy = crate::Redundancy::FROM_LOSS;
                scheme = Some(thrifty_sliding(&setup));
            }
        }
        let length_max = setup.limits.block_size;
        let is_relayed = scheme.is_some();
        let scheme = scheme.unwrap_or_else(|| code.make(&setup));
        let sender = CodedSender::new(id, scheme, self.symbol_size, kept, self.peer_window);
        Context {
            sender: if is_relayed { sender.patient() } else { sender },
            receiver: CodedReceiver::new(id, code, self.symbol_size, window, length_max, window),
        }
    }
}

fn place(id: ContextId) -> usize {
    id as usize - 1
}
