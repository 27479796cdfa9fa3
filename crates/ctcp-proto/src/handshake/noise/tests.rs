//! Tests of the Noise messages, with answers computed by an independent implementation.

use proptest::prelude::*;

use super::*;
use crate::crypto::kem::{KemSecret, digest_of, encapsulate};

const CLIENT_PUBLIC: &str = "a4e09292b651c278b9772c569f5fa9bb13d906b46ab68c9df9dc2b4409f8a209";
const SERVER_PUBLIC: &str = "ce8d3ad1ccb633ec7b70c17814a5c76ecd029685050d344745ba05870e587d59";
const CLIENT_EPHEMERAL: &str = "27b3f79158822b2be96c77e62a5150ff620dac50576f0deac7b57ed77c7a1556";
const SERVER_EPHEMERAL: &str = "3da3cb76b88a01e531aa91cdb6a19784473013b68b548f80713e5cc0312e18ba";
const MESSAGE_1: &str = "ca578c75d9654a1805e5b614792b3b2e31fc8e2a6a59e76df873a8f5374cb452\
                         56ee00eedd7b368e06360ecfbee473a0235f411cc98dbc680e6e9437ef4f6035\
                         a831a1134f2fb8dbaaee3f6672326ddd8edadf9ef1f26afeb3260f6c728789fc\
                         63c11fc5fd17";
const MESSAGE_2: &str = "884d1ca7cb742dc18fc1a93ad7d3522abf0064241c01de2b92432fd971042d6c\
                         19d429bf6847f5255e57f62248714b1345cf5b8c";
const CLIENT_TO_SERVER: &str = "0f7419cd1b3e6e490a2009b429d54a24a5b12dd7fc4b5b11acd9b2b4aea2cb87";
const SERVER_TO_CLIENT: &str = "3ddbcb52a6aacb5b40c1c898052d1363f1ecfac55a87e61af3e465bd705c900f";

const CLIENT_PARAMETERS: [u8; 6] = [0x07, 0x04, 0x80, 0x00, 0x75, 0x30];
const SERVER_PARAMETERS: [u8; 4] = [0x07, 0x02, 0x67, 0x10];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn client() -> SecretKey {
    SecretKey::from_bytes([1; 32])
}

fn server() -> SecretKey {
    SecretKey::from_bytes([2; 32])
}

fn start() -> (Initiator, Vec<u8>) {
    Initiator::start([3; 32], &client(), &server().public_key(), &CLIENT_PARAMETERS).unwrap()
}

fn answer(message_1: &[u8]) -> (Vec<u8>, Secrets) {
    answer_with(message_1, [4; 32])
}

fn answer_with(message_1: &[u8], entropy: [u8; 32]) -> (Vec<u8>, Secrets) {
    let (responder, _, _) = Responder::open(entropy, &server(), message_1).unwrap();
    responder.answer(&SERVER_PARAMETERS).unwrap()
}

#[test]
fn both_sides_agree() {
    let (mut initiator, message_1) = start();
    let (responder, peer, parameters) = Responder::open([4; 32], &server(), &message_1).unwrap();
    assert_eq!(peer, client().public_key());
    assert_eq!(parameters, CLIENT_PARAMETERS);
    let (message_2, at_server) = responder.answer(&SERVER_PARAMETERS).unwrap();
    let (parameters, at_client) = initiator.finish(&message_2).unwrap();
    assert_eq!(parameters, SERVER_PARAMETERS);
    assert_eq!(at_client.send, at_server.receive);
    assert_eq!(at_client.receive, at_server.send);
    assert_ne!(at_client.send, at_client.receive);
    assert_eq!(message_1.len(), MESSAGE_1_OVERHEAD + CLIENT_PARAMETERS.len());
    assert_eq!(message_2.len(), MESSAGE_2_OVERHEAD + SERVER_PARAMETERS.len());
}

#[test]
fn the_messages_match_an_independent_implementation() {
    assert_eq!(hex(&client().public_key().0), CLIENT_PUBLIC);
    assert_eq!(hex(&server().public_key().0), SERVER_PUBLIC);
    let ephemeral = |entropy: [u8; 32]| -> [u8; 32] {
        crate::crypto::derive::expand(&entropy, &[b"ctcp ephemeral", &[0; 4]])
    };
    assert_eq!(hex(&ephemeral([3; 32])), CLIENT_EPHEMERAL);
    assert_eq!(hex(&ephemeral([4; 32])), SERVER_EPHEMERAL);
    let (mut initiator, message_1) = start();
    assert_eq!(hex(&message_1), MESSAGE_1);
    let (message_2, _) = answer(&message_1);
    assert_eq!(hex(&message_2), MESSAGE_2);
    let (_, secrets) = initiator.finish(&message_2).unwrap();
    assert_eq!(hex(&secrets.send), CLIENT_TO_SERVER);
    assert_eq!(hex(&secrets.receive), SERVER_TO_CLIENT);
}

