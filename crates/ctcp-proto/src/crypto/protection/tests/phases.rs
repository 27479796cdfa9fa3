//! Key updates: when they are allowed, how the peer follows, and which packets still open.

use super::*;

/// Two sides and the largest number that each received per path.
struct Sides {
    sides: [PacketProtection; 2],
    next_number: [[u64; 4]; 2],
    largest: [[Option<u64>; 4]; 2],
}

/// A packet in flight.
#[derive(Clone, Debug)]
struct Flying {
    from: usize,
    path: u8,
    number: u64,
    phase: u64,
    datagram: Vec<u8>,
}

impl Sides {
    fn new(suite: Suite) -> Self {
        Self::with_limits(suite, KeyLimits::of(suite))
    }

    fn with_limits(suite: Suite, limits: KeyLimits) -> Self {
        let (client, server) = pair_with_limits(suite, limits);
        Self { sides: [client, server], next_number: [[0; 4]; 2], largest: [[None; 4]; 2] }
    }

    fn send(&mut self, from: usize, path: u8) -> Flying {
        let number = self.next_number[from][usize::from(path)];
        self.next_number[from][usize::from(path)] += 1;
        let datagram = sealed(&mut self.sides[from], path, number, 3, b"frames");
        Flying { from, path, number, phase: self.sides[from].send.number(), datagram }
    }

    fn deliver(&mut self, flying: &Flying) -> Result<Opened, OpenError> {
        let to = 1 - flying.from;
        let largest = &mut self.largest[to][usize::from(flying.path)];
        let (opened, frames) = open_after(&mut self.sides[to], &flying.datagram, *largest)?;
        assert_eq!((opened.packet_number.0, frames.as_slice()), (flying.number, b"frames".as_slice()));
        *largest = (*largest).max(Some(flying.number));
        Ok(opened)
    }

    fn ack(&mut self, flying: &Flying) {
        self.sides[flying.from].on_acked(PathId(flying.path), PacketNumber(flying.number));
    }

    /// Sends a packet in each direction and acknowledges both.
    fn round_trip(&mut self, from: usize) {
        for side in [from, 1 - from] {
            let packet = self.send(side, 0);
            self.deliver(&packet).unwrap();
            self.ack(&packet);
        }
    }

    fn phases(&self) -> [(u64, u64); 2] {
        [0, 1].map(|side| (self.sides[side].send.number(), self.sides[side].receive.number()))
    }
}

#[test]
fn a_wiped_key_opens_nothing_and_the_others_do() {
    let mut sides = Sides::new(Suite::ALL[0]);
    sides.round_trip(0);
    let [recorded, late] = [sides.send(0, 0), sides.send(0, 0)];
    assert!(sides.sides[0].initiate_key_update());
    sides.round_trip(0);
    sides.deliver(&late).unwrap();
    sides.sides.iter_mut().for_each(PacketProtection::forget_previous_key);
    assert_eq!(sides.deliver(&recorded).map(|_| ()), Err(OpenError::NotAuthentic));
    sides.round_trip(0);
    assert!(sides.sides[0].initiate_key_update());
    sides.round_trip(0);
    assert_eq!(sides.phases(), [(2, 2); 2]);
}

#[test]
fn without_the_new_secret_the_old_keys_open_nothing_after_the_next_update() {
    for suite in Suite::ALL {
        let mut sides = Sides::new(suite);
        let (_, mut thief) = pair_with_limits(suite, KeyLimits::of(suite));
        sides.round_trip(0);
        let before = sides.send(0, 0);
        assert!(open_after(&mut thief, &before.datagram, None).is_ok());
        sides.sides.iter_mut().for_each(|side| side.mix_into_next(&[7; 32]));
        // Packets before the update are under the old keys, in both directions.
        sides.round_trip(1);
        assert!(sides.sides[0].initiate_key_update());
        let after = sides.send(0, 0);
        let stolen = open_after(&mut thief, &after.datagram, Some(before.number));
        assert_eq!(stolen.map(|_| ()), Err(OpenError::NotAuthentic));
        assert!(sides.deliver(&after).unwrap().key_phase_changed);
        sides.round_trip(1);
        assert_eq!(sides.phases(), [(1, 1); 2]);
    }
}

#[test]
fn new_secrets_do_not_replace_the_first_one() {
    // An attacker with a quantum computer knows every X25519 secret, but not the one of ML-KEM in the first secret.
    let mut sides = Sides::new(Suite::ALL[0]);
    let mut attacker = PacketProtection::new(Suite::ALL[0], [9; 32], [8; 32]);
    for _ in 0..3 {
        sides.round_trip(0);
        sides.sides.iter_mut().chain([&mut attacker]).for_each(|side| side.mix_into_next(&[7; 32]));
        assert!(sides.sides[0].initiate_key_update());
        let recorded = sides.send(0, 0);
        let outcome = open_after(&mut attacker, &recorded.datagram, None).map(|_| ());
        assert_eq!(outcome, Err(OpenError::NotAuthentic));
        sides.deliver(&recorded).unwrap();
        sides.ack(&recorded);
    }
}

