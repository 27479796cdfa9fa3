//! Both sides against each other over connections in memory, and each against a scripted other side.

use core::time::Duration;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use ring::digest::{SHA256, digest};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::part::Destination;
#[cfg(target_os = "linux")]
use super::part::Part;
use super::receive::receive;
use super::*;
use crate::coded::CodedConnection;
use crate::counters::Counters;
use crate::dial::Dialer;
use crate::link::{Connector, LinkTimes, ServerLink};
use crate::memory::{Connection, InMemory, connection_pair};
use crate::request::{
    FileIdentity, GetAccepted, GetRequest, PutAccepted, PutRequest, Reply, ReplyCode, Request,
};
use crate::server::{ReverseProxy, ServerLimits};
use crate::target_policy::TargetPolicy;

/// A served directory, a local one, and a link between them.
struct Setup {
    remote: TempDir,
    local: TempDir,
    connector: InMemory,
    link: ServerLink<InMemory>,
}

fn setup(is_writable: bool) -> Setup {
    patient_setup(is_writable, UploadTimes::default())
}

fn patient_setup(is_writable: bool, times: UploadTimes) -> Setup {
    let (remote, local) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let files = FileService::open(remote.path(), is_writable).unwrap().with_times(times);
    let dialer = Dialer::new(TargetPolicy::default());
    let connector = InMemory::new(ReverseProxy::new(dialer, Some(files), ServerLimits::default()));
    let link = start(connector.clone());
    Setup { remote, local, connector, link }
}

fn start<K: Connector>(connector: K) -> ServerLink<K> {
    ServerLink::start(connector, LinkTimes::default(), Arc::new(Counters::new("client")))
}

impl Setup {
    fn remote(&self, name: &str) -> PathBuf {
        self.remote.path().join(name)
    }

    fn local(&self, name: &str) -> PathBuf {
        self.local.path().join(name)
    }

    async fn get(&self, name: &str) -> Result<Transferred, TransferError> {
        get(&self.link, name, &self.local("got"), &mut |_| {}).await
    }

    async fn put(&self, name: &str) -> Result<Transferred, TransferError> {
        put(&self.link, &self.local("source"), name, &mut |_| {}).await
    }

    /// Bytes of files that really travelled.
    fn travelled(&self) -> u64 {
        self.link.counters().files_received.value() + self.link.counters().files_sent.value()
    }

    fn sent_by_server(&self) -> u64 {
        self.connector.server().counters().files_sent.value()
    }
}