#[test]
fn the_protocol_page_contains_the_same_handshake() {
    let page: String = include_str!("../../../../../docs/test-vectors.txt").split_whitespace().collect();
    for answer in [
        CLIENT_PUBLIC,
        SERVER_PUBLIC,
        CLIENT_EPHEMERAL,
        SERVER_EPHEMERAL,
        MESSAGE_1,
        MESSAGE_2,
        CLIENT_TO_SERVER,
        SERVER_TO_CLIENT,
    ] {
        assert!(page.contains(answer), "{answer}");
    }
}

#[test]
fn the_same_entropy_gives_the_same_bytes_and_other_entropy_different_ones() {
    let (_, message_1) = start();
    assert_eq!(start().1, message_1);
    assert_eq!(answer(&message_1).0, answer(&message_1).0);
    let (_, other) =
        Initiator::start([5; 32], &client(), &server().public_key(), &CLIENT_PARAMETERS).unwrap();
    assert!(other.iter().zip(&message_1).filter(|(left, right)| left == right).count() < 16);
}

#[test]
fn a_message_for_another_server_is_rejected() {
    let other = SecretKey::from_bytes([9; 32]).public_key();
    let (_, message_1) = Initiator::start([3; 32], &client(), &other, &CLIENT_PARAMETERS).unwrap();
    let result = Responder::open([4; 32], &server(), &message_1);
    assert_eq!(result.map(|_| ()), Err(HandshakeError::NotAuthentic));
}

#[test]
fn an_answer_of_another_server_is_rejected() {
    // The other server cannot open message 1, so it can only answer a message that it made itself.
    let (mut initiator, _) = start();
    let mallory = SecretKey::from_bytes([9; 32]);
    let (_, to_mallory) =
        Initiator::start([3; 32], &client(), &mallory.public_key(), &CLIENT_PARAMETERS).unwrap();
    let (responder, _, _) = Responder::open([4; 32], &mallory, &to_mallory).unwrap();
    let (message_2, _) = responder.answer(&SERVER_PARAMETERS).unwrap();
    assert_eq!(initiator.finish(&message_2).map(|_| ()), Err(HandshakeError::NotAuthentic));
}

#[test]
fn an_answer_to_another_message_of_the_same_client_is_rejected() {
    let (mut initiator, _) = start();
    let (_, other) =
        Initiator::start([5; 32], &client(), &server().public_key(), &CLIENT_PARAMETERS).unwrap();
    let (message_2, _) = answer(&other);
    assert_eq!(initiator.finish(&message_2).map(|_| ()), Err(HandshakeError::NotAuthentic));
}

#[test]
fn a_changed_or_truncated_message_1_is_rejected() {
    let (_, message) = start();
    let open = |message: &[u8]| Responder::open([4; 32], &server(), message).map(|_| ());
    for index in 0..message.len() {
        let mut changed = message.clone();
        changed[index] ^= 1;
        assert_eq!(open(&changed), Err(HandshakeError::NotAuthentic), "byte {index}");
        assert_eq!(open(&message[..index]), Err(HandshakeError::NotAuthentic), "length {index}");
    }
    assert_eq!(open(&[message, vec![0]].concat()), Err(HandshakeError::NotAuthentic));
    assert_eq!(open(&[0; NOISE_MESSAGE_MAX + 1]), Err(HandshakeError::NotAuthentic));
}

#[test]
fn the_client_ignores_garbage_before_the_valid_message_2() {
    let (mut initiator, message_1) = start();
    let (message, at_server) = answer(&message_1);
    let mut refuse = |garbage: &[u8]| {
        assert_eq!(initiator.finish(garbage).map(|_| ()), Err(HandshakeError::NotAuthentic));
    };
    for index in 0..message.len() {
        let mut changed = message.clone();
        changed[index] ^= 1;
        refuse(&changed);
        refuse(&message[..index]);
    }
    refuse(&[message.clone(), vec![0]].concat());
    refuse(&message_1);
    refuse(&[0xff; NOISE_MESSAGE_MAX]);
    refuse(&[0; 70_000]);
    let (parameters, secrets) = initiator.finish(&message).unwrap();
    assert_eq!(parameters, SERVER_PARAMETERS);
    assert_eq!((secrets.send, secrets.receive), (at_server.receive, at_server.send));
}

#[test]
fn a_finished_handshake_accepts_the_answer_of_a_server_that_restarted() {
    let (mut initiator, message_1) = start();
    let (message_2, _) = answer(&message_1);
    assert!(initiator.finish(&message_2).is_ok());
    let (other, _) = answer_with(&message_1, [77; 32]);
    let (_, secrets) = initiator.finish(&other).unwrap();
    let (_, again) = initiator.finish(&message_2).unwrap();
    assert_ne!(secrets.send, again.send);
    assert_eq!(initiator.finish(&[9; 100]).map(|_| ()), Err(HandshakeError::NotAuthentic));
}