#[test]
fn held_updates_wait_while_those_of_the_peer_are_followed() {
    let mut sides = Sides::new(Suite::ALL[0]);
    sides.round_trip(0);
    sides.sides[0].hold_updates(true);
    assert!(!sides.sides[0].initiate_key_update());
    assert!(sides.sides[1].initiate_key_update());
    sides.round_trip(1);
    assert_eq!(sides.phases(), [(1, 1); 2]);
    sides.sides[0].hold_updates(false);
    assert!(sides.sides[0].initiate_key_update());
}

#[test]
fn an_update_by_either_side_moves_both() {
    for suite in Suite::ALL {
        for initiator in [0, 1] {
            let mut sides = Sides::new(suite);
            for phase in 0..5 {
                sides.round_trip(initiator);
                assert_eq!(sides.phases(), [(phase, phase); 2]);
                assert!(sides.sides[initiator].initiate_key_update());
                assert_eq!(sides.sides[initiator].key_phase(), phase % 2 == 0);
                let first = sides.send(initiator, 0);
                assert!(sides.deliver(&first).unwrap().key_phase_changed);
                let answer = sides.send(1 - initiator, 0);
                assert!(sides.deliver(&answer).unwrap().key_phase_changed);
                assert_eq!(sides.phases(), [(phase + 1, phase + 1); 2]);
            }
        }
    }
}

#[test]
fn simultaneous_updates_meet_in_one_phase() {
    let mut sides = Sides::new(Suite::Aes256Gcm);
    sides.round_trip(0);
    assert!(sides.sides[0].initiate_key_update() && sides.sides[1].initiate_key_update());
    let (left, right) = (sides.send(0, 0), sides.send(1, 0));
    assert!(sides.deliver(&left).unwrap().key_phase_changed);
    assert!(sides.deliver(&right).unwrap().key_phase_changed);
    assert_eq!(sides.phases(), [(1, 1); 2]);
}

#[test]
fn late_packets_of_the_previous_phase_still_open() {
    let mut sides = Sides::new(Suite::ChaCha20Poly1305);
    sides.round_trip(0);
    let late: Vec<Flying> = (0..4).map(|path| sides.send(0, path)).collect();
    assert!(sides.sides[0].initiate_key_update());
    let first = sides.send(0, 0);
    sides.deliver(&first).unwrap();
    for packet in &late {
        assert!(!sides.deliver(packet).unwrap().key_phase_changed, "path {}", packet.path);
    }
    assert_eq!(sides.phases()[1], (1, 1));
}

#[test]
fn packets_of_an_older_phase_no_longer_open() {
    let mut sides = Sides::new(Suite::Aes256Gcm);
    sides.round_trip(0);
    let late = sides.send(0, 0);
    for _ in 0..2 {
        assert!(sides.sides[0].initiate_key_update());
        sides.round_trip(0);
    }
    assert_eq!(sides.phases(), [(2, 2); 2]);
    assert_eq!(sides.deliver(&late), Err(OpenError::NotAuthentic));
}

#[test]
fn the_next_phase_may_begin_on_a_path_without_packets() {
    let mut sides = Sides::new(Suite::Aes256Gcm);
    sides.round_trip(0);
    assert!(sides.sides[0].initiate_key_update());
    sides.round_trip(0);
    assert!(sides.sides[0].initiate_key_update());
    // Path 3 has seen no packet of phase 1, so this could also be a late packet of phase 0.
    let first = sides.send(0, 3);
    assert!(sides.deliver(&first).unwrap().key_phase_changed);
    assert_eq!(sides.phases()[1], (2, 2));
}

#[test]
fn an_update_waits_for_an_acknowledgement_of_the_current_phase() {
    let mut sides = Sides::new(Suite::Aes256Gcm);
    assert!(!sides.sides[0].initiate_key_update(), "nothing was acknowledged");
    let old = sides.send(0, 0);
    sides.deliver(&old).unwrap();
    sides.ack(&old);
    assert!(sides.sides[0].initiate_key_update());
    assert!(!sides.sides[0].initiate_key_update(), "nothing of phase 1 was sent");
    let new = sides.send(0, 0);
    sides.ack(&old);
    assert!(!sides.sides[0].initiate_key_update(), "only a packet of phase 0 was acknowledged");
    sides.ack(&new);
    assert!(!sides.sides[0].initiate_key_update(), "the peer seals with phase 0 still");
    sides.deliver(&new).unwrap();
    let answer = sides.send(1, 0);
    sides.deliver(&answer).unwrap();
    assert!(sides.sides[0].initiate_key_update());
}

