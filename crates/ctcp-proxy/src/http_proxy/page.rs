//! Responses of the proxy itself.

use core::fmt;

use ctcp_base::Escaped;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::application::Answering;
use super::body::ResponseBody;

/// A status, fields and a text.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, &'static str)>,
    pub(super) text: String,
}

impl PartialEq for Page {
    fn eq(&self, other: &Self) -> bool {
        (self.status, &self.text) == (other.status, &other.text)
    }
}

impl Page {
    /// A page that is not cached, runs no scripts and cannot be framed.
    pub(super) fn new(status: StatusCode, content_type: &'static str, text: String) -> Self {
        let headers = vec![
            (CONTENT_TYPE, content_type),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (
                CONTENT_SECURITY_POLICY,
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
            ),
        ];
        Self { status, headers, text }
    }

    /// A failure with its reason in a sentence. The connection ends after an invalid request, since further data would
    /// be invalid too.
    pub(super) fn failure(status: StatusCode, reason: impl fmt::Display) -> Self {
        let text = format!("ctcp: {}\n", Escaped(&reason.to_string()));
        let page = Self::new(status, "text/plain; charset=utf-8", text);
        if status == StatusCode::BAD_REQUEST { page.and_close() } else { page }
    }

    /// Ends the connection after the response.
    pub(super) fn and_close(mut self) -> Self {
        self.headers.push((CONNECTION, "close"));
        self
    }

    /// Lists the allowed methods.
    pub(super) fn allowing(mut self, methods: &'static str) -> Self {
        self.headers.push((ALLOW, methods));
        self
    }

    /// Converts the page to a response, without its body for HEAD.
    pub(super) fn into_response(self, is_head: bool, answering: Answering) -> Response<ResponseBody> {
        let Self { status, headers, text } = self;
        let length = HeaderValue::from(text.len());
        let text = if is_head { String::new() } else { text };
        let mut response = Response::new(ResponseBody::page(text, answering));
        *response.status_mut() = status;
        let fields = headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(fields.chain([(CONTENT_LENGTH, length)]));
        response
    }
}
