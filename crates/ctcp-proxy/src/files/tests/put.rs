//! `put`: what is stored, and which upload may write a name.

use super::*;

#[tokio::test]
async fn a_file_is_stored_whole_and_replaces_an_older_one() {
    let setup = setup(true);
    fs::create_dir(setup.remote("dir")).unwrap();
    fs::write(setup.remote("dir/file"), "older and longer than nothing").unwrap();
    for size in [0, 10, 700_000] {
        fs::write(setup.local("source"), content(size)).unwrap();
        let put = setup.put("dir/file").await.unwrap();
        assert_eq!(put, Transferred { size: size as u64, resumed: 0, hash: sha256(&content(size)) });
        assert_eq!(fs::read(setup.remote("dir/file")).unwrap(), content(size));
        assert_eq!(names(&setup.remote("dir")), ["file"]);
    }
}

#[tokio::test]
async fn a_stalled_put_gives_way_to_a_new_one() {
    let times = UploadTimes { silence: Duration::ZERO, wait: Duration::from_secs(20) };
    let setup = patient_setup(true, times);
    fs::write(setup.local("source"), content(1000)).unwrap();
    let identity = identity_at(&setup.local("source"));
    let request = Request::Put(PutRequest { name: "file".into(), identity });
    let mut silent = setup.link.request(&request).await.unwrap().stream;
    silent.write_all(&content(1000)[..400]).await.unwrap();
    let put = setup.put("file").await.unwrap();
    assert_eq!(put.hash, sha256(&content(1000)));
    assert_eq!(Reply::read(&mut silent).await.unwrap().code, ReplyCode::Busy);
}

#[tokio::test]
async fn a_put_with_progress_keeps_its_name() {
    let times = UploadTimes { silence: Duration::from_secs(3600), wait: Duration::from_millis(100) };
    let setup = patient_setup(true, times);
    let identity = FileIdentity { size: 1000, modified: 1 };
    let request = Request::Put(PutRequest { name: "file".into(), identity });
    let mut lively = setup.link.request(&request).await.unwrap().stream;
    assert_eq!(raw(&setup, &request).await, ReplyCode::Busy);
    lively.write_all(&content(1000)).await.unwrap();
    lively.write_all(&sha256(&content(1000))).await.unwrap();
    assert!(Reply::read(&mut lively).await.unwrap().is_success());
    assert_eq!(fs::read(setup.remote("file")).unwrap(), content(1000));
}

#[tokio::test]
async fn a_verdict_that_arrives_before_the_end_of_a_put_counts() {
    let local = TempDir::new().unwrap();
    let source = local.path().join("source");
    fs::write(&source, content(5000)).unwrap();
    let (link, server) = scripted();
    let serve = async {
        let mut stream = server.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        (PutAccepted { start: 0 }).reply().write(&mut stream).await.unwrap();
        let mut all = vec![0; 5000 + 32];
        stream.read_exact(&mut all).await.unwrap();
        // Replies and closes without waiting for the end of the stream.
        Reply::done().write(&mut stream).await.unwrap();
        stream.shutdown().await.unwrap();
    };
    let mut quiet = |_: Progress| {};
    let (outcome, ()) = tokio::join!(put(&link, &source, "file", &mut quiet), serve);
    assert_eq!(outcome.unwrap().hash, sha256(&content(5000)));

    let lie = async {
        let mut stream = server.accept().await.unwrap();
        Request::read(&mut stream).await.unwrap();
        (PutAccepted { start: 0 }).reply().write(&mut stream).await.unwrap();
        Reply::done().write(&mut stream).await.unwrap();
        stream.shutdown().await.unwrap();
        drop(stream);
        server.close("");
    };
    let mut quiet = |_: Progress| {};
    let (outcome, ()) = tokio::join!(put(&link, &source, "file", &mut quiet), lie);
    assert!(outcome.is_err());
}
