//! No coding: every symbol is sent unchanged, and again if it was lost, like selective retransmission in TCP.

use std::collections::BTreeSet;

use ctcp_base::Instant;

use super::{Choice, CodeSpec, Feedback, Scheme, Sent, Situation, WindowOf};
use crate::id::SymbolIndex;

pub(super) static SPEC: CodeSpec = CodeSpec {
    number: 3,
    name: "plain",
    make: |_| Box::new(PlainCode::default()),
    redundancies: &["feedback"],
    window: WindowOf::Packets,
    spans_window: false,
    expires: false,
};

/// The sender half of plain retransmission.
///
/// It stores one number per lost symbol, so its memory is bounded by the coding window.
#[derive(Debug, Default)]
pub(crate) struct PlainCode {
    lost: BTreeSet<SymbolIndex>,
    oldest_undecoded: SymbolIndex,
    next: SymbolIndex,
}

impl Scheme for PlainCode {
    fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        match self.lost.first() {
            Some(&index) => Some(Choice::Again(index)),
            None => (situation.has_data && situation.has_room).then_some(Choice::NewSymbol),
        }
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        (self.oldest_undecoded < self.next).then_some(Choice::Again(self.oldest_undecoded))
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        match choice {
            Choice::NewSymbol => self.next = index + 1,
            Choice::Again(again) => {
                self.lost.remove(&again);
            }
            Choice::Combination { .. } => {}
        }
        situation.sent(index, 1)
    }

    fn on_acked(&mut self, sent: &Sent) {
        self.lost.remove(&sent.first);
    }

    fn on_lost(&mut self, sent: &Sent, _was_expired: bool) {
        if sent.first >= self.oldest_undecoded {
            self.lost.insert(sent.first);
        }
    }

    fn on_expired(&mut self, _sent: &Sent) {}

    fn on_feedback(&mut self, _now: Instant, feedback: &Feedback<'_>) {
        if feedback.oldest_undecoded > self.oldest_undecoded {
            self.oldest_undecoded = feedback.oldest_undecoded;
            self.lost = self.lost.split_off(&self.oldest_undecoded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BULK: Situation = Situation { window: 10.0, ..Situation::BULK };

    #[test]
    fn a_lost_symbol_goes_before_new_ones_and_only_once() {
        let mut code = PlainCode::default();
        for index in 0..3 {
            assert_eq!(code.choose(&BULK), Some(Choice::NewSymbol));
            code.on_sent(Choice::NewSymbol, index, &BULK);
        }
        code.on_lost(&Sent::new(1, 1), false);
        assert_eq!(code.choose(&BULK), Some(Choice::Again(1)));
        code.on_sent(Choice::Again(1), 1, &BULK);
        assert_eq!(code.choose(&BULK), Some(Choice::NewSymbol));
    }

    #[test]
    fn decoded_symbols_are_not_sent_again() {
        let mut code = PlainCode::default();
        for index in 0..3 {
            code.on_sent(Choice::NewSymbol, index, &BULK);
        }
        code.on_lost(&Sent::new(0, 1), false);
        let feedback =
            Feedback { oldest_undecoded: 2, oldest_unseen: 2, intervals: &[], known_end: 2, reported_end: 2 };
        code.on_feedback(Instant::ZERO, &feedback);
        code.on_lost(&Sent::new(1, 1), false);
        assert_eq!(code.choose(&Situation { has_data: false, ..BULK }), None);
        assert_eq!(code.choose_probe(), Some(Choice::Again(2)));
    }
}
