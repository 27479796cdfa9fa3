//! The server's side of `get` and `put`.

use core::future::poll_fn;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctcp_base::Escaped;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tracing::{debug, info};

use super::beginnings::Beginnings;
use super::directory::ServedDirectory;
use super::leftovers::{Leftovers, PartLimits};
use super::part::{Destination, Part};
use super::receive::receive;
use super::send::{Source, send};
use super::turns::{TransferLimits, Turns};
use super::{FileError, FileName};
use crate::coded::CodedStream;
use crate::counters::Counters;
use crate::request::{GetAccepted, GetRequest, PutAccepted, PutRequest, Reply, stream_code};

/// The largest file that is accepted, so that one mistaken command does not fill a disk.
pub const UPLOAD_BYTES_MAX: u64 = 1 << 40;

/// How simultaneous uploads of one name wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct UploadTimes {
    /// An upload that received nothing for this long gives way to a new one of the same name: its client was cut off
    /// and has reconnected before the old connection timed out.
    pub silence: Duration,
    /// How long a new upload waits for an old one of the same name.
    pub wait: Duration,
}

impl Default for UploadTimes {
    /// Longer than a short outage of a path, and shorter than the idle time-out of a connection.
    fn default() -> Self {
        Self { silence: Duration::from_secs(2), wait: Duration::from_secs(5) }
    }
}

/// A directory that is served to `get`, and to `put` if it is writable.
#[derive(Debug)]
pub struct FileService {
    directory: Arc<ServedDirectory>,
    is_writable: bool,
    times: UploadTimes,
    leftovers: Arc<Leftovers>,
    beginnings: Beginnings,
    turns: Turns,
    uploads: Mutex<BTreeMap<FileName, Arc<Upload>>>,
}

/// A running upload.
#[derive(Debug)]
struct Upload {
    /// When the last data arrived.
    heard: Mutex<Instant>,
    /// Notified when another upload wants the name.
    give_way: Notify,
    /// Notified when the upload is over.
    is_over: Notify,
}

/// The right to write a name, released on drop.
struct Claim<'a> {
    service: &'a FileService,
    name: FileName,
    upload: Arc<Upload>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.service.uploads().remove(&self.name);
        self.upload.is_over.notify_waiters();
    }
}

impl FileService {
    /// Serves the files below `path`, read-only unless `is_writable`.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be opened.
    pub fn open(path: &Path, is_writable: bool) -> io::Result<Self> {
        let directory = Arc::new(ServedDirectory::open(path)?);
        Ok(Self {
            leftovers: Arc::new(Leftovers::new(directory.clone(), PartLimits::default())),
            directory,
            is_writable,
            times: UploadTimes::default(),
            beginnings: Beginnings::default(),
            turns: Turns::new(TransferLimits::default()),
            uploads: Mutex::default(),
        })
    }

    /// Replaces the times of uploads.
    #[must_use]
    pub fn with_times(mut self, times: UploadTimes) -> Self {
        self.times = times;
        self
    }

    /// Replaces the limits for parts of interrupted uploads.
    #[must_use]
    pub fn with_part_limits(mut self, limits: PartLimits) -> Self {
        self.leftovers = Arc::new(Leftovers::new(self.directory.clone(), limits));
        self
    }

    /// Replaces the limits of transfers.
    #[must_use]
    pub fn with_limits(mut self, limits: TransferLimits) -> Self {
        self.turns = Turns::new(limits);
        self
    }

    fn uploads(&self) -> MutexGuard<'_, BTreeMap<FileName, Arc<Upload>>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `client` identifies the client whose share the transfer counts towards.
    pub(crate) async fn serve_get<S: CodedStream>(
        &self,
        client: &str,
        mut stream: S,
        get: GetRequest,
        counters: &Counters,
    ) {
        let turn = match self.turns.take(client).await {
            Ok(turn) => turn,
            Err(error) => return refuse(&mut stream, &get.name, &error).await,
        };
        let source = match self.source(&get).await {
            Ok(source) => source,
            Err(error) => return refuse(&mut stream, &get.name, &error).await,
        };
        let accepted = GetAccepted { identity: source.identity, start: source.start };
        if accepted.reply().write(&mut stream).await.is_err() {
            return;
        }
        let mut on_sent = |count| {
            counters.files_sent.add(count);
            turn.on_moved();
        };
        let begun = tokio::select! {
            begun = self.beginnings.hash(client, source) => begun,
            () = poll_fn(|context| stream.poll_broken(context)) => return,
            () = turn.must_give_way() => Err(FileError::StoodStill),
        };
        let sent = match begun {
            Err(error) => Err(error),
            Ok(source) => tokio::select! {
                sent = send(&mut stream, source, &mut on_sent) => sent,
                () = turn.must_give_way() => Err(FileError::StoodStill),
            },
        };
        drop(turn);
        match sent {
            Ok(_) => {
                let _ = stream.shutdown().await;
                info!(
                    name = %Escaped(&get.name),
                    size = accepted.identity.size,
                    start = accepted.start,
                    "a file was sent"
                );
            }
            Err(error) => {
                debug!(name = %Escaped(&get.name), %error, "a file was not sent");
                stream.reset(match error {
                    FileError::Changed => stream_code::FILE_CHANGED,
                    FileError::StoodStill => stream_code::GAVE_WAY,
                    FileError::Interrupted(_) => stream_code::ABORTED,
                    _ => stream_code::FILE_UNREADABLE,
                });
            }
        }
    }