/// Bytes that show where they belong.
fn content(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

fn sha256(bytes: &[u8]) -> Hash {
    digest(&SHA256, bytes).as_ref().try_into().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn identity_at(path: &Path) -> FileIdentity {
    directory::identity_of(&fs::File::open(path).unwrap()).unwrap()
}

/// What a killed transfer leaves: a part and its sidecar.
fn leave_part(at: &Path, part: &[u8], name: &str, identity: FileIdentity) {
    let (path, sidecar) = (format!("{}.part", at.display()), format!("{}.part.json", at.display()));
    fs::write(path, part).unwrap();
    let FileIdentity { size, modified } = identity;
    let json =
        serde_json::json!({"version": 1, "name": name, "identity": {"size": size, "modified": modified}});
    fs::write(sidecar, json.to_string()).unwrap();
}

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
        assert_eq!(transferred.hash, sha256(&whole), "{case}");
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
    assert_eq!(put.hash, sha256(&whole));
    assert_eq!(fs::read(setup.remote("copy")).unwrap(), whole);
    assert!(losses.is_empty());
    assert_eq!(names(setup.remote.path()), ["copy", "file"]);
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_fetched_anew() {
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
async fn what_is_not_there_or_no_file_is_refused_and_leaves_nothing() {
    let setup = setup(false);
    fs::create_dir(setup.remote("dir")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(setup.remote("socket")).unwrap();
    for (name, code) in [
        ("missing", ReplyCode::FileNotFound),
        ("missing/file", ReplyCode::FileNotFound),
        ("socket/file", ReplyCode::FileNotFound),
        ("dir", ReplyCode::NotAFile),
        ("socket", ReplyCode::NotAFile),
    ] {
        let error = setup.get(name).await.expect_err(name);
        assert!(matches!(&error, TransferError::Refused(reply) if reply.code == code), "{name}: {error}");
    }
    assert!(names(setup.local.path()).is_empty());
}

/// Sends a request that no client of ours would send.
async fn raw(setup: &Setup, request: &Request) -> ReplyCode {
    match setup.link.request(request).await {
        Ok(_) => ReplyCode::Succeeded,
        Err(error) => error.code(),
    }
}

#[tokio::test]
async fn names_that_lead_out_are_refused_by_the_server_too() {
    let setup = setup(true);
    fs::write(setup.remote("inside"), "inside").unwrap();
    let absolute = setup.remote("inside").to_str().unwrap().to_owned();
    let identity = FileIdentity { size: 1, modified: 0 };
    for name in [
        "",
        ".",
        "..",
        "../inside",
        "x/../inside",
        absolute.as_str(),
        "in\0side",
        "..\\inside",
        "C:inside",
        "./inside",
        "x//y",
        "inside.part",
    ] {
        let get = Request::Get(GetRequest { name: name.into(), have: 0, identity });
        assert_eq!(raw(&setup, &get).await, ReplyCode::FileNameRefused, "get {name:?}");
        let put = Request::Put(PutRequest { name: name.into(), identity });
        assert_eq!(raw(&setup, &put).await, ReplyCode::FileNameRefused, "put {name:?}");
        assert!(matches!(setup.get(name).await, Err(TransferError::Name(_))));
    }
    assert_eq!(names(setup.remote.path()), ["inside"]);
}

#[tokio::test]
async fn links_are_followed_nowhere() {
    let setup = setup(true);
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::write(setup.remote("inside"), "inside").unwrap();
    symlink(outside.path(), setup.remote("way-out")).unwrap();
    symlink(outside.path().join("secret"), setup.remote("secret")).unwrap();
    symlink("inside", setup.remote("alias")).unwrap();
    symlink(outside.path().join("new"), setup.remote("dangling")).unwrap();
    symlink(outside.path().join("stolen"), setup.remote("victim.part")).unwrap();
    let identity = FileIdentity { size: 6, modified: 0 };
    for name in ["way-out/secret", "way-out/new", "secret", "alias", "dangling"] {
        let get = Request::Get(GetRequest { name: name.into(), have: 0, identity });
        assert_eq!(raw(&setup, &get).await, ReplyCode::FileNameRefused, "get {name:?}");
        let put = Request::Put(PutRequest { name: name.into(), identity });
        assert_eq!(raw(&setup, &put).await, ReplyCode::FileNameRefused, "put {name:?}");
    }
    let put = Request::Put(PutRequest { name: "victim".into(), identity });
    assert_eq!(raw(&setup, &put).await, ReplyCode::FileNameRefused);
    assert_eq!(names(outside.path()), ["secret"]);
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
}

#[test]
fn a_component_exchanged_for_a_link_between_check_and_open_leads_nowhere() {
    use super::directory::ServedDirectory;
    let (served, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(outside.path().join("file"), "secret").unwrap();
    fs::create_dir(served.path().join("real")).unwrap();
    fs::write(served.path().join("real/file"), "public").unwrap();
    let directory = ServedDirectory::open(served.path()).unwrap();
    let (way, other) = (served.path().join("way"), served.path().join("other"));
    symlink(outside.path(), &other).unwrap();
    fs::rename(served.path().join("real"), &way).unwrap();
    let is_over = core::sync::atomic::AtomicBool::new(false);
    let read = || {
        let opened = directory.open_file(&"way/file".parse().unwrap());
        opened.map(|(mut file, _)| {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut file, &mut text).unwrap();
            text
        })
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let parked = served.path().join("parked");
            while !is_over.load(core::sync::atomic::Ordering::Relaxed) {
                fs::rename(&way, &parked).unwrap();
                fs::rename(&other, &way).unwrap();
                fs::rename(&way, &other).unwrap();
                fs::rename(&parked, &way).unwrap();
            }
        });
        let texts: Vec<_> = (0..3000).filter_map(|_| read().ok()).collect();
        is_over.store(true, core::sync::atomic::Ordering::Relaxed);
        assert!(texts.iter().all(|text| text == "public"));
    });
    assert_eq!(read().unwrap(), "public");
}

#[tokio::test]
async fn a_destination_that_cannot_be_written_is_a_clear_error() {
    let setup = setup(false);
    fs::write(setup.remote("file"), "x").unwrap();
    fs::create_dir(setup.local("dir")).unwrap();
    symlink("nowhere", setup.local("link")).unwrap();
    for (destination, text) in [
        ("missing/got", "there is no such file or directory"),
        ("dir", "it is no regular file"),
        ("link", "symbolic link"),
    ] {
        let destination = setup.local(destination);
        let error = get(&setup.link, "file", &destination, &mut |_| {}).await.expect_err("refused");
        let said = error.to_string();
        assert!(said.contains(text) && said.starts_with(destination.to_str().unwrap()), "{said}");
    }
    assert_eq!(names(setup.local.path()), ["dir", "link"]);
}

/// A part whose writes go to a full disk.
#[cfg(target_os = "linux")]
fn part_on_full_disk(destination: &Path, identity: FileIdentity) -> Part {
    let mut part = Destination::ambient(destination).unwrap().open_part("file").unwrap();
    part.begin(identity).unwrap();
    part.file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    part
}

// Linux has a device that is always full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_no_file() {
    let local = TempDir::new().unwrap();
    let whole = content(3_000_000);
    let identity = FileIdentity { size: whole.len() as u64, modified: 1 };
    let part = part_on_full_disk(&local.path().join("got"), identity);
    let sent = [&whole[..], &sha256(&whole)].concat();
    let error = receive(&mut &sent[..], part, 0, identity.size, &mut |_| {}).await.expect_err("full");
    assert!(matches!(error, FileError::NoSpace), "{error}");
    assert!(!local.path().join("got").exists());
    for (kind, code) in [
        (std::io::ErrorKind::StorageFull, ReplyCode::NoSpace),
        (std::io::ErrorKind::QuotaExceeded, ReplyCode::NoSpace),
        (std::io::ErrorKind::ReadOnlyFilesystem, ReplyCode::ReadOnly),
        (std::io::ErrorKind::PermissionDenied, ReplyCode::PermissionDenied),
    ] {
        assert_eq!(FileError::from(std::io::Error::from(kind)).reply_code(), code);
    }
}