#[test]
fn parameters_fill_a_message_to_the_last_byte_and_not_beyond() {
    let public = server().public_key();
    let start = |length| Initiator::start([3; 32], &client(), &public, &vec![7; length]);
    let (mut initiator, message_1) = start(NOISE_MESSAGE_MAX - MESSAGE_1_OVERHEAD).unwrap();
    assert_eq!(message_1.len(), NOISE_MESSAGE_MAX);
    let too_long = start(NOISE_MESSAGE_MAX - MESSAGE_1_OVERHEAD + 1).map(|_| ());
    assert_eq!(too_long, Err(HandshakeError::ParametersTooLong));

    let open = || Responder::open([4; 32], &server(), &message_1).unwrap().0;
    let (message_2, _) = open().answer(&[8; NOISE_MESSAGE_MAX - MESSAGE_2_OVERHEAD]).unwrap();
    let too_long = open().answer(&[8; NOISE_MESSAGE_MAX - MESSAGE_2_OVERHEAD + 1]).map(|_| ());
    assert_eq!(too_long, Err(HandshakeError::ParametersTooLong));
    assert_eq!(initiator.finish(&message_2).unwrap().0, [8; NOISE_MESSAGE_MAX - MESSAGE_2_OVERHEAD]);
}

#[test]
fn secrets_are_not_printed() {
    let secrets = Secrets { send: [1; 32], receive: [2; 32], hash: [3; 32] };
    assert_eq!(format!("{secrets:?}"), "Secrets(..)");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_messages_never_open_and_never_panic(message in prop::collection::vec(any::<u8>(), 0..1100)) {
        prop_assert!(Responder::open([4; 32], &server(), &message).is_err());
        let (mut initiator, _) = start();
        prop_assert!(initiator.finish(&message).is_err());
    }
}

/// With ML-KEM: SHA-256 of the client's key and of the ciphertext; then the secrets.
const HYBRID: [&str; 6] = [
    "c12e9e39db6758fc2ba63a638785b04f8efe3d7df23ba09803b4e39ba2fbc707",
    "c0b6d6d88bc92832875f4056378739c46bffff32c369aa2e66b3ea8552784243",
    "afcf18dfd6b710a09b5cf591d0eb8229d83aa10904934a3ca60a52da5ff36b96",
    "040db9b08b15ff72134fb04b12f811d132b498eb8ef0d679353b368d19ceb1d8",
    "3b9c9a00ebddd9cd193710101e0598f4bc9de7c0829698628cb0514764b28826",
    "01a670f96fe1542c8d86415b708bc76cb66b2486fee4f82f2c550c7c73569749",
];

#[test]
fn the_hybrid_handshake_matches_independent_implementations_and_the_protocol_page() {
    let kem = KemSecret::new([[7; 32], [8; 32]]);
    let key = kem.public();
    let (ciphertext, shared) = encapsulate(&key, [9; 32]).unwrap();
    let (tail, digest) = (&key[1088..], digest_of(&key[..1088]));
    let offer = [&[0x10, 0x40, 0x81, 1], &digest[..], tail].concat();
    let choice = [&[0x10, 0x21, 1], &digest_of(&ciphertext)[..]].concat();
    let (mut initiator, message_1) =
        Initiator::start([3; 32], &client(), &server().public_key(), &offer).unwrap();
    let (responder, ..) = Responder::open([4; 32], &server(), &message_1).unwrap();
    let (message_2, at_server) = responder.answer(&choice).unwrap();
    let (_, at_client) = initiator.finish(&message_2).unwrap();
    let hash = at_client.hash;
    let (at_client, at_server) = (at_client.with_kem(&kem.open(&ciphertext)), at_server.with_kem(&shared));
    assert_eq!((at_client.send, at_client.receive), (at_server.receive, at_server.send));
    let digests = [&key[..], &ciphertext].map(digest_of);
    let secrets = [*shared, hash, at_client.send, at_client.receive];
    let page: String = include_str!("../../../../../docs/test-vectors.txt").split_whitespace().collect();
    for (answer, expected) in digests.iter().chain(&secrets).zip(HYBRID) {
        assert_eq!(hex(answer), expected);
        assert!(page.contains(expected), "{expected}");
    }
}

#[test]
fn the_secrets_depend_on_the_split_the_kem_and_both_messages() {
    let secrets = |byte: u8, hash: u8| Secrets { send: [byte; 32], receive: [2; 32], hash: [hash; 32] };
    let all = [(1, 3, 5), (4, 3, 5), (1, 6, 5), (1, 3, 7)]
        .map(|(split, hash, kem)| secrets(split, hash).with_kem(&[kem; 32]).send);
    for (index, one) in all.iter().enumerate() {
        assert!(!all[..index].contains(one) && *one != [1; 32], "{index}");
    }
}

#[test]
fn a_key_whose_numbers_are_too_large_is_refused() {
    assert!(encapsulate(&[0xff; 1184], [9; 32]).is_none());
}
