//! How many transfers run at once, and which one gives way.

use tokio::time::{Instant, timeout};

use super::*;
use crate::coded::reset_code;
use crate::memory::Stream;
use crate::request::stream_code;

/// Fits into the queue between disk and network. Otherwise the thread that waits for the queue would stop the test's
/// paused clock.
const SIZE: usize = 100_000;

fn limits(total: usize, per_client: usize) -> TransferLimits {
    TransferLimits { total, per_client, ..TransferLimits::default() }
}

fn served(limits: TransferLimits) -> Setup {
    let setup = setup_of(true, |files| files.with_limits(limits));
    fs::write(setup.remote("file"), content(SIZE)).unwrap();
    setup
}

fn get_request() -> Request {
    Request::Get(GetRequest { name: "file".into(), have: 0, identity: Default::default() })
}

/// A get whose data is not read.
async fn stalled(link: &ServerLink<InMemory>) -> Stream {
    link.request(&get_request()).await.unwrap().stream
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_transfers_uses_up_only_its_own_share_and_gets_busy_replies() {
    let setup = served(limits(4, 2));
    let _held = [stalled(&setup.link).await, stalled(&setup.link).await];
    let begun = Instant::now();
    let refused = setup.link.request(&get_request()).await.err().unwrap();
    assert_eq!(refused.code(), ReplyCode::Busy);
    assert_eq!(begun.elapsed(), TransferLimits::default().wait);
    let text = TransferError::from(refused).to_string();
    assert_eq!(text, "the server is busy: too many transfers at once");

    let (other, begun) = (setup.link_of("other"), Instant::now());
    let got = get(&other, "file", &setup.local("got"), &mut |_| {}).await.unwrap();
    assert_eq!(got.hash, sha256(&content(SIZE)));
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_stalled_get_gives_way_only_once_another_transfer_waits() {
    let setup = served(limits(2, 1));
    let (one, two) = (setup.link_of("one"), setup.link_of("two"));
    let mut first = stalled(&one).await;
    sleep(Duration::from_secs(1)).await;
    let mut second = stalled(&two).await;
    sleep(Duration::from_secs(60)).await;

    // The command retries automatically.
    let got = setup.get("file").await.unwrap();
    assert_eq!(got.hash, sha256(&content(SIZE)));
    let mut rest = Vec::new();
    let error = first.read_to_end(&mut rest).await.expect_err("it has stalled the longest");
    assert_eq!(reset_code(&error), Some(stream_code::GAVE_WAY));
    second.read_to_end(&mut rest).await.expect("no other transfer waited");
}

#[tokio::test(start_paused = true)]
async fn a_slow_get_with_progress_keeps_its_slot() {
    let setup = served(limits(1, 1));
    let other = setup.link_of("other");
    let mut slow = stalled(&other).await;
    let read = async {
        let mut bytes = vec![0; 4000];
        for _ in 0..10 {
            sleep(Duration::from_secs(4)).await;
            slow.read_exact(&mut bytes).await.unwrap();
        }
        slow
    };
    let ask = async {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(35) {
            assert_eq!(raw(&setup, &get_request()).await, ReplyCode::Busy);
        }
    };
    let (mut slow, ()) = tokio::join!(read, ask);
    slow.read_to_end(&mut Vec::new()).await.unwrap();
    setup.get("file").await.unwrap();
}

// In real time: the thread that waits for bytes of a put would stop the test's paused clock.
#[tokio::test]
async fn a_stalled_put_gives_way_and_resumes_later() {
    let limits = TransferLimits { silence: Duration::from_millis(10), ..limits(1, 1) };
    let setup = served(limits);
    fs::write(setup.local("source"), content(1000)).unwrap();
    let identity = identity_at(&setup.local("source"));
    let request = Request::Put(PutRequest { name: "stored".into(), identity });
    let other = setup.link_of("other");
    let mut silent = other.request(&request).await.unwrap().stream;
    silent.write_all(&content(1000)[..400]).await.unwrap();
    setup.get("file").await.unwrap();
    let verdict = Reply::read(&mut silent).await.unwrap();
    assert_eq!(verdict.code, ReplyCode::Busy);
    assert!(verdict.text().contains("stalled"), "{verdict}");
    let put = setup.put("stored").await.unwrap();
    assert_eq!((put.resumed, put.hash), (400, sha256(&content(1000))));
}

// In real time, like the test above.
#[tokio::test]
async fn a_get_that_hashes_existing_data_gives_way_like_others() {
    let limits = TransferLimits { silence: Duration::from_millis(10), ..limits(1, 1) };
    let setup = served(limits);
    let large = fs::File::create(setup.remote("large")).unwrap();
    large.set_len(4 << 30).unwrap();
    let identity = identity_at(&setup.remote("large"));
    let request = Request::Get(GetRequest { name: "large".into(), have: identity.size, identity });
    let other = setup.link_of("other");
    let _hashing = other.request(&request).await.unwrap().stream;
    let got = timeout(Duration::from_secs(20), setup.get("file")).await.expect("the hashing get gives way");
    assert_eq!(got.unwrap().hash, sha256(&content(SIZE)));
}

#[tokio::test(start_paused = true)]
async fn a_transfer_without_progress_is_interrupted() {
    let local = TempDir::new().unwrap();
    let path = local.path().join("source");
    fs::write(&path, content(CHUNK_BYTES)).unwrap();
    let source = send::Source::new(fs::File::open(&path).unwrap(), identity_at(&path), 0);
    let (mut near, _far) = tokio::io::duplex(1000);
    let begun = Instant::now();
    let error = send::send(&mut near, source, &mut |_| {}).await.expect_err("nobody reads");
    assert!(matches!(error, FileError::Interrupted(_)), "{error}");
    assert!(begun.elapsed() >= STALL);

    let part = Destination::ambient(&local.path().join("got")).unwrap().open_part("file").unwrap();
    let (mut near, _far) = tokio::io::duplex(1000);
    let mut quiet = |_| {};
    let receiving = receive(&mut near, part, 0, 10, &mut quiet);
    // The test's paused clock does not advance while the writing thread waits for the first piece.
    let pass_time = async {
        tokio::task::yield_now().await;
        tokio::time::advance(STALL + Duration::from_millis(1)).await;
    };
    let (received, ()) = tokio::join!(receiving, pass_time);
    let error = received.expect_err("nobody writes");
    assert!(matches!(error, FileError::Interrupted(_)), "{error}");
}