#[test]
fn an_acknowledgement_of_an_unsent_packet_permits_no_update() {
    let mut sides = Sides::new(Suite::Aes256Gcm);
    sides.send(0, 1);
    sides.sides[0].on_acked(PathId(1), PacketNumber(1));
    sides.sides[0].on_acked(PathId(0), PacketNumber(0));
    assert!(!sides.sides[0].initiate_key_update());
}

#[test]
fn keys_are_updated_automatically_after_enough_packets() {
    let limits = KeyLimits { update_after: 10, sealed_max: 20, ..KeyLimits::of(Suite::Aes256Gcm) };
    let mut sides = Sides::with_limits(Suite::Aes256Gcm, limits);
    for _ in 0..100 {
        sides.round_trip(0);
        assert!(sides.sides.iter().all(|side| side.packets_sealed() <= 10));
    }
    assert_eq!(sides.phases(), [(9, 9); 2]);
}

#[test]
fn a_key_without_acknowledgement_requests_one_and_then_reaches_its_limit() {
    let limits = KeyLimits { update_after: 10, sealed_max: 20, ..KeyLimits::of(Suite::Aes256Gcm) };
    let mut sides = Sides::with_limits(Suite::Aes256Gcm, limits);
    let packets: Vec<Flying> = (0..20)
        .map(|count| {
            assert_eq!(sides.sides[0].needs_acknowledgement(), count >= 10);
            sides.send(0, 0)
        })
        .collect();
    let (mut datagram, header) = unsealed(&DESTINATION, 0, 20, 1, b"frames");
    let before = datagram.clone();
    assert_eq!(sides.sides[0].seal(&mut datagram, header), Err(SealError::LimitReached));
    assert_eq!(datagram, before);
    sides.ack(&packets[19]);
    assert!(!sides.sides[0].needs_acknowledgement());
    assert_eq!(sides.sides[0].seal(&mut datagram, header), Ok(()));
    assert_eq!((sides.phases()[0].0, sides.sides[0].packets_sealed()), (1, 1));
}

#[test]
fn a_forged_phase_bit_changes_nothing() {
    let mut sides = Sides::new(Suite::Aes256Gcm);
    sides.round_trip(0);
    let mut forged = sides.send(0, 0);
    forged.datagram[0] ^= 0x20;
    assert_eq!(sides.deliver(&forged), Err(OpenError::NotAuthentic));
    assert_eq!(sides.phases(), [(0, 0); 2]);
}

#[derive(Clone, Debug)]
enum Step {
    Send { from: usize, path: u8 },
    Deliver { which: prop::sample::Index, is_acked: bool },
    Lose { which: prop::sample::Index },
    Update { side: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..2_usize, 0..4_u8).prop_map(|(from, path)| Step::Send { from, path }),
        6 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(which, is_acked)| Step::Deliver { which, is_acked }),
        1 => any::<prop::sample::Index>().prop_map(|which| Step::Lose { which }),
        2 => (0..2_usize).prop_map(|side| Step::Update { side }),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn packets_at_most_one_phase_old_open_in_any_order(steps in steps()) {
        let mut sides = Sides::new(Suite::Aes256Gcm);
        let mut flying: Vec<Flying> = Vec::new();
        for step in steps {
            match step {
                Step::Send { from, path } => flying.push(sides.send(from, path)),
                Step::Deliver { which, is_acked } if !flying.is_empty() => {
                    let packet = flying.swap_remove(which.index(flying.len()));
                    let receiver_phase = sides.phases()[1 - packet.from].1;
                    let result = sides.deliver(&packet);
                    prop_assert_eq!(result.is_ok(), packet.phase + 1 >= receiver_phase, "{:?}", packet);
                    if is_acked && result.is_ok() {
                        sides.ack(&packet);
                    }
                }
                Step::Lose { which } if !flying.is_empty() => {
                    flying.swap_remove(which.index(flying.len()));
                }
                Step::Update { side } => {
                    sides.sides[side].initiate_key_update();
                }
                Step::Deliver { .. } | Step::Lose { .. } => {}
            }
            let [(left_send, left_receive), (right_send, right_receive)] = sides.phases();
            prop_assert!(left_send.abs_diff(right_send) <= 1);
            prop_assert!(left_receive <= left_send && left_send <= left_receive + 1);
            prop_assert!(right_receive <= right_send && right_send <= right_receive + 1);
        }
    }
}
