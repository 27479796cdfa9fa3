//! Errors of files, on this side and on the other.

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
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A component of the name is a link.
    #[error("the name goes through a symbolic link")]
    Link,
    /// The file, or a directory on its path, does not exist.
    #[error("there is no such file or directory")]
    NotFound,
    /// It is a directory or something else that is not a regular file.
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
    /// The limit of simultaneous transfers is reached.
    #[error("too many transfers at once")]
    TooManyTransfers,
    /// The transfer stalled while others waited, and was stopped.
    #[error("the transfer stalled and made way for others that were waiting")]
    StoodStill,
    /// The file is larger than the limit.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// The existing part is not the beginning of the other side's file.
    #[error("the partial file belongs to another file")]
    PrefixDiffers,
    /// The whole file arrived, but its hash differs: it was changed in transit or on one of the disks.
    #[error("the content does not match its checksum")]
    HashDiffers,
    /// The file changed while it was being read.
    #[error("the file changed while it was read")]
    Changed,
    /// The transfer was interrupted: the stream failed.
    #[error("the transfer was interrupted: {0}")]
    Interrupted(#[source] io::Error),
    /// Any other error.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for FileError {
    /// Converts an error of the file system.
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
    /// The code of the reply to the peer.
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
    /// The name at the server is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The local file cannot be read or written.
    #[error("{}", of_local(.0, .1))]
    Local(PathBuf, #[source] FileError),
    /// The server refused the request, with its code and text.
    #[error("{}", of_refusal(.0))]
    Refused(Reply),
    /// The server is not reachable.
    #[error(transparent)]
    Link(LinkError),
    /// The stream failed during the transfer.
    #[error("the transfer was interrupted: {0}")]
    Interrupted(#[source] io::Error),
    /// The server's reply is invalid.
    #[error("the server sent an invalid reply: {0}")]
    BadReply(#[source] HeadError),
    /// The file at the server changed while it was being read.
    #[error("the file at the server changed while it was read")]
    RemoteChanged,
    /// The content does not match its checksum.
    #[error("the content does not match its checksum")]
    HashDiffers,
    /// The fetched data could not be written to standard output.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// The data written into a pipe is not the file or its beginning; contains the reason.
    #[error("what was written is not the whole file and must not be used: {0}")]
    WroteOther(#[source] Box<TransferError>),
    /// No byte arrived in this many attempts; contains the last error.
    #[error("gave up after {0} attempts: {1}")]
    GaveUp(u32, #[source] Box<TransferError>),
}

/// The message for an error of a local file.
fn of_local(path: &Path, error: &FileError) -> String {
    let path = path.display();
    match error {
        FileError::NoSpace => format!("{path}: the disk is full; what arrived is kept in {path}{PART}"),
        FileError::PrefixDiffers => format!("{path}{PART} is not the beginning of the file at the server"),
        error => format!("{path}: {error}"),
    }
}

/// The message for a refusal of the server.
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
    fn an_error_keeps_its_source() {
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
