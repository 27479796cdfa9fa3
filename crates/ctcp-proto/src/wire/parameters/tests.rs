use proptest::prelude::*;

use super::*;
use crate::wire::frame::tests::any_varint;

fn example() -> Parameters {
    Parameters {
        connection_id: ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).expect("8 bytes"),
        symbol_size_max: 1154,
        symbol_window: 4096,
        max_data: 1 << 24,
        max_stream_data: 1 << 20,
        max_streams: 1000,
        idle_timeout: Some(Duration::from_secs(30)),
        max_ack_delay: Duration::from_millis(25),
        datagram_size_max: 1500,
        reset_token: None,
        aead_suites: vec![1, 2],
        profile: ProfileParameter {
            profile: 1,
            code: 0,
            congestion: 1,
            redundancy: 2,
            redundancy_parameter: 1_100_000,
        },
        block_size: 128,
        blocks: 64,
        hybrid: None,
        versions: vec![VERSION],
        context_window: 1024,
        tickets: false,
        paths: 1,
        path_mode: 0,
        path_ids: Vec::new(),
        addresses: Vec::new(),
    }
}

fn written(parameters: &Parameters) -> Vec<u8> {
    let mut out = Vec::new();
    parameters.write(&mut out);
    out
}

/// The entries of written parameters: id and all bytes of the entry.
fn entries(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Reader::new(bytes);
    let mut entries = Vec::new();
    while !reader.is_empty() {
        let before = reader.peek();
        let id = reader.varint().expect("an id");
        reader.prefixed().expect("a value");
        entries.push((id, before[..before.len() - reader.remaining()].to_vec()));
    }
    entries
}

/// The example with the value for one id replaced.
fn with(id: u64, value: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    for (other, entry) in entries(&written(&example())) {
        if other != id {
            out.extend(entry);
        }
    }
    write_bytes(&mut out, id, value);
    out
}

fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write_varint(&mut out, value);
    out
}

fn any_parameters(sender: Role) -> impl Strategy<Value = Parameters> {
    let suites = if sender == Role::Server { 1..=1 } else { 1..=AEAD_SUITES_MAX };
    let token =
        if sender == Role::Server { prop::option::of(any::<[u8; 16]>()).boxed() } else { Just(None).boxed() };
    let ids = prop::collection::vec(any::<u8>(), 1..=ConnectionId::MAX);
    let first = (ids, SYMBOL_SIZE_RANGE, SYMBOL_WINDOW_RANGE, any_varint(), any_varint(), 0..=STREAMS_MAX);
    let second = (any_varint(), 0..=16_384_000u64, 1200..=DATAGRAM_SIZE_MAX, token);
    let third =
        (prop::collection::vec(any::<u8>(), suites), any::<[u8; 8]>(), 1..=BLOCK_SIZE_MAX, 1..=BLOCKS_MAX);
    let tail = (sender == Role::Client).then_some([7; 96]);
    let hybrid = prop::option::of(any::<[u8; 32]>())
        .prop_map(move |digest| digest.map(|digest| HybridParameter { digest, tail }));
    let versions = prop::collection::vec(any::<u32>(), 0..VERSIONS_MAX).prop_map(|mut versions| {
        versions.push(VERSION);
        versions
    });
    let path_ids = 0..=PATH_IDS_MAX as u8;
    let tickets = any::<bool>().prop_map(move |wanted| wanted && sender == Role::Client);
    (first, second, third, (hybrid, versions, prop_oneof![Just(0), SYMBOL_WINDOW_RANGE], tickets, path_ids))
        .prop_map(move |(first, second, third, fourth)| Parameters {
            connection_id: ConnectionId::new(&first.0).expect("at most 20 bytes"),
            symbol_size_max: first.1,
            symbol_window: first.2,
            max_data: first.3,
            max_stream_data: first.4,
            max_streams: first.5,
            idle_timeout: (second.0 > 0).then(|| Duration::from_millis(second.0)),
            max_ack_delay: Duration::from_micros(second.1),
            datagram_size_max: second.2,
            reset_token: second.3,
            aead_suites: third.0,
            profile: ProfileParameter::parse(&third.1).expect("8 bytes"),
            block_size: third.2,
            blocks: third.3,
            hybrid: fourth.0,
            versions: fourth.1,
            context_window: fourth.2,
            tickets: fourth.3,
            paths: 1,
            path_mode: 0,
            addresses: if sender == Role::Server {
                vec![SocketAddr::from(([192, 0, 2, 1], 4433)); usize::from(fourth.4) % ADDRESSES_MAX]
            } else {
                Vec::new()
            },
            path_ids: (0..fourth.4)
                .filter_map(|path| ConnectionId::new(&vec![path; first.0.len()]))
                .collect(),
        })
}

