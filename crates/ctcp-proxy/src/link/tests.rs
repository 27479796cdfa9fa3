use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::memory::{Connection, connection_pair};

/// A connector that returns scripted outcomes in order and then hangs; it records the times of its calls.
#[derive(Clone, Default)]
pub(crate) struct Script {
    outcomes: Arc<Mutex<VecDeque<Result<Connection, ConnectFailure>>>>,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Script {
    fn new(outcomes: impl IntoIterator<Item = Result<Connection, ConnectFailure>>) -> Self {
        Self { outcomes: Arc::new(Mutex::new(outcomes.into_iter().collect())), ..Self::default() }
    }
}

impl Connector for Script {
    type Connection = Connection;

    fn server(&self) -> String {
        "script".to_owned()
    }

    async fn connect(&self) -> Result<Connection, ConnectFailure> {
        self.asked.lock().unwrap().push(Instant::now());
        let outcome = self.outcomes.lock().unwrap().pop_front();
        match outcome {
            Some(outcome) => outcome,
            None => pending().await,
        }
    }
}

fn link(script: &Script) -> ServerLink<Script> {
    ServerLink::start(script.clone(), LinkTimes::default(), Arc::new(Counters::new("client")))
}

fn connect() -> Request {
    Request::Connect("192.0.2.1:80".parse().unwrap())
}

/// Answers every request with the reply.
fn answer(server: Connection, reply: Reply) {
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok(mut stream) = server.accept().await {
            Request::read(&mut stream).await.unwrap();
            reply.write(&mut stream).await.unwrap();
            held.push(stream);
        }
    });
}

