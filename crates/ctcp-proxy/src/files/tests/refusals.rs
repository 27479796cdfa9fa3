//! Refused requests: names that leave the directory, links, full disks and read-only directories.

use super::*;

#[tokio::test]
async fn missing_files_and_other_things_than_files_are_refused_and_leave_nothing() {
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

#[tokio::test]
async fn names_that_leave_the_directory_are_refused_by_the_server_too() {
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
async fn links_are_never_followed() {
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
fn a_component_replaced_by_a_link_between_check_and_open_is_not_followed() {
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
async fn a_full_disk_is_a_clear_error_and_leaves_no_file() {
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