proptest! {
    #[test]
    fn a_clients_parameters_round_trip_and_nothing_shorter_parses(parameters in any_parameters(Role::Client)) {
        let out = written(&parameters);
        for length in 0..out.len() {
            prop_assert!(Parameters::parse_from_client(&out[..length]).is_err());
        }
        prop_assert_eq!(Parameters::parse_from_client(&out), Ok(parameters));
    }

    #[test]
    fn a_servers_parameters_round_trip_and_nothing_shorter_parses(parameters in any_parameters(Role::Server)) {
        let out = written(&parameters);
        for length in 0..out.len() {
            prop_assert!(Parameters::parse_from_server(&out[..length]).is_err());
        }
        prop_assert_eq!(Parameters::parse_from_server(&out), Ok(ServerAnswer::Accepted(Box::new(parameters))));
    }

    #[test]
    fn order_does_not_matter_and_unknown_ids_are_ignored(seed in any::<[u8; 13]>(), unknown in 0x14u64..1 << 62) {
        let mut shuffled = entries(&written(&example()));
        shuffled.push((unknown, { let mut out = Vec::new(); write_bytes(&mut out, unknown, &seed); out }));
        for (index, &swap) in seed.iter().enumerate() {
            let other = usize::from(swap) % shuffled.len();
            shuffled.swap(index % 13, other);
        }
        let bytes: Vec<u8> = shuffled.into_iter().flat_map(|(_, entry)| entry).collect();
        prop_assert_eq!(Parameters::parse_from_client(&bytes), Ok(example()));
    }
}

#[test]
fn every_parameter_except_the_servers_token_is_required() {
    let all = entries(&written(&example()));
    assert_eq!(all.len(), 15);
    for (missing, _) in &all {
        let bytes: Vec<u8> =
            all.iter().filter(|(id, _)| id != missing).flat_map(|(_, entry)| entry.clone()).collect();
        assert_eq!(Parameters::parse_from_client(&bytes), Err(ParameterError::Missing(*missing)));
        assert!(Parameters::parse_from_server(&bytes).is_err());
    }
}

#[test]
fn a_repeated_id_is_an_error_known_or_not() {
    for (id, entry) in entries(&written(&example())) {
        let bytes = [written(&example()), entry].concat();
        assert_eq!(Parameters::parse_from_client(&bytes), Err(ParameterError::Repeated(id)));
    }
    let twice = [written(&example()), vec![0x3f, 0, 0x3f, 0]].concat();
    assert_eq!(Parameters::parse_from_client(&twice), Err(ParameterError::Repeated(0x3f)));
}

#[test]
fn values_out_of_range_are_errors_and_the_limits_are_valid() {
    let table = [
        (id::SYMBOL_SIZE_MAX, 256, 16_384, Some(255), Some(16_385)),
        (id::SYMBOL_WINDOW, 16, 65_536, Some(15), Some(65_537)),
        (id::MAX_STREAMS, 0, 1 << 60, None, Some((1 << 60) + 1)),
        (id::MAX_ACK_DELAY, 0, 16_384_000, None, Some(16_384_001)),
        (id::DATAGRAM_SIZE_MAX, 1200, (1 << 62) - 1, Some(1199), None),
        (id::BLOCK_SIZE, 1, 4095, Some(0), Some(4096)),
        (id::BLOCKS, 1, 65_536, Some(0), Some(65_537)),
        (id::MAX_DATA, 0, (1 << 62) - 1, None, None),
    ];
    for (id, least, most, below, above) in table {
        for inside in [least, most] {
            assert!(Parameters::parse_from_client(&with(id, &number(inside))).is_ok(), "{id} {inside}");
        }
        for outside in [below, above].into_iter().flatten() {
            let outcome = Parameters::parse_from_client(&with(id, &number(outside)));
            assert_eq!(outcome, Err(ParameterError::OutOfRange(id)), "{outside}");
        }
    }
    let lengths: [(u64, &[usize], &[usize]); 4] = [
        (id::CONNECTION_ID, &[0, 20], &[21]),
        (id::AEAD_SUITES, &[1, 16], &[0, 17]),
        (id::PROFILE, &[8], &[0, 6, 7, 9]),
        (0x77, &[0, 500], &[]),
    ];
    for (id, inside, outside) in lengths {
        for &length in inside {
            assert!(Parameters::parse_from_client(&with(id, &vec![1; length])).is_ok(), "{id} {length}");
        }
        for &length in outside {
            let outcome = Parameters::parse_from_client(&with(id, &vec![1; length]));
            assert_eq!(outcome, Err(ParameterError::OutOfRange(id)), "{length}");
        }
    }
}