    async fn source(&self, get: &GetRequest) -> Result<Source, FileError> {
        let name: FileName = get.name.parse()?;
        let directory = self.directory.clone();
        let (file, identity) = blocking(move || directory.open_file(&name)).await?;
        let is_same = identity == get.identity && get.have <= identity.size;
        let start = if is_same { get.have } else { 0 };
        Ok(Source::new(file, identity, start).with_states(&self.beginnings.states))
    }

    /// `client` identifies the client whose share the transfer counts towards.
    pub(crate) async fn serve_put<S: CodedStream>(
        &self,
        client: &str,
        mut stream: S,
        put: PutRequest,
        counters: &Counters,
    ) {
        let turn = match self.turns.take(client).await {
            Ok(turn) => turn,
            Err(error) => return refuse(&mut stream, &put.name, &error).await,
        };
        let (claim, part) = match self.prepare(client, &put).await {
            Ok(prepared) => prepared,
            Err(error) => return refuse(&mut stream, &put.name, &error).await,
        };
        let start = part.have().map_or(0, |(have, _)| have);
        if (PutAccepted { start }).reply().write(&mut stream).await.is_err() {
            return;
        }
        let upload = claim.upload.clone();
        let mut on_received = |count| {
            counters.files_received.add(count);
            turn.on_moved();
            *upload.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        };
        let receiving = async {
            let part = self.beginnings.hash(client, part).await?;
            receive(&mut stream, part, start, put.identity.size, &mut on_received).await
        };
        let received = tokio::select! {
            received = receiving => received,
            () = claim.upload.give_way.notified() => Err(FileError::Busy),
            () = turn.must_give_way() => Err(FileError::StoodStill),
        };
        drop((claim, turn));
        match received {
            Ok(_) => {
                info!(name = %Escaped(&put.name), size = put.identity.size, start, "a file was stored");
                if Reply::done().write(&mut stream).await.is_ok() {
                    let _ = stream.shutdown().await;
                }
            }
            Err(error) => refuse(&mut stream, &put.name, &error).await,
        }
    }

    async fn prepare(&self, client: &str, put: &PutRequest) -> Result<(Claim<'_>, Part), FileError> {
        let name: FileName = put.name.parse()?;
        if !self.is_writable {
            return Err(FileError::TakesNone);
        }
        if put.identity.size > UPLOAD_BYTES_MAX {
            return Err(FileError::TooLarge(UPLOAD_BYTES_MAX));
        }
        let claim = self.claim(name.clone()).await?;
        let (directory, leftovers) = (self.directory.clone(), self.leftovers.clone());
        let (states, identity) = (self.beginnings.states.clone(), put.identity);
        let client = client.to_owned();
        let part = blocking(move || {
            let (parent, leaf) = directory.parent(&name)?;
            let upload = leftovers.begin(&name, &client);
            let part = loop {
                match Destination::new(parent.try_clone()?, leaf)?.open_part(name.as_str()) {
                    Err(FileError::NoSpace) if upload.make_room() => {}
                    opened => break opened?.of_upload(upload, &states),
                }
            };
            // Existing data is resumed, or truncated if its content differs.
            let missing = identity.size.saturating_sub(part.have().map_or(0, |(bytes, _)| bytes));
            if !part.has_room_for(missing) {
                part.abandon_if_empty();
                return Err(FileError::NoSpace);
            }
            if part.have().is_some_and(|(_, of)| of == identity) {
                return Ok(part);
            }
            part.begin_upload(identity)
        })
        .await?;
        Ok((claim, part))
    }

    /// Claims the right to write a name; an upload that has stalled loses it.
    async fn claim(&self, name: FileName) -> Result<Claim<'_>, FileError> {
        let end = Instant::now() + self.times.wait;
        loop {
            let old = {
                let mut uploads = self.uploads();
                match uploads.get(&name) {
                    Some(old) => old.clone(),
                    None => {
                        let upload = Arc::new(Upload {
                            heard: Mutex::new(Instant::now()),
                            give_way: Notify::new(),
                            is_over: Notify::new(),
                        });
                        uploads.insert(name.clone(), upload.clone());
                        return Ok(Claim { service: self, name, upload });
                    }
                }
            };
            let silent_at = *old.heard.lock().unwrap_or_else(PoisonError::into_inner) + self.times.silence;
            if Instant::now() >= end {
                return Err(FileError::Busy);
            }
            if silent_at <= Instant::now() {
                old.give_way.notify_one();
            }
            let is_over = old.is_over.notified();
            if self.uploads().get(&name).is_some_and(|now| Arc::ptr_eq(now, &old)) {
                let pause =
                    silent_at.saturating_duration_since(Instant::now()).max(Duration::from_millis(50));
                let _ = timeout(pause.min(end.saturating_duration_since(Instant::now())), is_over).await;
            }
        }
    }
}

/// Runs file-system calls, which may block, outside the threads of the runtime.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(FileError::Io(io::Error::other(error))))
}

async fn refuse<S: CodedStream>(stream: &mut S, name: &str, error: &FileError) {
    debug!(name = %Escaped(name), %error, "a file request is refused");
    if Reply::failure(error.reply_code(), &error.to_string()).write(stream).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}
