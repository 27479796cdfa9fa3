//! File transfers across restarts of the server.

use std::fs;

use ctcp_proxy::files::{Progress, get, put};
use tempfile::TempDir;

use crate::setup::{Server, content, in_time, link_to, localhost};

const SIZE: usize = 8_000_000;

/// Kills the server at a third of the transfer and restarts it.
struct Restart<'a> {
    server: Option<Server>,
    files: &'a TempDir,
    restarted: Option<std::thread::JoinHandle<Server>>,
}

impl Restart<'_> {
    fn on_progress(&mut self, progress: Progress) {
        if progress.done < progress.total / 3 {
            return;
        }
        if let Some(server) = self.server.take() {
            let (key, address) = server.kill();
            let files = self.files.path().to_owned();
            self.restarted = Some(std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(Server::start(key, address, Some(&files)))
            }));
        }
    }
}

#[tokio::test]
async fn transfers_resume_after_a_restart_of_the_server() {
    let (remote, local) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(remote.path().join("file"), content(SIZE)).unwrap();
    let (got, name) = (local.path().join("got"), "file");
    for is_get in [true, false] {
        let server = Server::start(ctcp::generate_key().unwrap(), localhost(), Some(remote.path())).await;
        let link = link_to(&server);
        let mut restart = Restart { server: Some(server), files: &remote, restarted: None };
        let transferred = in_time(async {
            let mut on_progress = |progress| restart.on_progress(progress);
            if is_get {
                get(&link, name, &got, &mut on_progress).await
            } else {
                put(&link, &got, "copy", &mut on_progress).await
            }
        })
        .await
        .unwrap();
        assert_eq!(transferred.size, SIZE as u64);
        assert!(restart.restarted.is_some());
        drop(restart.restarted.take().unwrap().join().unwrap());
    }
    assert!(fs::read(&got).unwrap() == content(SIZE));
    assert!(fs::read(remote.path().join("copy")).unwrap() == content(SIZE));
}
