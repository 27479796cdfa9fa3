//! `get`: what arrives, and what must not appear under the name.

use super::*;

// Requirement: U4, U9
#[tokio::test]
async fn a_file_is_fetched_whole_with_its_hash_and_its_progress() {
    let setup = setup(false);
    fs::create_dir(setup.remote("dir")).unwrap();
    for size in [0, 1, CHUNK_BYTES, 1_000_000] {
        fs::write(setup.remote("dir/file"), content(size)).unwrap();
        let mut seen = Vec::new();
        let got =
            get(&setup.link, "dir/file", &setup.local("got"), &mut |progress| seen.push(progress)).await;
        let hash = sha256(&content(size));
        assert_eq!(got.unwrap(), Transferred { size: size as u64, resumed: 0, hash });
        assert_eq!(fs::read(setup.local("got")).unwrap(), content(size));
        assert_eq!(names(setup.local.path()), ["got"]);
        assert!(seen.is_sorted_by_key(|progress| progress.done));
        assert_eq!(seen.last().unwrap(), &Progress { done: size as u64, total: size as u64 });
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_fetched_again() {
    let setup = setup(false);
    let path = setup.remote("file");
    // More than the queue between disk and network holds, so that the sender is still reading.
    let whole = 2 * CHUNK_BYTES * QUEUE_CHUNKS;
    for change in [content(whole + 1), content(100)] {
        fs::write(&path, content(whole)).unwrap();
        let mut is_changed = false;
        let mut on_progress = |_| {
            if !is_changed {
                fs::write(&path, &change).unwrap();
                is_changed = true;
            }
        };
        let got = get(&setup.link, "file", &setup.local("got"), &mut on_progress).await.unwrap();
        assert_eq!(got.hash, sha256(&change));
        assert_eq!(fs::read(setup.local("got")).unwrap(), change);
    }
}

#[tokio::test]
async fn a_destination_that_cannot_be_written_is_a_clear_error() {
    let setup = setup(false);
    fs::write(setup.remote("file"), "x").unwrap();
    fs::create_dir(setup.local("dir")).unwrap();
    symlink("nowhere", setup.local("link")).unwrap();
    for (destination, text) in [
        ("missing/got", "there is no such file or directory"),
        ("dir", "it is not a regular file"),
        ("link", "symbolic link"),
    ] {
        let destination = setup.local(destination);
        let error = get(&setup.link, "file", &destination, &mut |_| {}).await.expect_err("refused");
        let said = error.to_string();
        assert!(said.contains(text) && said.starts_with(destination.to_str().unwrap()), "{said}");
    }
    assert_eq!(names(setup.local.path()), ["dir", "link"]);
}

// Requirement: U4
#[tokio::test]
async fn data_is_written_to_the_part_before_the_rest_arrives() {
    let local = TempDir::new().unwrap();
    let (link, server) = scripted();
    let got = local.path().join("got");
    let serve = async {
        let mut stream = server.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        let identity = FileIdentity { size: 2000, modified: 1 };
        GetAccepted { identity, start: 0 }.reply().write(&mut stream).await.unwrap();
        stream.write_all(&content(2000)[..700]).await.unwrap();
        let part = local.path().join("got.part");
        while fs::metadata(&part).map_or(0, |metadata| metadata.len()) < 700 {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(fs::read(&part).unwrap(), &content(2000)[..700]);
        assert!(!got.exists());
        stream.write_all(&content(2000)[700..]).await.unwrap();
        stream.write_all(&sha256(&content(2000))).await.unwrap();
        stream.shutdown().await.unwrap();
        stream
    };
    let mut quiet = |_: Progress| {};
    let (outcome, _stream) = tokio::join!(get(&link, "file", &got, &mut quiet), serve);
    outcome.unwrap();
    assert_eq!(fs::read(&got).unwrap(), content(2000));
}

#[tokio::test]
async fn content_that_does_not_match_its_hash_never_gets_the_final_name() {
    let local = TempDir::new().unwrap();
    let (link, server) = scripted();
    let serve = async {
        while let Ok(mut stream) = server.accept().await {
            Request::read(&mut stream).await.unwrap();
            let identity = FileIdentity { size: 10, modified: 1 };
            GetAccepted { identity, start: 0 }.reply().write(&mut stream).await.unwrap();
            stream.write_all(b"0123456789").await.unwrap();
            stream.write_all(&sha256(b"0123456780")).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    };
    let got = local.path().join("got");
    let mut quiet = |_: Progress| {};
    let error = tokio::select! {
        outcome = get(&link, "file", &got, &mut quiet) => outcome.expect_err("wrong"),
        () = serve => unreachable!(),
    };
    let TransferError::GaveUp(3, last) = error else { panic!("{error}") };
    assert!(matches!(*last, TransferError::HashDiffers));
    assert!(!got.exists());
    assert!(names(local.path()).is_empty());
}

#[tokio::test]
async fn only_one_transfer_at_a_time_writes_a_part() {
    let setup = setup(false);
    fs::write(setup.remote("file"), "x").unwrap();
    let part = Destination::ambient(&setup.local("got")).unwrap().open_part("file").unwrap();
    let error = setup.get("file").await.expect_err("busy");
    assert!(matches!(error, TransferError::Local(_, FileError::Busy)), "{error}");
    drop(part);
    setup.get("file").await.unwrap();
}

#[tokio::test]
async fn a_get_into_a_pipe_resumes_where_the_connection_was_lost() {
    let setup = setup(false);
    let whole = content(500_000);
    fs::write(setup.remote("file"), &whole).unwrap();
    let mut losses = vec![400_000, 100_000];
    let mut lose = |progress: Progress| {
        if losses.last().is_some_and(|at| progress.done >= *at) {
            losses.pop();
            setup.connector.lose();
        }
    };
    let mut pipe = Vec::new();
    let got = get_to(&setup.link, "file", &mut pipe, &mut lose).await.unwrap();
    assert_eq!(got, Transferred { size: 500_000, resumed: 0, hash: sha256(&whole) });
    assert!(pipe == whole && losses.is_empty());
    assert!(setup.sent_by_server() < 600_000 + 2 * (CHUNK_BYTES * QUEUE_CHUNKS) as u64);
}

#[tokio::test]
async fn a_get_into_a_pipe_reports_that_the_written_data_is_not_the_file() {
    let setup = setup(false);
    let path = setup.remote("file");
    fs::write(&path, content(4 * CHUNK_BYTES * QUEUE_CHUNKS)).unwrap();
    let mut is_changed = false;
    let mut change = |progress: Progress| {
        if progress.done > 0 && !is_changed {
            fs::write(&path, content(100)).unwrap();
            is_changed = true;
        }
    };
    let outcome = get_to(&setup.link, "file", &mut tokio::io::sink(), &mut change).await;
    let error = outcome.expect_err("it changed");
    assert!(matches!(error, TransferError::WroteOther(_)), "{error}");

    let (link, server) = scripted();
    let serve = async {
        let mut stream = server.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        let identity = FileIdentity { size: 10, modified: 1 };
        GetAccepted { identity, start: 0 }.reply().write(&mut stream).await.unwrap();
        stream.write_all(b"0123456789").await.unwrap();
        stream.write_all(&sha256(b"0123456780")).await.unwrap();
        stream.shutdown().await.unwrap();
        stream
    };
    let (mut sink, mut quiet) = (tokio::io::sink(), |_: Progress| {});
    let (outcome, _stream) = tokio::join!(get_to(&link, "file", &mut sink, &mut quiet), serve);
    assert!(matches!(outcome, Err(TransferError::WroteOther(_))));
}
