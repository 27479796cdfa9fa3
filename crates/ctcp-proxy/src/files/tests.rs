//! Both sides against each other over connections in memory, and each against a scripted peer.

use core::time::Duration;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
use crate::link::{ConnectFailure, Connector, LinkTimes, ServerLink};
use crate::memory::{Connection, InMemory, connection_pair};
use crate::request::{
    FileIdentity, GetAccepted, GetRequest, PutAccepted, PutRequest, Reply, ReplyCode, Request,
};
use crate::server::{ReverseProxy, ServerLimits};
use crate::target_policy::TargetPolicy;

mod get;
mod leftovers;
mod put;
mod refusals;
mod resume;
mod turns;

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
    setup_of(is_writable, |files| files.with_times(times))
}

fn setup_of(is_writable: bool, adjust: impl FnOnce(FileService) -> FileService) -> Setup {
    let (remote, local) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let files = adjust(FileService::open(remote.path(), is_writable).unwrap());
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

    /// A link from another client to the same server.
    fn link_of(&self, client: &str) -> ServerLink<InMemory> {
        start(self.connector.of_client(client))
    }

    async fn put(&self, name: &str) -> Result<Transferred, TransferError> {
        put(&self.link, &self.local("source"), name, &mut |_| {}).await
    }

    /// Bytes of files that were transferred.
    fn travelled(&self) -> u64 {
        self.link.counters().files_received.value() + self.link.counters().files_sent.value()
    }

    fn sent_by_server(&self) -> u64 {
        self.connector.server().counters().files_sent.value()
    }
}

/// Bytes that depend on their position.
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

/// Sends a request that our client would not send.
async fn raw(setup: &Setup, request: &Request) -> ReplyCode {
    match setup.link.request(request).await {
        Ok(_) => ReplyCode::Succeeded,
        Err(error) => error.code(),
    }
}

/// A link to a server that handles each stream as the test says.
#[derive(Clone)]
struct Scripted(Connection);

impl Connector for Scripted {
    type Connection = Connection;

    fn server(&self) -> String {
        "script".to_owned()
    }

    async fn connect(&self) -> Result<Connection, ConnectFailure> {
        Ok(self.0.clone())
    }
}

fn scripted() -> (ServerLink<Scripted>, Connection) {
    let (near, far) = connection_pair();
    (start(Scripted(near)), far)
}