#[test]
fn a_number_fills_its_value_and_the_whole_is_bounded() {
    assert!(matches!(
        Parameters::parse_from_client(&with(id::MAX_DATA, &[5, 0])),
        Err(ParameterError::Malformed(_))
    ));
    assert!(matches!(
        Parameters::parse_from_client(&with(id::MAX_DATA, &[])),
        Err(ParameterError::Malformed(_))
    ));
    assert!(matches!(
        Parameters::parse_from_client(&with(0x77, &[0; PARAMETERS_MAX])),
        Err(ParameterError::Malformed(_))
    ));
    // Not the shortest form, but valid.
    let longer = Parameters::parse_from_client(&with(id::MAX_DATA, &[0x40, 5]));
    assert_eq!(longer.map(|parameters| parameters.max_data), Ok(5));
}

#[test]
fn a_client_sends_neither_token_nor_refusal_and_a_server_chooses_one_suite() {
    for forbidden in [id::RESET_TOKEN, id::REFUSAL] {
        let outcome = Parameters::parse_from_client(&with(forbidden, &[1; 16]));
        assert_eq!(outcome, Err(ParameterError::Forbidden(forbidden)));
    }
    let two_suites = Parameters::parse_from_server(&written(&example()));
    assert_eq!(two_suites, Err(ParameterError::OutOfRange(id::AEAD_SUITES)));
    let bytes = [with(id::AEAD_SUITES, &[2]), vec![0x0a, 15], vec![9; 15]].concat();
    assert_eq!(Parameters::parse_from_server(&bytes), Err(ParameterError::OutOfRange(id::RESET_TOKEN)));
}

#[test]
fn a_datagram_size_beyond_udp_is_reduced_to_the_largest_of_udp() {
    let parameters = Parameters::parse_from_client(&with(id::DATAGRAM_SIZE_MAX, &number(100_000)));
    assert_eq!(parameters.map(|parameters| parameters.datagram_size_max), Ok(DATAGRAM_SIZE_MAX));
}

#[test]
fn a_refusal_needs_only_the_servers_id() {
    let refusal =
        Refusal { connection_id: example().connection_id, code: 1, reason: "unlisted key".to_owned() };
    let mut out = Vec::new();
    refusal.write(&mut out);
    assert_eq!(Parameters::parse_from_server(&out), Ok(ServerAnswer::Refused(refusal)));
    for (what, bytes) in [
        ("no connection id", vec![0x0f, 1, 2]),
        ("no code", vec![0x01, 0, 0x0f, 0]),
        ("no text", vec![0x01, 0, 0x0f, 2, 1, 0xff]),
        ("too much text", [&[0x01, 0, 0x0f, 0x41, 2, 1][..], &[b'x'; 257]].concat()),
    ] {
        assert!(Parameters::parse_from_server(&bytes).is_err(), "{what}");
    }
}

