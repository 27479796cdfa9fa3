//! What can go wrong with a file, here or at the other side.

use std::io;
use std::path::{Path, PathBuf};

use super::NameError;
use super::name::PART;
use crate::link::LinkError;
use crate::request::{HeadError, Reply, ReplyCode};

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A component of the name is a link.
    #[error("the name goes through a symbolic link")]
    Link,
    /// The file, or a directory on the way, does not exist.
    #[error("there is no such file or directory")]
    NotFound,
    /// A directory or something else that is no regular file.
    #[error("it is not a regular file")]
    NotAFile,
    /// The directory is served read-only.
    #[error("it takes no files (it was started without --files-write)")]
    TakesNone,
    /// The file system is read-only.
    #[error("it cannot be written: it is read-only")]
    ReadOnly,
    /// The disk is full, or a quota is used up.
    #[error("the disk is full")]
    NoSpace,
    /// The system denies access.
    #[error("permission denied")]
    PermissionDenied,
    /// Another transfer writes this file.
    #[error("another transfer is writing this file")]
    Busy,
    /// As many transfers as may go on at once do.
    #[error("too many transfers at once")]
    TooManyTransfers,
    /// It stood still while others waited, and gave way.
    #[error("the transfer stalled and made way for others that were waiting")]
    StoodStill,
    /// More than the limit.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// The part that is there is not the beginning of what the other side has.
    #[error("the partial file belongs to another file")]
    PrefixDiffers,
    /// The whole file arrived and its hash is another: it was changed on the way, or on one of the disks.
    #[error("the content does not match its checksum")]
    HashDiffers,
    /// The file changed while it was read.
    #[error("the file changed while it was read")]
    Changed,
    /// The transfer was interrupted: the stream failed.
    #[error("the transfer was interrupted: {0}")]
    Interrupted(#[source] io::Error),
    /// Something else.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for FileError {
    /// For errors of the file system.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => Self::NotAFile,
            _ => Self::Io(error),
        }
    }
}

impl FileError {
    /// The code of the reply that tells the peer.
    #[must_use]
    pub fn reply_code(&self) -> ReplyCode {
        match self {
            Self::Name(_) | Self::Link => ReplyCode::FileNameRefused,
            Self::NotFound => ReplyCode::FileNotFound,
            Self::NotAFile => ReplyCode::NotAFile,
            Self::TakesNone | Self::ReadOnly => ReplyCode::ReadOnly,
            Self::NoSpace => ReplyCode::NoSpace,
            Self::PermissionDenied => ReplyCode::PermissionDenied,
            Self::Busy | Self::TooManyTransfers | Self::StoodStill => ReplyCode::Busy,
            Self::TooLarge(_) => ReplyCode::FileTooLarge,
            Self::PrefixDiffers | Self::HashDiffers => ReplyCode::ContentDiffers,
            Self::Changed | Self::Interrupted(_) | Self::Io(_) => ReplyCode::FileFailure,
        }
    }
}

/// Why a `get` or `put` failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The name at the server is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The local file.
    #[error("{}", of_local(.0, .1))]
    Local(PathBuf, #[source] FileError),
    /// The server refused, with its code and text.
    #[error("{}", of_refusal(.0))]
    Refused(Reply),
    /// The server is not reachable.
    #[error(transparent)]
    Link(LinkError),
    /// The stream failed in the middle.
    #[error("the transfer was interrupted: {0}")]
    Interrupted(#[source] io::Error),
    /// The server's answer makes no sense.
    #[error("the server sent an invalid reply: {0}")]
    BadReply(#[source] HeadError),
    /// The file at the server changed while it was read.
    #[error("the file at the server changed while it was read")]
    RemoteChanged,
    /// The content does not match its checksum.
    #[error("the content does not match its checksum")]
    HashDiffers,
    /// What was fetched could not be written to where it should go on.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// What went on into a pipe is not the file, or its beginning; why.
    #[error("what was written is not the whole file and must not be used: {0}")]
    WroteOther(#[source] Box<TransferError>),
    /// Nothing more arrived in so many attempts; why the last one failed.
    #[error("gave up after {0} attempts: {1}")]
    GaveUp(u32, #[source] Box<TransferError>),
}

/// What is said of a local file.
fn of_local(path: &Path, error: &FileError) -> String {
    let path = path.display();
    match error {
        FileError::NoSpace => format!("{path}: the disk is full; what arrived is kept in {path}{PART}"),
        FileError::PrefixDiffers => format!("{path}{PART} is not the beginning of the file at the server"),
        error => format!("{path}: {error}"),
    }
}

/// What is said of a server's refusal.
fn of_refusal(reply: &Reply) -> String {
    match reply.code {
        ReplyCode::Busy => format!("the server is busy: {reply}"),
        _ => format!("the server refused: {reply}"),
    }
}

impl From<LinkError> for TransferError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Refused(reply) => Self::Refused(reply),
            other => Self::Link(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::error::Error;

    use super::*;

    #[test]
    fn what_failed_first_is_found_behind_what_is_said() {
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
        let local = TransferError::Local("file".into(), FileError::Interrupted(reset()));
        let error = TransferError::GaveUp(5, Box::new(local));
        assert!(
            error.to_string().starts_with("gave up after 5 attempts: file: the transfer was interrupted: ")
        );
        let mut first: &dyn Error = &error;
        while let Some(source) = first.source() {
            first = source;
        }
        let first = first.downcast_ref::<io::Error>();
        assert_eq!(first.map(io::Error::kind), Some(io::ErrorKind::ConnectionReset));
    }
}
