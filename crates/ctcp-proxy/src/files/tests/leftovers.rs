//! What interrupted and failed uploads leave at a server.

use super::super::beginnings::Beginning;
use super::super::leftovers::Leftovers;
use super::directory::ServedDirectory;
use super::*;

/// Starts an upload of 1000 bytes, sends some of them and disconnects. Returns when the server has noticed.
async fn interrupted_put(setup: &Setup, name: &str, bytes: usize) {
    interrupted_put_by(&setup.link, setup, name, bytes).await;
}

async fn interrupted_put_by<K: Connector>(link: &ServerLink<K>, setup: &Setup, name: &str, bytes: usize) {
    let identity = FileIdentity { size: 1000, modified: 1 };
    let request = Request::Put(PutRequest { name: name.into(), identity });
    let mut stream = link.request(&request).await.unwrap().stream;
    stream.write_all(&content(1000)[..bytes]).await.unwrap();
    let part = setup.remote(&format!("{name}.part"));
    until(|| fs::metadata(&part).is_ok_and(|metadata| metadata.len() == bytes as u64)).await;
    drop(stream);
    until(|| fs::File::open(&part).map_or(true, |part| part.try_lock().is_ok())).await;
}

/// Waits for a condition that other threads fulfil, with a time-out.
async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..5000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("the condition is not met in time");
}

fn limited(number: usize, bytes: u64) -> Setup {
    let limits = PartLimits { number, bytes, ..PartLimits::default() };
    setup_of(true, |files| files.with_part_limits(limits))
}

/// Waits until the served directory has exactly these parts.
async fn parts_become(setup: &Setup, wanted: &[&str]) {
    let parts = || -> Vec<String> {
        let names = names(setup.remote.path()).into_iter();
        names.filter_map(|name| name.strip_suffix(".part").map(str::to_owned)).collect()
    };
    until(|| parts() == wanted).await;
}

#[tokio::test]
async fn parts_of_interrupted_uploads_are_bounded_in_number_and_the_oldest_go_first() {
    let setup = limited(2, 1 << 20);
    for name in ["a", "b", "c", "d"] {
        interrupted_put(&setup, name, 400).await;
        sleep(Duration::from_millis(10)).await; // files' times have the resolution of a tick
    }
    parts_become(&setup, &["c", "d"]).await;
    fs::write(setup.local("source"), content(1000)).unwrap();
    setup.put("other").await.unwrap();
    assert_eq!(names(setup.remote.path()), ["c.part", "c.part.json", "d.part", "d.part.json", "other"]);
}

#[tokio::test]
async fn parts_of_interrupted_uploads_are_bounded_in_bytes_but_the_newest_stays() {
    let setup = limited(100, 500);
    interrupted_put(&setup, "a", 200).await;
    sleep(Duration::from_millis(10)).await;
    interrupted_put(&setup, "b", 200).await;
    parts_become(&setup, &["a", "b"]).await;
    sleep(Duration::from_millis(10)).await;
    interrupted_put(&setup, "c", 900).await;
    parts_become(&setup, &["c"]).await;
}

#[tokio::test]
async fn a_client_that_leaves_many_parts_loses_its_own_and_not_those_of_others() {
    for (number, bytes, size) in [(3, 1 << 20, 400), (100, 1000, 400)] {
        let setup = limited(number, bytes);
        interrupted_put(&setup, "modest", 100).await;
        let greedy = setup.link_of("greedy");
        for name in ["a", "b", "c", "d"] {
            sleep(Duration::from_millis(10)).await; // files' times have the resolution of a tick
            interrupted_put_by(&greedy, &setup, name, size).await;
        }
        parts_become(&setup, &["c", "d", "modest"]).await;
        // The client of a part is known after a restart, too.
        let directory = Arc::new(ServedDirectory::open(setup.remote.path()).unwrap());
        let limits = PartLimits { number: 2, ..PartLimits::default() };
        Arc::new(Leftovers::new(directory, limits)).begin(&"other".parse().unwrap(), "another");
        parts_become(&setup, &["d", "modest"]).await;
    }
}

#[tokio::test]
async fn an_upload_without_any_data_leaves_nothing() {
    let setup = limited(100, 500);
    interrupted_put(&setup, "a", 0).await;
    until(|| names(setup.remote.path()).is_empty()).await;
}

