use std::collections::BTreeMap;

use super::*;
use crate::id::Role;

const SYMBOL: usize = 1200;

/// Streams with queues of bytes, and symbols filled from them.
#[derive(Default)]
struct Line {
    scheduler: Scheduler,
    shares: BTreeMap<StreamId, Share>,
    queued: BTreeMap<StreamId, usize>,
    sent: BTreeMap<StreamId, usize>,
}

impl Line {
    fn new() -> Self {
        let mut line = Self::default();
        line.scheduler.set_symbol_capacity(SYMBOL);
        line
    }

    fn queue(&mut self, index: u64, bytes: usize) -> StreamId {
        let id = StreamId::new(Role::Client, index);
        *self.queued.entry(id).or_default() += bytes;
        self.scheduler.add(id, self.shares.entry(id).or_default(), false);
        id
    }

    /// Fills one symbol and returns the streams in it.
    fn fill(&mut self) -> Vec<StreamId> {
        let (mut room, mut filled) = (SYMBOL, Vec::new());
        while room > 0 {
            let Some(id) = self.scheduler.next(Lane::Bulk, false) else { break };
            let queued = self.queued.get_mut(&id).unwrap();
            let bytes = room.min(*queued);
            assert!(bytes > 0, "a queued stream without bytes");
            (*queued, room) = (*queued - bytes, room - bytes);
            *self.sent.entry(id).or_default() += bytes;
            self.scheduler.on_packed(
                id,
                self.shares.get_mut(&id).unwrap(),
                bytes,
                (*queued > 0).then_some(false),
            );
            filled.push(id);
        }
        filled
    }

    fn sent(&self, index: u64) -> usize {
        self.sent.get(&StreamId::new(Role::Client, index)).copied().unwrap_or(0)
    }
}

#[test]
fn bulk_streams_send_the_same_number_of_bytes_at_any_time() {
    let mut line = Line::new();
    (0..100).for_each(|index| _ = line.queue(index, 1_000_000));
    for symbol in 0..10_000 {
        line.fill();
        let sent: Vec<usize> = (0..100).map(|index| line.sent(index)).collect();
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        // Each stream has sent its small share, a symbol for each turn, and what is left of the share, which is within one symbol of zero.
        // The number of turns differs by one, and by one more from the time when only some streams had used up their small share.
        assert!(most - least <= 4 * SYMBOL, "after {symbol} symbols: {least} and {most} bytes");
    }
}

#[test]
fn streams_share_evenly_even_if_small_frames_shift_the_others() {
    let mut line = Line::new();
    (0..7).for_each(|index| _ = line.queue(index, 1_000_000));
    for round in 0..700 {
        // A few bytes of an eighth stream shift every frame of the others.
        line.queue(7, 1 + round * 37 % 200);
        line.fill();
    }
    let sent: Vec<usize> = (0..7).map(|index| line.sent(index)).collect();
    assert!(sent.iter().max().unwrap() - sent.iter().min().unwrap() <= 2 * SYMBOL, "{sent:?}");
}

#[test]
fn a_small_stream_is_in_the_next_symbol_even_with_many_bulk_streams() {
    let mut line = Line::new();
    (0..100).for_each(|index| _ = line.queue(index, 1_000_000));
    (0..1500).for_each(|_| _ = line.fill());
    // A new stream, and then the same one again every second round: it earns more than it sends.
    for _ in 0..20 {
        let small = line.queue(100, 500);
        assert_eq!(line.fill()[0], small);
        (0..199).for_each(|_| _ = line.fill());
    }
}

#[test]
fn a_stream_cannot_gain_by_timing_its_writes() {
    let mut line = Line::new();
    (0..3).for_each(|index| _ = line.queue(index, 100_000_000));
    (0..100).for_each(|_| _ = line.fill());
    let before = line.sent(0);
    for _ in 0..40_000 {
        // It never queues more than its small share, and queues again as soon as that is sent.
        if line.queued.get(&StreamId::new(Role::Client, 3)).is_none_or(|&queued| queued == 0) {
            line.queue(3, SMALL_SHARE as usize);
        }
        line.fill();
    }
    let (bulk, timed) = (line.sent(0) - before, line.sent(3));
    assert!(timed <= bulk + SMALL_SHARE as usize + 2 * SYMBOL, "{timed} bytes against {bulk}");
    assert!(timed * 10 > bulk * 9, "not much less, either: {timed} bytes against {bulk}");
}