fn yes() -> Reply {
    Reply::connected("192.0.2.9:1234".parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn attempts_follow_at_once_and_then_with_doubling_pauses_up_to_two_seconds() {
    let (near, _far) = connection_pair();
    let failures = core::iter::repeat_with(|| Err("no answer".to_owned().into())).take(7);
    let script = Script::new(core::iter::once(Ok(near.clone())).chain(failures));
    let link = link(&script);
    link.connected(Duration::from_secs(1)).await.unwrap();
    sleep(Duration::from_secs(10)).await;
    near.lose();
    let lost = Instant::now();
    sleep(Duration::from_secs(60)).await;
    let asked = script.asked.lock().unwrap();
    let pauses: Vec<u128> = asked[1..].iter().map(|at| at.duration_since(lost).as_millis()).collect();
    assert_eq!(pauses, [0, 100, 300, 700, 1500, 3100, 5100, 7100]);
}

#[tokio::test(start_paused = true)]
async fn short_lived_connections_do_not_make_the_link_loop_without_pauses() {
    let pairs: Vec<_> = (0..50).map(|_| connection_pair()).collect();
    for (near, _) in &pairs {
        near.lose();
    }
    let script = Script::new(pairs.iter().map(|(near, _)| Ok(near.clone())));
    let _link = link(&script);
    sleep(Duration::from_secs(10)).await;
    let count = script.asked.lock().unwrap().len();
    assert!((4..=10).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_connection_and_then_fails_with_the_last_reason() {
    let script = Script::new([Err("the server could not open it".to_owned().into())]);
    let link = link(&script);
    let begun = Instant::now();
    let error = link.request(&connect()).await.err().unwrap();
    assert_eq!(begun.elapsed(), LinkTimes::default().wait);
    assert!(matches!(&error, LinkError::Unreachable(why) if why == "the server could not open it"));
    assert_eq!(error.code(), ReplyCode::NetworkUnreachable);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_fails_requests_at_once_and_attempts_continue_until_the_server_accepts() {
    let refusal =
        ConnectFailure { reason: "your key is not on the list".to_owned(), kind: FailureKind::Refusal };
    let (near, far) = connection_pair();
    answer(far, yes());
    let script = Script::new([Err(refusal.clone()), Err(refusal), Ok(near)]);
    let link = link(&script);
    let begun = Instant::now();
    for _ in 0..2 {
        let error = link.request(&connect()).await.err().unwrap();
        assert!(matches!(&error, LinkError::NotAdmitted(why) if why == "your key is not on the list"));
        assert_eq!((error.code(), begun.elapsed()), (ReplyCode::NetworkUnreachable, Duration::ZERO));
    }
    let mut state = link.state();
    state.wait_for(|state| matches!(state, LinkState::Connected { .. })).await.unwrap();
    link.request(&connect()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_after_refusals_unless_a_request_arrives() {
    let refusal =
        ConnectFailure { reason: "your key is not on the list".to_owned(), kind: FailureKind::Refusal };
    let script = Script::new(core::iter::repeat_n(Err(refusal), 100));
    let begun = Instant::now();
    let link = link(&script);
    sleep(Duration::from_secs(60)).await;
    let times = || -> Vec<u128> {
        script.asked.lock().unwrap().iter().map(|at| at.duration_since(begun).as_millis()).collect()
    };
    let seldom = [0, 100, 300, 700, 1500, 3100, 6300, 12_700, 25_500, 40_500, 55_500];
    assert_eq!(times(), seldom);
    // Many requests cause only one more attempt, and not before the usual pause.
    for _ in 0..20 {
        assert!(link.request(&connect()).await.is_err());
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(times()[seldom.len()..], [60_000]);
}

#[tokio::test]
async fn a_request_gets_its_reply_and_a_refusal_its_text() {
    let (near, far) = connection_pair();
    answer(far, yes());
    let link = link(&Script::new([Ok(near)]));
    let opened = link.request(&connect()).await.unwrap();
    assert_eq!(opened.reply, yes());

    let (near, far) = connection_pair();
    answer(far, Reply::failure(ReplyCode::NotAllowed, "it is a loopback address"));
    let link = self::link(&Script::new([Ok(near)]));
    let error = link.request(&connect()).await.err().unwrap();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (ReplyCode::NotAllowed, "it is a loopback address")
    );
}

#[tokio::test]
async fn a_request_whose_connection_is_lost_before_the_reply_is_repeated_on_the_next() {
    let (first, first_far) = connection_pair();
    let (second, second_far) = connection_pair();
    answer(second_far, yes());
    let link = link(&Script::new([Ok(first.clone()), Ok(second)]));
    let lose = async {
        let mut stream = first_far.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        first.lose();
    };
    let request = connect();
    let (opened, ()) = tokio::join!(link.request(&request), lose);
    assert_eq!(opened.unwrap().reply, yes());
    assert_eq!(link.counters().connections_total.value(), 2);
}

#[tokio::test]
async fn a_stream_that_fails_on_a_live_connection_is_not_retried() {
    let (near, far) = connection_pair();
    let link = link(&Script::new([Ok(near)]));
    let request = connect();
    let (outcome, _) = tokio::join!(link.request(&request), async {
        let mut stream = far.accept().await.unwrap();
        stream.reset(1);
    });
    assert!(matches!(outcome.err(), Some(LinkError::Lost(_))));
}

#[tokio::test(start_paused = true)]
async fn a_request_times_out_if_the_server_does_not_answer() {
    let (near, far) = connection_pair();
    let link = link(&Script::new([Ok(near)]));
    let request = connect();
    let ask = link.request(&request);
    let (outcome, held) = tokio::join!(ask, far.accept());
    assert!(matches!(outcome.err(), Some(LinkError::Silent)));
    drop(held);
}

#[tokio::test]
async fn an_invalid_reply_is_an_error() {
    use tokio::io::AsyncWriteExt;
    let (near, far) = connection_pair();
    let link = link(&Script::new([Ok(near)]));
    let request = connect();
    let (outcome, _stream) = tokio::join!(link.request(&request), async {
        let mut stream = far.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK").await.unwrap();
        stream
    });
    assert!(matches!(outcome.err(), Some(LinkError::BadReply(_))));
}

#[tokio::test]
async fn early_data_reaches_the_server_before_the_reply() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    let (near, far) = connection_pair();
    let link = link(&Script::new([Ok(near)]));
    let (mut application, mut from) = duplex(64);
    application.write_all(b"GET / HTTP/1.0").await.unwrap();
    let mut early = Early::new(&mut from, &link.counters().upstream);
    let request = connect();
    let (opened, _stream) = tokio::join!(link.request_early(&request, &mut early), async {
        let mut stream = far.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        let mut got = [0; 14];
        stream.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"GET / HTTP/1.0");
        yes().write(&mut stream).await.unwrap();
        stream
    });
    assert_eq!(opened.unwrap().reply, yes());
    assert_eq!(link.counters().upstream.value(), 14);
}

/// Sends early data to a server that reads it, on a connection that is then lost. Returns why the request failed.
async fn lost_with_early_data(is_handshaking: bool) -> Option<LinkError> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    let (first, first_far) = connection_pair();
    first.set_handshaking(is_handshaking);
    let (second, _second_far) = connection_pair();
    let link = link(&Script::new([Ok(first.clone()), Ok(second)]));
    let (mut application, mut from) = duplex(64);
    application.write_all(b"pay").await.unwrap();
    let mut early = Early::new(&mut from, &link.counters().upstream);
    let request = connect();
    let (outcome, ()) = tokio::join!(link.request_early(&request, &mut early), async {
        let mut stream = first_far.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        stream.read_exact(&mut [0; 3]).await.unwrap();
        first.lose();
    });
    outcome.err()
}

#[tokio::test]
async fn a_request_with_early_data_is_not_repeated_if_the_server_may_have_seen_it() {
    assert!(matches!(lost_with_early_data(false).await, Some(LinkError::Lost(_))));
}

#[tokio::test]
async fn a_request_with_early_data_is_not_repeated_after_a_handshake_that_failed() {
    assert!(matches!(lost_with_early_data(true).await, Some(LinkError::Lost(_))));
}

#[tokio::test]
async fn a_request_with_early_data_is_repeated_if_nothing_came_from_the_server() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    let (first, _first_far) = connection_pair();
    let (second, second_far) = connection_pair();
    let link = link(&Script::new([Ok(first.clone()), Ok(second)]));
    let (mut application, mut from) = duplex(64);
    application.write_all(b"pay").await.unwrap();
    let counters = link.counters().clone();
    let mut early = Early::new(&mut from, &counters.upstream);
    let request = connect();
    let (opened, _stream) = tokio::join!(link.request_early(&request, &mut early), async {
        while counters.upstream.value() < 3 {
            tokio::task::yield_now().await;
        }
        first.lose();
        let mut stream = second_far.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        let mut got = [0; 3];
        stream.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"pay");
        yes().write(&mut stream).await.unwrap();
        stream
    });
    assert_eq!(opened.unwrap().reply, yes());
    assert_eq!(counters.upstream.value(), 3);
}

#[tokio::test(start_paused = true)]
async fn messages_wait_for_the_handshake_while_the_request_does_not() {
    let (near, far) = connection_pair();
    near.set_handshaking(true);
    let link = link(&Script::new([Ok(near.clone())]));
    let (request, asked) = (connect(), Mutex::new(0));
    let exchange = link.request_and(&request, |_| *asked.lock().unwrap() += 1);
    let server = async {
        let mut stream = far.accept().await.unwrap();
        assert_eq!(Request::read(&mut stream).await.unwrap(), request);
        sleep(Duration::from_millis(100)).await;
        assert_eq!(*asked.lock().unwrap(), 0);
        near.set_handshaking(false);
        yes().write(&mut stream).await.unwrap();
        stream
    };
    let (opened, _stream) = tokio::join!(exchange, server);
    assert!(opened.is_ok() && *asked.lock().unwrap() == 1);
}