#[tokio::test]
async fn old_parts_are_removed_including_those_of_an_earlier_run() {
    let setup = setup(true);
    fs::create_dir_all(setup.remote("deep/er")).unwrap();
    let identity = FileIdentity { size: 1000, modified: 1 };
    let now = fs::metadata(setup.remote("deep")).unwrap().modified().unwrap();
    let ago = |days: u64| now - Duration::from_secs(days * 24 * 3600);
    for (name, since) in [("old", ago(8)), ("deep/er/old", ago(8)), ("deep/young", ago(6))] {
        let path = setup.remote(name);
        resume::leave_part(&path, &content(400), name, identity);
        let part = fs::File::options().write(true).open(format!("{}.part", path.display())).unwrap();
        part.set_modified(since).unwrap();
    }
    // Unrelated files that only have such names.
    fs::write(setup.remote("mine.part"), "mine").unwrap();
    fs::write(setup.remote("mine.part.json"), "{}").unwrap();
    fs::write(setup.local("source"), content(1000)).unwrap();
    setup.put("new").await.unwrap();
    assert_eq!(names(setup.remote.path()), ["deep", "mine.part", "mine.part.json", "new"]);
    assert_eq!(names(&setup.remote("deep")), ["er", "young.part", "young.part.json"]);
    assert!(names(&setup.remote("deep/er")).is_empty());
}

#[tokio::test]
async fn a_resumed_upload_is_not_hashed_again() {
    let served = TempDir::new().unwrap();
    let directory = Arc::new(ServedDirectory::open(served.path()).unwrap());
    let leftovers = Arc::new(Leftovers::new(directory, PartLimits::default()));
    let identity = FileIdentity { size: 1000, modified: 1 };
    let states = Arc::default();
    let open = || {
        let upload = leftovers.begin(&"file".parse().unwrap(), "client");
        let part = Destination::ambient(&served.path().join("file")).unwrap().open_part("file").unwrap();
        part.of_upload(upload, &states)
    };
    let part = open().begin_upload(identity).unwrap();
    receive(&mut &content(400)[..], part, 0, 1000, &mut |_| {}).await.expect_err("interrupted");
    let part = open();
    assert_eq!((part.have(), part.left()), (Some((400, identity)), 0));
    let rest = [&sha256(&content(400))[..], &content(1000)[400..], &sha256(&content(1000))].concat();
    assert_eq!(receive(&mut &rest[..], part, 400, 1000, &mut |_| {}).await.unwrap(), sha256(&content(1000)));
}

#[test]
fn an_upload_that_cannot_fit_removes_no_parts_of_others() {
    let served = TempDir::new().unwrap();
    let directory = Arc::new(ServedDirectory::open(served.path()).unwrap());
    let leftovers = Arc::new(Leftovers::new(directory, PartLimits::default()));
    let upload = leftovers.begin(&"file".parse().unwrap(), "client");
    let part = Destination::ambient(&served.path().join("file")).unwrap().open_part("file").unwrap();
    let part = part.of_upload(upload, &Arc::default());
    assert!(part.has_room_for(0) && !part.has_room_for(u64::MAX));
}

// Linux has a device that is always full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_upload_that_finds_the_disk_full_keeps_nothing_and_removes_leftovers() {
    let served = TempDir::new().unwrap();
    let directory = Arc::new(ServedDirectory::open(served.path()).unwrap());
    let leftovers = Arc::new(Leftovers::new(directory, PartLimits::default()));
    let identity = FileIdentity { size: 1000, modified: 1 };
    resume::leave_part(&served.path().join("others"), &content(400), "others", identity);
    let upload = leftovers.begin(&"file".parse().unwrap(), "client");
    let part = Destination::ambient(&served.path().join("file")).unwrap().open_part("file").unwrap();
    let mut part = part.of_upload(upload, &Arc::default()).begin_upload(identity).unwrap();
    part.file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = receive(&mut &content(1000)[..], part, 0, 1000, &mut |_| {}).await.expect_err("full");
    assert!(matches!(error, FileError::NoSpace), "{error}");
    assert_eq!(names(served.path()), [""; 0]);
}
