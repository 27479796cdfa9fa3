//! The heads of file transfers (PROTOCOL.md section 10).
//!
//! ```text
//!  GET   name length (16), name, have (64), identity: size (64), modified (64)
//!        reply: size (64), modified (64), start (64)            start: 0, or `have` when the identity is the same
//!  PUT   name length (16), name, identity: size (64), modified (64)
//!        reply: start (64)                                      what the server has of this very file
//! ```

use super::body::{Body, BodyError, put_text};
use super::{HeadError, Reply, ReplyCode};

/// Distinguishes versions of a file without reading it. Only the hash at the end proves the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileIdentity {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change in nanoseconds since 1970 (two's complement on the wire; 0 if unknown).
    pub modified: i64,
}

impl FileIdentity {
    fn write(self, body: &mut Vec<u8>) {
        body.extend(self.size.to_be_bytes());
        body.extend(self.modified.to_be_bytes());
    }

    fn parse(body: &mut Body<'_>) -> Result<Self, BodyError> {
        Ok(Self { size: body.u64()?, modified: body.u64()?.cast_signed() })
    }
}

/// A request to send a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetRequest {
    /// The name of the file, not validated yet.
    pub name: String,
    /// How many bytes the client already has of the content with the identity below.
    pub have: u64,
    /// The content of which the client has a part; meaningless if `have` is 0.
    pub identity: FileIdentity,
}

impl GetRequest {
    pub(super) fn write(&self, body: &mut Vec<u8>) {
        put_text(body, &self.name);
        body.extend(self.have.to_be_bytes());
        self.identity.write(body);
    }

    pub(super) fn parse(body: &mut Body<'_>) -> Result<Self, BodyError> {
        let name = body.text()?.to_owned();
        Ok(Self { name, have: body.u64()?, identity: FileIdentity::parse(body)? })
    }
}

/// The reply to an accepted [`GetRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetAccepted {
    /// The content that follows.
    pub identity: FileIdentity,
    /// The first byte that follows: 0, or `have` of the request.
    pub start: u64,
}

impl GetAccepted {
    /// Encodes it as a reply.
    #[must_use]
    pub fn reply(self) -> Reply {
        let mut body = Vec::new();
        self.identity.write(&mut body);
        body.extend(self.start.to_be_bytes());
        Reply { code: ReplyCode::Succeeded, body }
    }

    /// Decodes it from a successful reply.
    ///
    /// # Errors
    /// Returns an error if the body holds something else.
    pub fn from_reply(reply: &Reply) -> Result<Self, HeadError> {
        let mut body = Body::new(&reply.body);
        let accepted = Self { identity: FileIdentity::parse(&mut body)?, start: body.u64()? };
        body.end()?;
        Ok(accepted)
    }
}

/// A request to receive a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutRequest {
    /// The name at the server, not validated yet.
    pub name: String,
    /// The content of the client's file.
    pub identity: FileIdentity,
}

impl PutRequest {
    pub(super) fn write(&self, body: &mut Vec<u8>) {
        put_text(body, &self.name);
        self.identity.write(body);
    }

    pub(super) fn parse(body: &mut Body<'_>) -> Result<Self, BodyError> {
        Ok(Self { name: body.text()?.to_owned(), identity: FileIdentity::parse(body)? })
    }
}

/// The reply to an accepted [`PutRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutAccepted {
    /// The first byte to send: the number of bytes that the server already has of this content.
    pub start: u64,
}

impl PutAccepted {
    /// Encodes it as a reply.
    #[must_use]
    pub fn reply(self) -> Reply {
        Reply { code: ReplyCode::Succeeded, body: self.start.to_be_bytes().to_vec() }
    }

    /// Decodes it from a successful reply.
    ///
    /// # Errors
    /// Returns an error if the body holds something else.
    pub fn from_reply(reply: &Reply) -> Result<Self, HeadError> {
        let mut body = Body::new(&reply.body);
        let start = body.u64()?;
        body.end()?;
        Ok(Self { start })
    }
}