#[test]
fn bulk_streams_get_an_eighth_during_a_flood_of_small_streams() {
    let mut line = Line::new();
    line.queue(0, 100_000_000);
    line.queue(1, 100_000_000);
    (0..100).for_each(|_| _ = line.fill());
    let before = line.sent(0) + line.sent(1);
    for index in 2..8002 {
        line.queue(index, SYMBOL);
        line.queue(index + 10_000, SYMBOL);
        line.fill();
    }
    let bulk = line.sent(0) + line.sent(1) - before;
    assert!(bulk >= 8000 * SYMBOL / 8 - 2 * SYMBOL, "{bulk} of {} bytes", 8000 * SYMBOL);
    assert!(bulk <= 8000 * SYMBOL / 7, "small ones go first: {bulk} bytes");
}

#[test]
fn many_small_streams_take_turns() {
    let mut line = Line::new();
    (0..50).for_each(|index| _ = line.queue(index, 10_000));
    let tiny = line.queue(50, 100);
    (0..50).for_each(|_| _ = line.fill());
    assert!(line.fill().contains(&tiny));
}

#[test]
fn only_a_bare_fin_is_scheduled_without_connection_credit() {
    let mut line = Line::new();
    line.queue(0, 5000);
    assert_eq!(line.scheduler.next(Lane::Bulk, true), None);
    let (fin, mut share) = (StreamId::new(Role::Client, 1), Share::default());
    line.scheduler.add_bare_fin(fin, &mut share);
    line.scheduler.add_bare_fin(fin, &mut share);
    assert_eq!(line.scheduler.next(Lane::Bulk, true), Some(fin));
    assert_eq!(line.scheduler.next(Lane::Bulk, false), Some(fin));
    line.scheduler.on_packed(fin, &mut share, 3, None);
    assert_eq!(line.scheduler.next(Lane::Bulk, true), None);
    assert!(!share.is_queued());
}

#[test]
fn a_removed_stream_is_never_scheduled_again() {
    let mut line = Line::new();
    (0..5).for_each(|index| _ = line.queue(index, 100_000));
    let gone = StreamId::new(Role::Client, 2);
    for symbols in [3, 100] {
        (0..symbols).for_each(|_| _ = line.fill());
        line.scheduler.remove(gone, line.shares.get_mut(&gone).unwrap());
        line.scheduler.remove(gone, line.shares.get_mut(&gone).unwrap());
        (0..20).for_each(|_| assert!(!line.fill().contains(&gone)));
        line.scheduler.add(gone, line.shares.get_mut(&gone).unwrap(), false);
    }
}

#[test]
fn the_interactive_lane_has_urgent_writes_and_bare_ends_and_the_other_lane_the_rest() {
    let mut line = Line::new();
    line.scheduler.open_interactive_lane();
    let [small, urgent, fin] = [0, 1, 2].map(|index| StreamId::new(Role::Client, index));
    let mut shares = [Share::default(); 3];
    line.scheduler.add(small, &mut shares[0], false);
    line.scheduler.add(urgent, &mut shares[1], true);
    line.scheduler.add_bare_fin(fin, &mut shares[2]);
    assert_eq!(line.scheduler.next(Lane::Bulk, false), Some(small));
    assert_eq!(line.scheduler.next(Lane::Interactive, false), Some(fin));
    line.scheduler.on_packed(fin, &mut shares[2], 3, None);
    assert_eq!(line.scheduler.next(Lane::Interactive, false), Some(urgent));
    assert_eq!(line.scheduler.next(Lane::Interactive, true), None);
    // What is left of it is no longer small.
    line.scheduler.on_packed(urgent, &mut shares[1], 500, Some(false));
    assert_eq!(line.scheduler.next(Lane::Interactive, false), None);
    line.scheduler.on_packed(small, &mut shares[0], 500, None);
    assert_eq!(line.scheduler.next(Lane::Bulk, false), Some(urgent));
}
