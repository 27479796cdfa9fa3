use std::net::Ipv4Addr;
use std::sync::Mutex;

use tokio::net::TcpListener;

use super::*;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// A resolver that returns each answer once and counts the lookups.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<Vec<io::Result<Vec<IpAddr>>>>>,
    questions: Arc<Mutex<usize>>,
}

impl Script {
    fn new(answers: Vec<io::Result<Vec<IpAddr>>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers)), ..Self::default() }
    }
}

impl Resolve for Script {
    fn resolve<'a>(&'a self, _: &'a str, _: &'a str) -> Resolving<'a> {
        *self.questions.lock().unwrap() += 1;
        let answer = self.answers.lock().unwrap().remove(0);
        Box::pin(async move { answer })
    }
}

fn dialer(allow: &[&str], answers: Vec<io::Result<Vec<IpAddr>>>) -> (Dialer, Script) {
    let script = Script::new(answers);
    let rules = allow.iter().map(|rule| rule.parse().unwrap()).collect();
    let policy = TargetPolicy::new(rules, Vec::new()).unwrap();
    (Dialer::new(policy).with_resolver(script.clone()), script)
}

fn target(text: &str) -> TargetAddress {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_checked_address_is_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // A second lookup would return a forbidden address (or panic because there is no answer left).
    let (dialer, script) = dialer(&["127.0.0.0/8"], vec![Ok(vec![LOOPBACK])]);
    let stream = dialer.connect("client", &target(&format!("name.example:{port}"))).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().ip(), LOOPBACK);
    assert_eq!(*script.questions.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_name_that_changes_to_a_forbidden_address_is_refused_from_then_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // First a public address, then loopback: no connection may reach the listener.
    let (dialer, _) = dialer(&[], vec![Ok(vec![PUBLIC]), Ok(vec![LOOPBACK]), Ok(vec![LOOPBACK])]);
    let times = DialTimes {
        attempt: Duration::from_millis(50),
        connect: Duration::from_millis(50),
        ..DialTimes::default()
    };
    let dialer = dialer.with_times(times);
    let name = target(&format!("rebind.example:{port}"));
    let first = dialer.connect("client", &name).await.expect_err("nobody there");
    assert!(matches!(first, DialError::Connect(_)), "{first}");
    for _ in 0..2 {
        let error = dialer.connect("client", &name).await.expect_err("forbidden");
        assert_eq!(error.reply_code(), ReplyCode::NotAllowed, "{error}");
    }
    assert!(timeout(Duration::from_millis(20), listener.accept()).await.is_err());
}

#[tokio::test]
async fn among_several_addresses_only_allowed_ones_are_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let private = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let (dialer, _) = dialer(&["127.0.0.1"], vec![Ok(vec![private, LOOPBACK])]);
    dialer.connect("client", &target(&format!("two.example:{port}"))).await.unwrap();
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refusing = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let (dialer, _) = dialer(&["127.0.0.0/8"], vec![Ok(vec![refusing, LOOPBACK])]);
    dialer.connect("client", &target(&format!("two.example:{port}"))).await.unwrap();
}

#[tokio::test]
async fn failures_have_the_matching_reply_code() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let missing = io::Error::new(io::ErrorKind::NotFound, "no such name");
    let (dialer, _) = dialer(&["127.0.0.0/8"], vec![Err(missing), Ok(vec![]), Ok(vec![PUBLIC])]);
    for (text, code) in [
        (closed.to_string(), ReplyCode::ConnectionRefused),
        ("missing.example:80".into(), ReplyCode::HostUnreachable),
        ("empty.example:80".into(), ReplyCode::HostUnreachable),
        ("unlisted.example:80".into(), ReplyCode::NotAllowed),
        ("10.0.0.1:80".into(), ReplyCode::NotAllowed),
        ("[::ffff:169.254.169.254]:80".into(), ReplyCode::NotAllowed),
    ] {
        let error = dialer.connect("client", &target(&text)).await.expect_err("fails");
        assert_eq!(error.reply_code(), code, "{text}: {error}");
    }
    for (kind, code) in [
        (io::ErrorKind::NetworkUnreachable, ReplyCode::NetworkUnreachable),
        (io::ErrorKind::HostUnreachable, ReplyCode::HostUnreachable),
        (io::ErrorKind::TimedOut, ReplyCode::TimedOut),
        (io::ErrorKind::OutOfMemory, ReplyCode::GeneralFailure),
    ] {
        assert_eq!(DialError::Connect(kind.into()).reply_code(), code);
    }
}

#[tokio::test]
async fn every_spelling_of_loopback_is_refused_after_the_system_resolved_it() {
    let dialer = Dialer::new(TargetPolicy::default());
    for text in [
        "127.0.0.1:80",
        "127.1:80",
        "2130706433:80",
        "0x7f000001:80",
        "localhost:80",
        "[::1]:80",
        "0.0.0.0:80",
    ] {
        let error = dialer.connect("client", &target(text)).await.expect_err("refused");
        assert!(
            matches!(error.reply_code(), ReplyCode::NotAllowed | ReplyCode::HostUnreachable),
            "{text}: {error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn lookups_time_out_if_the_resolver_never_answers() {
    struct Silent;
    impl Resolve for Silent {
        fn resolve<'a>(&'a self, _: &'a str, _: &'a str) -> Resolving<'a> {
            Box::pin(core::future::pending())
        }
    }
    let dialer = Dialer::new(TargetPolicy::default()).with_resolver(Silent);
    let error = dialer.connect("client", &target("slow.example:80")).await.expect_err("given up");
    assert_eq!(error.reply_code(), ReplyCode::TimedOut);
}

/// A system resolver in which names starting with `slow` are not answered until the sender is dropped.
fn slow_system() -> (SystemResolver, std::sync::mpsc::Sender<()>) {
    let (end, wait) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let lookup = move |name: &str| {
        if name.starts_with("slow") {
            let _ = wait.lock().unwrap().recv();
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(vec![PUBLIC])
    };
    (SystemResolver::new(Arc::new(lookup)), end)
}

#[tokio::test]
async fn slow_names_of_one_client_block_no_other_client_and_itself_only_for_a_time() {
    let (resolver, end) = slow_system();
    let resolver = Arc::new(resolver);
    let asked: Vec<_> = (0..200)
        .map(|number| {
            let resolver = resolver.clone();
            tokio::spawn(async move { resolver.resolve("greedy", &format!("slow{number}.example")).await })
        })
        .collect();
    tokio::task::yield_now().await;
    for client in ["modest", "another"] {
        let answer = timeout(Duration::from_secs(5), resolver.resolve(client, "quick.example")).await;
        assert_eq!(answer.expect("in time").unwrap(), [PUBLIC]);
    }
    let own = timeout(Duration::from_millis(50), resolver.resolve("greedy", "quick.example")).await;
    assert!(own.is_err(), "its share is used up");
    // The callers give up. Requests that wait for a slot end at once, running lookups when the system answers.
    for task in asked {
        task.abort();
    }
    drop(end);
    let own = timeout(Duration::from_secs(5), resolver.resolve("greedy", "quick.example")).await;
    assert_eq!(own.expect("in time").unwrap(), [PUBLIC]);
}
