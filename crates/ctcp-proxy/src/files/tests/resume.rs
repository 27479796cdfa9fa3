//! Resuming an earlier attempt, and starting over if it cannot be trusted.

use proptest::prelude::*;

use super::*;

/// Creates what a killed transfer leaves: a part and its sidecar.
pub(super) fn leave_part(at: &Path, part: &[u8], name: &str, identity: FileIdentity) {
    let (path, sidecar) = (format!("{}.part", at.display()), format!("{}.part.json", at.display()));
    fs::write(path, part).unwrap();
    let FileIdentity { size, modified } = identity;
    let json =
        serde_json::json!({"version": 1, "name": name, "identity": {"size": size, "modified": modified}});
    fs::write(sidecar, json.to_string()).unwrap();
}

#[tokio::test]
async fn a_part_of_the_same_content_is_completed_without_sending_it_again() {
    for (have, sent) in [(1u64, 299_999), (150_000, 150_000), (300_000, 0)] {
        let setup = setup(false);
        fs::write(setup.remote("file"), content(300_000)).unwrap();
        let identity = identity_at(&setup.remote("file"));
        leave_part(&setup.local("got"), &content(300_000)[..have as usize], "file", identity);
        let got = setup.get("file").await.unwrap();
        assert_eq!((got.resumed, got.hash), (have, sha256(&content(300_000))));
        assert_eq!(setup.sent_by_server(), sent);
        assert_eq!(fs::read(setup.local("got")).unwrap(), content(300_000));
        assert_eq!(names(setup.local.path()), ["got"]);
    }
}

#[tokio::test]
async fn a_part_that_cannot_be_trusted_is_started_over() {
    let whole = content(100_000);
    let of = |size, modified| FileIdentity { size, modified };
    for case in 0..7 {
        let setup = setup(false);
        fs::write(setup.remote("file"), &whole).unwrap();
        let identity = identity_at(&setup.remote("file"));
        let (got, sidecar) = (setup.local("got"), setup.local("got.part.json"));
        leave_part(&got, &whole[..50_000], "file", identity);
        match case {
            0 => fs::write(&sidecar, b"{\"version\": 1, \"na").unwrap(),
            1 => fs::write(&sidecar, [0xff; 100_000]).unwrap(),
            2 => fs::remove_file(&sidecar).unwrap(),
            3 => leave_part(&got, &whole[..50_000], "other", identity),
            4 => leave_part(&got, &whole[..50_000], "file", of(identity.size, identity.modified - 1)),
            5 => leave_part(&got, &vec![7; 50_000], "file", identity),
            _ => leave_part(&got, &vec![7; 200_000], "file", identity),
        }
        let transferred = setup.get("file").await.unwrap();
        // A part that does not match does not count as resumed, even if it was tried first.
        assert_eq!((transferred.resumed, transferred.hash), (0, sha256(&whole)), "{case}");
        assert_eq!(fs::read(&got).unwrap(), whole);
        assert_eq!(names(setup.local.path()), ["got"]);
    }
}

#[tokio::test]
async fn a_lost_connection_in_the_middle_is_resumed() {
    let setup = setup(true);
    let whole = content(500_000);
    fs::write(setup.remote("file"), &whole).unwrap();
    let mut losses = vec![400_000, 250_000, 100_000];
    let mut lose = |progress: Progress| {
        if losses.last().is_some_and(|at| progress.done >= *at) {
            losses.pop();
            setup.connector.lose();
        }
    };
    let got = get(&setup.link, "file", &setup.local("got"), &mut lose).await.unwrap();
    assert_eq!(got.hash, sha256(&whole));
    assert_eq!(fs::read(setup.local("got")).unwrap(), whole);
    assert!(losses.is_empty());
    assert!(setup.travelled() < 600_000, "{}", setup.travelled());

    let mut losses = vec![450_000, 300_000];
    let mut lose = |progress: Progress| {
        if losses.last().is_some_and(|at| progress.done >= *at) {
            losses.pop();
            setup.connector.lose();
        }
    };
    fs::write(setup.local("source"), &whole).unwrap();
    let put = put(&setup.link, &setup.local("source"), "copy", &mut lose).await.unwrap();
    assert_eq!((put.resumed, put.hash), (0, sha256(&whole)), "no earlier command had delivered data");
    assert_eq!(fs::read(setup.remote("copy")).unwrap(), whole);
    assert!(losses.is_empty());
    assert_eq!(names(setup.remote.path()), ["copy", "file"]);
}

#[tokio::test]
async fn a_server_that_starts_at_a_wrong_position_is_rejected() {
    let local = TempDir::new().unwrap();
    let (link, server) = scripted();
    let serve = async {
        let mut stream = server.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        let identity = FileIdentity { size: 10, modified: 1 };
        GetAccepted { identity, start: 5 }.reply().write(&mut stream).await.unwrap();
        stream
    };
    let got = local.path().join("got");
    let mut quiet = |_: Progress| {};
    let (outcome, _) = tokio::join!(get(&link, "file", &got, &mut quiet), serve);
    assert!(matches!(outcome, Err(TransferError::BadReply(_))));

    let source = local.path().join("source");
    fs::write(&source, b"short").unwrap();
    let serve = async {
        let mut stream = server.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        (PutAccepted { start: 6 }).reply().write(&mut stream).await.unwrap();
        stream
    };
    let mut quiet = |_: Progress| {};
    let (outcome, _) = tokio::join!(put(&link, &source, "file", &mut quiet), serve);
    assert!(matches!(outcome, Err(TransferError::BadReply(_))));
}

#[tokio::test]
async fn an_interrupted_put_resumes_and_a_wrong_part_is_started_over() {
    for is_right in [true, false] {
        let setup = setup(true);
        let whole = content(300_000);
        fs::write(setup.local("source"), &whole).unwrap();
        let identity = identity_at(&setup.local("source"));
        let part = if is_right { whole[..200_000].to_vec() } else { vec![1; 200_000] };
        leave_part(&setup.remote("file"), &part, "file", identity);
        let put = setup.put("file").await.unwrap();
        assert_eq!((put.resumed, put.hash), (if is_right { 200_000 } else { 0 }, sha256(&whole)));
        assert_eq!(fs::read(setup.remote("file")).unwrap(), whole);
        assert_eq!(setup.connector.server().counters().files_received.value() == 100_000, is_right);
        assert_eq!(names(setup.remote.path()), ["file"]);
    }
}

proptest! {
    #[test]
    fn any_sidecar_is_read_without_panic(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let local = TempDir::new().unwrap();
        fs::write(local.path().join("got.part"), "part").unwrap();
        fs::write(local.path().join("got.part.json"), &noise).unwrap();
        let part = Destination::ambient(&local.path().join("got")).unwrap().open_part("file").unwrap();
        prop_assert_eq!(part.have(), None);
    }
}