/// A link to a server that does what the test says with each stream.
#[derive(Clone)]
struct Scripted(Connection);

impl Connector for Scripted {
    type Connection = Connection;

    async fn connect(&self) -> Result<Connection, String> {
        Ok(self.0.clone())
    }
}

fn scripted() -> (ServerLink<Scripted>, Connection) {
    let (near, far) = connection_pair();
    (start(Scripted(near)), far)
}

// Requirement: U4
#[tokio::test]
async fn what_has_arrived_is_in_the_part_before_the_rest_comes() {
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
async fn a_content_that_does_not_match_its_hash_never_gets_the_name() {
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
    assert_eq!(fs::metadata(local.path().join("got.part")).unwrap().len(), 0);
}

#[tokio::test]
async fn a_server_that_starts_where_nobody_asked_is_not_believed() {
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

#[tokio::test(start_paused = true)]
async fn a_transfer_in_which_nothing_moves_is_interrupted_so_that_others_have_their_turn() {
    let local = TempDir::new().unwrap();
    let path = local.path().join("source");
    fs::write(&path, content(CHUNK_BYTES)).unwrap();
    let source =
        send::Source { file: fs::File::open(&path).unwrap(), identity: identity_at(&path), start: 0 };
    let (mut near, _far) = tokio::io::duplex(1000);
    let begun = tokio::time::Instant::now();
    let error = send::send(&mut near, source, &mut |_| {}).await.expect_err("nobody reads");
    assert!(matches!(error, FileError::Interrupted(_)), "{error}");
    assert!(begun.elapsed() >= STALL);

    let part = Destination::ambient(&local.path().join("got")).unwrap().open_part("file").unwrap();
    let (mut near, _far) = tokio::io::duplex(1000);
    let mut quiet = |_| {};
    let receiving = receive(&mut near, part, 0, 10, &mut quiet);
    // The clock of the test stands still while the writing thread waits for the first piece.
    let pass_time = async {
        tokio::task::yield_now().await;
        tokio::time::advance(STALL + Duration::from_millis(1)).await;
    };
    let (received, ()) = tokio::join!(receiving, pass_time);
    let error = received.expect_err("nobody writes");
    assert!(matches!(error, FileError::Interrupted(_)), "{error}");
}

#[tokio::test]
async fn one_transfer_at_a_time_writes_a_part() {
    let setup = setup(false);
    fs::write(setup.remote("file"), "x").unwrap();
    let part = Destination::ambient(&setup.local("got")).unwrap().open_part("file").unwrap();
    let error = setup.get("file").await.expect_err("busy");
    assert!(matches!(error, TransferError::Local(_, FileError::Busy)), "{error}");
    drop(part);
    setup.get("file").await.unwrap();
}

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
async fn an_interrupted_put_goes_on_and_a_wrong_part_is_started_over() {
    for is_right in [true, false] {
        let setup = setup(true);
        let whole = content(300_000);
        fs::write(setup.local("source"), &whole).unwrap();
        let identity = identity_at(&setup.local("source"));
        let part = if is_right { whole[..200_000].to_vec() } else { vec![1; 200_000] };
        leave_part(&setup.remote("file"), &part, "file", identity);
        let put = setup.put("file").await.unwrap();
        assert_eq!(put.hash, sha256(&whole));
        assert_eq!(fs::read(setup.remote("file")).unwrap(), whole);
        assert_eq!(setup.connector.server().counters().files_received.value() == 100_000, is_right);
        assert_eq!(names(setup.remote.path()), ["file"]);
    }
}

#[tokio::test]
async fn puts_are_refused_where_they_may_not_write() {
    let read_only = setup(false);
    fs::write(read_only.local("source"), "x").unwrap();
    let error = read_only.put("file").await.expect_err("read-only");
    assert!(matches!(&error, TransferError::Refused(reply) if reply.code == ReplyCode::ReadOnly), "{error}");
    let writable = setup(true);
    fs::write(writable.local("source"), "x").unwrap();
    fs::create_dir(writable.remote("dir")).unwrap();
    for (name, code) in [("missing/file", ReplyCode::FileNotFound), ("dir", ReplyCode::NotAFile)] {
        let error = writable.put(name).await.expect_err(name);
        assert!(matches!(&error, TransferError::Refused(reply) if reply.code == code), "{error}");
    }
    let identity = FileIdentity { size: UPLOAD_BYTES_MAX + 1, modified: 0 };
    let request = Request::Put(PutRequest { name: "huge".into(), identity });
    assert_eq!(raw(&writable, &request).await, ReplyCode::FileTooLarge);
    assert_eq!(names(writable.remote.path()), ["dir"]);
    assert!(names(read_only.remote.path()).is_empty());
}

#[tokio::test]
async fn a_put_that_fell_silent_gives_way_to_a_new_one() {
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
async fn a_put_that_goes_on_keeps_its_name() {
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
async fn a_verdict_that_overtakes_the_end_of_a_put_counts() {
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
        // Said and gone, without waiting for the end of the stream.
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
