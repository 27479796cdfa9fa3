//! What a request asks of the proxy, and how it is rewritten for the next hop.

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, StatusCode, Uri, Version};

use super::page::Page;
use crate::address::{AddressError, TargetAddress};

/// Fields for one hop (RFC 9110 section 7.6.1) or for proxies. Bodies are framed anew for each hop.
const HOP_FIELDS: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    hyper::header::PROXY_AUTHENTICATE,
    hyper::header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-authentication-info"),
    hyper::header::TE,
    TRANSFER_ENCODING,
    hyper::header::UPGRADE,
    HeaderName::from_static("http2-settings"),
];

/// Fields that `Connection` cannot remove.
const KEPT_FIELDS: [HeaderName; 2] = [CONTENT_LENGTH, HOST];

/// The kind of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A tunnel to a target.
    Tunnel(TargetAddress),
    /// A plain request to a target, in absolute form.
    Plain(TargetAddress),
    /// A page of the proxy itself.
    Local,
}

impl Asked {
    pub(super) fn of(method: &Method, uri: &Uri) -> Result<Self, Page> {
        let invalid = |error: AddressError| Page::failure(StatusCode::BAD_REQUEST, error);
        let authority = uri.authority().map(|authority| authority.as_str());
        match (uri.scheme_str(), authority) {
            (None, Some(authority)) if method == Method::CONNECT => {
                authority.parse().map(Self::Tunnel).map_err(invalid)
            }
            _ if method == Method::CONNECT => {
                Err(Page::failure(StatusCode::BAD_REQUEST, "CONNECT takes HOST:PORT and nothing else"))
            }
            (Some("http"), Some(authority)) if authority.contains('@') => Err(Page::failure(
                StatusCode::BAD_REQUEST,
                "a URL with a user in it (RFC 9110 section 4.2.4)",
            )),
            (Some("http"), Some(authority)) => {
                TargetAddress::parse_with_default(authority, Some(80)).map(Self::Plain).map_err(invalid)
            }
            (Some(scheme), _) => {
                let text = format!("{scheme}:// goes through a proxy by CONNECT");
                Err(Page::failure(StatusCode::NOT_IMPLEMENTED, text))
            }
            (None, None) => Ok(Self::Local),
            (None, Some(_)) => Err(Page::failure(StatusCode::BAD_REQUEST, "the request has no absolute URL")),
        }
    }
}

/// Refuses ambiguous framing: a body of CONNECT, which would be taken for the tunnel's first bytes (RFC 9110 section
/// 9.3.6), and codings that this proxy does not decode (RFC 9112 section 6.1).
pub(super) fn check_framing<B>(request: &Request<B>) -> Result<(), Page> {
    let headers = request.headers();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if request.method() == Method::CONNECT {
        let has_length =
            headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes().trim_ascii() != b"0");
        if has_length || headers.contains_key(TRANSFER_ENCODING) {
            return Err(Page::failure(StatusCode::BAD_REQUEST, "CONNECT has no body"));
        }
    }
    match codings.all(is_chunked) {
        true => Ok(()),
        false => {
            Err(Page::failure(StatusCode::NOT_IMPLEMENTED, "a body may be chunked and nothing else")
                .and_close())
        }
    }
}

/// Converts a request in absolute form to the target's: origin form, the target's `Host`, no hop-by-hop fields.
pub(super) fn rewrite(head: &mut Parts) {
    strip_hop_fields(&mut head.headers);
    if head.version == Version::HTTP_10 {
        head.headers.remove(EXPECT); // undefined for HTTP/1.0 (RFC 9110 section 10.1.1)
    }
    head.version = Version::HTTP_11;
    if let Some(host) = head.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        head.headers.insert(HOST, host);
    }
    let path = match head.uri.path_and_query() {
        Some(path) if path.as_str().starts_with('/') => path.clone(),
        Some(query) => format!("/{}", query.as_str()).parse().unwrap_or(PathAndQuery::from_static("/")),
        None => PathAndQuery::from_static("/"),
    };
    head.uri = Uri::from(path);
}

/// Removes the fields that are not for the next hop: [`HOP_FIELDS`] and those that `Connection` names.
pub(super) fn strip_hop_fields(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in HOP_FIELDS.iter().chain(named.iter().filter(|name| !KEPT_FIELDS.contains(name))) {
        headers.remove(name);
    }
}

/// Returns true if a request may be repeated after a kept connection was closed (RFC 9112 section 9.3.1).
pub(super) fn is_repeatable(method: &Method) -> bool {
    method.is_idempotent()
}
