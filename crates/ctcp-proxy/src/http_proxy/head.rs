//! The head of a request: request line and fields, what they ask, and how they are rewritten.
//!
//! Strict where leniency is how requests are smuggled: CRLF only, no folded lines, no space before a colon, one
//! framing. Values are kept as the bytes they are.

use super::framing::Framing;
use super::local_page::LocalPage;
use super::{BAD_REQUEST, HttpError, HttpRequest, NOT_IMPLEMENTED, VERSION_NOT_SUPPORTED, bad_request};
use crate::address::TargetAddress;

/// Fields that belong to one hop (RFC 9110 section 7.6.1) or to proxies. `Transfer-Encoding` is one too, but the body
/// goes on as it came, so it stays.
const HOP_FIELDS: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-authentication-info",
    "te",
    "upgrade",
];

/// A field: its name, and its value without the space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a [u8],
}

impl Field<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The value's comma-separated parts, trimmed.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|part| !part.is_empty())
    }
}

/// Reads the lines behind the first one.
pub(super) fn parse_fields<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Field<'a>>, String> {
    lines.map(parse_field).collect()
}

fn parse_field(line: &[u8]) -> Result<Field<'_>, String> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or("a field without a colon")?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if !is_token(name) {
        return Err("a field name with a forbidden character".to_owned());
    }
    let value = value.trim_ascii();
    if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Err("a field value with a forbidden character".to_owned());
    }
    let name = core::str::from_utf8(name).map_err(|_| "a field name that is not ASCII")?;
    Ok(Field { name, value })
}

/// A token of RFC 9110 section 5.6.2.
fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Fields that go on to the next hop: neither of [`HOP_FIELDS`] nor named by `Connection`.
pub(super) fn end_to_end<'a>(fields: &'a [Field<'a>]) -> impl Iterator<Item = &'a Field<'a>> {
    let is_named = |name: &str| {
        let options = fields.iter().filter(|field| field.is("connection")).flat_map(Field::parts);
        // A sender cannot ask for a field that carries the framing or the host to be dropped.
        let is_kept = ["transfer-encoding", "content-length", "host"]
            .iter()
            .any(|kept| name.eq_ignore_ascii_case(kept));
        !is_kept && options.into_iter().any(|option| option.eq_ignore_ascii_case(name.as_bytes()))
    };
    fields.iter().filter(move |field| !HOP_FIELDS.iter().any(|hop| field.is(hop)) && !is_named(field.name))
}

/// Splits a head into its lines, without the empty one at its end.
pub(super) fn lines(head: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let head = head.strip_suffix(b"\r\n\r\n")?;
    let mut rest = Some(head);
    Some(core::iter::from_fn(move || {
        let bytes = rest?;
        let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
            rest = None;
            return Some(bytes);
        };
        rest = bytes.get(end + 2..);
        bytes.get(..end)
    }))
}

/// The head of a request.
#[derive(Debug)]
pub(super) struct Head<'a> {
    method: &'a str,
    target: &'a str,
    /// `HTTP/1.1` or `HTTP/1.0`, as the application speaks it.
    version: &'a str,
    fields: Vec<Field<'a>>,
}

impl<'a> Head<'a> {
    pub(super) fn parse(head: &'a [u8]) -> Result<Self, HttpError> {
        let mut lines = lines(head).ok_or_else(|| bad_request("the head does not end"))?;
        let first = lines.next().and_then(|line| core::str::from_utf8(line).ok());
        let mut parts = first.unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad_request("the first line is no request line"));
        };
        if !is_token(method.as_bytes())
            || target.is_empty()
            || !target.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(bad_request("the first line is no request line"));
        }
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            let text = "the proxy speaks HTTP/1.1 and HTTP/1.0".to_owned();
            return Err(HttpError::Status(VERSION_NOT_SUPPORTED, text));
        }
        let fields = parse_fields(lines).map_err(bad_request)?;
        Ok(Self { method, target, version, fields })
    }

    /// What it asks; `rest` are the bytes behind it.
    pub(super) fn into_request(self, rest: Vec<u8>) -> Result<HttpRequest, HttpError> {
        if self.method == "CONNECT" {
            return Ok(HttpRequest::Tunnel { target: self.target.parse()?, early: rest });
        }
        if self.target.starts_with('/') {
            let host = self.fields.iter().find(|field| field.is("host"));
            let host = host.and_then(|field| core::str::from_utf8(field.value).ok());
            return Ok(HttpRequest::Local(LocalPage::new(self.method, self.target, host)));
        }
        let (scheme, after) =
            self.target.split_once("://").ok_or_else(|| bad_request("the request has no absolute URL"))?;
        if !scheme.eq_ignore_ascii_case("http") {
            let text = format!("{scheme}:// goes through a proxy by CONNECT");
            return Err(HttpError::Status(NOT_IMPLEMENTED, text));
        }
        self.into_plain(after, rest)
    }

    fn into_plain(self, url: &str, mut rest: Vec<u8>) -> Result<HttpRequest, HttpError> {
        let end = url.find(['/', '?', '#']).unwrap_or(url.len());
        let (authority, path) = url.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(HttpError::Status(
                BAD_REQUEST,
                "a URL with a user in it (RFC 9110 section 4.2.4)".to_owned(),
            ));
        }
        let target = TargetAddress::parse_with_default(authority, Some(80))?;
        let mut framing = self.framing()?;

        let slash = if path.starts_with('/') { "" } else { "/" };
        let path = if self.method == "OPTIONS" && path.is_empty() {
            "*".to_owned()
        } else {
            format!("{slash}{path}")
        };
        let mut early =
            format!("{} {path} {}\r\nHost: {authority}\r\n", self.method, self.version).into_bytes();
        for field in end_to_end(&self.fields).filter(|field| !field.is("host")) {
            write_field(&mut early, field);
        }
        early.extend_from_slice(b"Connection: close\r\n\r\n");

        let of_body = framing.advance(&rest).map_err(|error| bad_request(error.to_string()))?;
        rest.truncate(of_body);
        early.append(&mut rest);
        Ok(HttpRequest::Plain { target, early, framing })
    }

    /// RFC 9112 section 6: by `Transfer-Encoding`, else by `Content-Length`, else there is no body. Anything that two
    /// readers could understand differently is refused.
    fn framing(&self) -> Result<Framing, HttpError> {
        let values = |name: &'static str| self.fields.iter().filter(move |field| field.is(name));
        let mut codings = values("transfer-encoding").flat_map(Field::parts);
        let mut lengths = values("content-length").flat_map(Field::parts);
        if let Some(coding) = codings.next() {
            if lengths.next().is_some() || self.version == "HTTP/1.0" {
                return Err(bad_request("two framings of one body"));
            }
            if !coding.eq_ignore_ascii_case(b"chunked") || codings.next().is_some() {
                return Err(HttpError::Status(
                    NOT_IMPLEMENTED,
                    "a transfer coding other than chunked".to_owned(),
                ));
            }
            return Ok(Framing::chunked());
        }
        let Some(length) = lengths.next() else { return Ok(Framing::Length(0)) };
        if lengths.any(|other| other != length) || !length.iter().all(u8::is_ascii_digit) {
            return Err(bad_request("two framings of one body"));
        }
        let length = core::str::from_utf8(length).ok().and_then(|digits| digits.parse().ok());
        length.map(Framing::Length).ok_or_else(|| bad_request("a Content-Length out of range"))
    }
}

pub(super) fn write_field(head: &mut Vec<u8>, field: &Field<'_>) {
    head.extend_from_slice(field.name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(field.value);
    head.extend_from_slice(b"\r\n");
}
