//! What can go wrong with a file, here or at the other side.

use core::fmt;
use std::io;
use std::path::PathBuf;

use super::NameError;
use super::name::PART;
use crate::link::LinkError;
use crate::request::{HeadError, Reply, ReplyCode};

/// Why a file cannot be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The name is none.
    Name(NameError),
    /// A component of the name is a link.
    Link,
    /// The file, or a directory on the way, does not exist.
    NotFound,
    /// A directory or something else that is no regular file.
    NotAFile,
    /// The directory is served read-only.
    TakesNone,
    /// The file system is read-only.
    ReadOnly,
    /// The disk is full, or a quota is used up.
    NoSpace,
    /// The system denies access.
    PermissionDenied,
    /// Another transfer writes this file.
    Busy,
    /// As many transfers as may go on at once do.
    TooManyTransfers,
    /// It stood still while others waited, and gave way.
    StoodStill,
    /// More than the limit.
    TooLarge(u64),
    /// The part that is there is not the beginning of what the other side has.
    PrefixDiffers,
    /// The whole file arrived and its hash is another: it was changed on the way, or on one of the disks.
    HashDiffers,
    /// The file changed while it was read.
    Changed,
    /// The transfer was interrupted: the stream failed.
    Interrupted(io::Error),
    /// Something else.
    Io(io::Error),
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(formatter),
            Self::Link => formatter.write_str("the name goes through a symbolic link"),
            Self::NotFound => formatter.write_str("there is no such file or directory"),
            Self::NotAFile => formatter.write_str("it is no regular file"),
            Self::TakesNone => {
                formatter.write_str("it takes no files (it was started without --files-write)")
            }
            Self::ReadOnly => formatter.write_str("it cannot be written: it is read-only"),
            Self::NoSpace => formatter.write_str("the disk is full"),
            Self::PermissionDenied => formatter.write_str("permission denied"),
            Self::Busy => formatter.write_str("another transfer is writing this file"),
            Self::TooManyTransfers => formatter.write_str("too many transfers go on at once"),
            Self::StoodStill => {
                formatter.write_str("the transfer stood still and gave way to others that waited")
            }
            Self::TooLarge(limit) => write!(formatter, "it has more than {limit} bytes"),
            Self::PrefixDiffers => formatter.write_str("the part that is there belongs to another content"),
            Self::HashDiffers => formatter.write_str("the content does not match its checksum"),
            Self::Changed => formatter.write_str("the file changed while it was read"),
            Self::Interrupted(error) => write!(formatter, "the transfer was interrupted: {error}"),
            Self::Io(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for FileError {}

impl From<NameError> for FileError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
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
#[derive(Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// The name at the server is none.
    Name(NameError),
    /// The local file.
    Local(PathBuf, FileError),
    /// The server refused, with its code and text.
    Refused(Reply),
    /// The server is not reachable.
    Link(LinkError),
    /// The stream failed in the middle.
    Interrupted(io::Error),
    /// The server's answer makes no sense.
    BadReply(HeadError),
    /// The file at the server changed while it was read.
    RemoteChanged,
    /// The content does not match its checksum.
    HashDiffers,
    /// What was fetched could not be written to where it should go on.
    Output(io::Error),
    /// What went on into a pipe is not the file, or its beginning; why.
    WroteOther(Box<TransferError>),
    /// Nothing more arrived in so many attempts; why the last one failed.
    GaveUp(u32, Box<TransferError>),
}

impl fmt::Display for TransferError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(formatter),
            Self::Local(path, FileError::NoSpace) => {
                let path = path.display();
                write!(formatter, "{path}: the disk is full; what arrived is kept in {path}{PART}")
            }
            Self::Local(path, FileError::PrefixDiffers) => {
                write!(formatter, "{}{PART} is not the beginning of the file at the server", path.display())
            }
            Self::Local(path, error) => write!(formatter, "{}: {error}", path.display()),
            Self::Refused(reply) if reply.code == ReplyCode::Busy => {
                write!(formatter, "the server is busy: {reply}")
            }
            Self::Refused(reply) => write!(formatter, "the server refused: {reply}"),
            Self::Link(error) => error.fmt(formatter),
            Self::Interrupted(error) => write!(formatter, "the transfer was interrupted: {error}"),
            Self::BadReply(error) => write!(formatter, "the server's answer makes no sense: {error}"),
            Self::RemoteChanged => formatter.write_str("the file at the server changed while it was read"),
            Self::HashDiffers => formatter.write_str("the content does not match its checksum"),
            Self::Output(error) => write!(formatter, "cannot write to standard output: {error}"),
            Self::WroteOther(why) => {
                write!(formatter, "what was written is not the file and must not be used: {why}")
            }
            Self::GaveUp(attempts, last) => write!(formatter, "gave up after {attempts} attempts: {last}"),
        }
    }
}

impl core::error::Error for TransferError {}

impl From<NameError> for TransferError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
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