#[test]
fn the_longest_parameters_leave_room_in_a_noise_message() {
    let parameters = Parameters {
        connection_id: ConnectionId::new(&[1; 20]).expect("20 bytes"),
        max_data: (1 << 62) - 1,
        max_stream_data: (1 << 62) - 1,
        max_streams: STREAMS_MAX,
        idle_timeout: Some(Duration::from_millis((1 << 62) - 1)),
        reset_token: Some([1; 16]),
        aead_suites: vec![1; AEAD_SUITES_MAX],
        hybrid: Some(HybridParameter { digest: [1; 32], tail: Some([1; 96]) }),
        versions: vec![VERSION; VERSIONS_MAX],
        ..example()
    };
    // Message 1 of Noise IK adds an ephemeral key, an encrypted static key and two tags: 96 bytes.
    assert!(written(&parameters).len() + 96 < crate::wire::NOISE_MESSAGE_MAX);
    let refusal =
        Refusal { connection_id: parameters.connection_id, code: 2, reason: "x".repeat(REFUSAL_REASON_MAX) };
    let mut out = Vec::new();
    refusal.write(&mut out);
    assert!(out.len() + 96 < crate::wire::NOISE_MESSAGE_MAX);
}

#[test]
fn an_offer_of_another_mechanism_is_none_and_a_choice_of_it_an_error() {
    let offer = |value: &[u8]| Parameters::parse_from_client(&with(id::HYBRID, value));
    let is_offered = |value: &[u8]| offer(value).map(|parameters| parameters.hybrid.is_some());
    assert_eq!(is_offered(&[&[1][..], &[7; 128]].concat()), Ok(true));
    assert_eq!(is_offered(&[2]), Ok(false));
    for length in [0, 1, 32, 127, 129] {
        let value = if length == 0 { Vec::new() } else { [&[1][..], &vec![7; length]].concat() };
        assert_eq!(is_offered(&value), Err(ParameterError::OutOfRange(id::HYBRID)), "{length}");
    }
    let server = |value: &[u8]| {
        let bytes = [with(id::AEAD_SUITES, &[2]), with_only(id::HYBRID, value)].concat();
        Parameters::parse_from_server(&bytes).is_ok()
    };
    assert!(server(&[&[1][..], &[7; 32]].concat()));
    assert!(!server(&[&[2][..], &[7; 32]].concat()) && !server(&[&[1][..], &[7; 128]].concat()));
}

fn with_only(id: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_bytes(&mut out, id, value);
    out
}

#[test]
fn only_the_part_that_was_committed_to_completes_a_key() {
    let key = core::array::from_fn(|index| index as u8);
    let (parameter, part) = HybridParameter::of_key(&key);
    assert_eq!(parameter.key(&part), Some(key));
    for index in [0, 500, part.len() - 1] {
        let mut other = part;
        other[index] ^= 1;
        assert_eq!(parameter.key(&other), None, "byte {index}");
    }
    assert_eq!(HybridParameter::of_ciphertext(&part).key(&part), None, "a server's has no tail");
}

#[test]
fn the_list_of_versions_is_bounded_and_contains_the_one_spoken() {
    let parse = |versions: &[u32]| {
        let value: Vec<u8> = versions.iter().flat_map(|version| version.to_be_bytes()).collect();
        Parameters::parse_from_client(&with(id::VERSIONS, &value)).map(|parameters| parameters.versions)
    };
    assert_eq!(parse(&[VERSION + 1, VERSION]), Ok(vec![VERSION + 1, VERSION]));
    for bad in [&[][..], &[VERSION - 1], &[VERSION; VERSIONS_MAX + 1]] {
        assert_eq!(parse(bad), Err(ParameterError::OutOfRange(id::VERSIONS)));
    }
    let odd = Parameters::parse_from_client(&with(id::VERSIONS, &VERSION.to_be_bytes()[..3]));
    assert_eq!(odd, Err(ParameterError::OutOfRange(id::VERSIONS)));
}

#[test]
fn reserved_parameters_have_ids_that_no_version_uses_and_are_ignored() {
    let known = entries(&written(&example()));
    for random in [0, u64::MAX, 0x1234_5678_9abc_def0] {
        let mut bytes = written(&example());
        Parameters::write_reserved(&mut bytes, random);
        let all = entries(&bytes);
        assert_eq!(all.len(), known.len() + 1);
        assert!(all.iter().all(|(id, _)| is_reserved(*id) != known.iter().any(|(other, _)| other == id)));
        assert_eq!(Parameters::parse_from_client(&bytes), Ok(example()));
    }
}
