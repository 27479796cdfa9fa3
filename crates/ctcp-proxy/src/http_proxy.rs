//! The HTTP/1.1 proxy (RFC 9110, RFC 9112), over hyper.
//!
//! ```text
//!  CONNECT host:443 HTTP/1.1            a tunnel, as browsers and curl use for https
//!  GET http://host/path HTTP/1.1        a plain request, rewritten and forwarded (`http_proxy=` of curl, wget and apt)
//!  GET /proxy.pac HTTP/1.1              a request to the proxy itself
//! ```
//!
//! A connection of an application carries any number of plain requests, to one or several targets; the stream to the
//! last target is kept for the next request. hyper parses and frames both sides anew, so data after a request never
//! reaches a server that it was not meant for. Bodies are streamed in both directions with backpressure. Heads are
//! bounded by [`HEAD_BYTES_MAX`].
//!
//! Requirement: C7

use core::convert::Infallible;
use core::error::Error;
use core::future::poll_fn;
use core::pin::Pin;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderValue, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;

use crate::address::TargetAddress;
use crate::coded::{CodedConnection, CodedStream};
use crate::counters::Counters;
use crate::link::{LinkError, Opened};
use crate::request::ReplyCode;
use crate::splice::SpliceEnd;
use crate::unanswered::{Unanswered, request_failure};

mod application;
mod asked;
mod body;
mod local_page;
mod page;
mod upstream;

pub use local_page::{Failed, LocalStatus, ServerStatus};

use application::{Answering, Application, Course};
use asked::Asked;
use body::{RequestBody, ResponseBody};
use page::Page;
use upstream::Upstream;

/// The longest head of a request or response in bytes, and the most that a direction of a connection buffers. Browsers
/// and servers accept 8 to 64 KiB.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A connection without a request is closed after this time. Browsers keep theirs for one to five minutes, and retry on
/// another one if it was closed.
const IDLE_TIME: Duration = Duration::from_secs(60);

/// The streams of a proxy's connections.
type StreamOf<P> = <<P as Proxy>::Connection as CodedConnection>::Stream;

/// What the HTTP proxy needs from its environment.
pub trait Proxy: Sync {
    /// The connection that carries streams.
    type Connection: CodedConnection;

    /// Opens a stream to a target and waits until it is connected.
    fn connect(
        &self,
        target: &TargetAddress,
    ) -> impl Future<Output = Result<Opened<Self::Connection>, LinkError>> + Send;

    /// Opens a stream to a target. Whether the target is reached may only be known after the first data was sent.
    fn open(
        &self,
        target: &TargetAddress,
    ) -> impl Future<Output = Result<Unanswered<StreamOf<Self>>, LinkError>> + Send {
        async { self.connect(target).await.map(|opened| Unanswered::answered(opened.stream)) }
    }

    /// Returns true if a tunnel to this target is granted before it is known whether the target is reached.
    fn greets_at_once(
        &self,
        _target: &TargetAddress,
    ) -> impl Future<Output = Result<bool, LinkError>> + Send {
        async { Ok(false) }
    }

    /// Reports that a stream of [`Self::open`] did not reach its target.
    fn on_unreached(&self, _target: &TargetAddress, _error: &LinkError) {}

    /// Reports that a target was reached but did not answer, with the reason in a sentence.
    fn on_failed(&self, target: &TargetAddress, reason: &str);

    /// The current content of the status page.
    fn status(&self) -> LocalStatus;

    /// The counters of the proxy.
    fn counters(&self) -> &Arc<Counters>;
}

/// How a connection of an application ended.
pub enum Served<S, C: CodedConnection> {
    /// All requests were answered; the connection is to be closed.
    Done(S),
    /// The application requested a tunnel and got a positive response.
    Tunnel {
        /// The connection.
        application: S,
        /// Data that the application sent after its request and that belongs into the tunnel.
        early: Vec<u8>,
        /// Where it leads.
        to: Tunnel<C>,
    },
}

/// The other end of a granted tunnel.
pub enum Tunnel<C: CodedConnection> {
    /// The stream to the target.
    Opened(Opened<C>),
    /// The target, which is still to be reached.
    Target(TargetAddress),
}

/// Serves one connection of an application, accepted at `local`. The first request must arrive within `patience`.
///
/// # Errors
/// Returns an error if the connection failed, a response was cut off (then it is reset), or no request arrived in time.
pub async fn serve<S, P>(
    application: S,
    local: SocketAddr,
    proxy: &P,
    patience: Duration,
) -> io::Result<Served<S, P::Connection>>
where
    S: SpliceEnd,
    P: Proxy,
{
    let course = Course::new();
    let conversation =
        Conversation { proxy, local, course: &course, kept: Mutex::default(), tunnel: Mutex::new(None) };
    let service = service_fn(|request| -> Pin<Box<dyn Future<Output = _> + Send + '_>> {
        let answering = conversation.course.begin(); // at once, not when the future is first polled
        Box::pin(async { Ok::<_, Infallible>(conversation.answer(request, answering).await) })
    });
    let mut connection = http1::Builder::new()
        .auto_date_header(false)
        .preserve_header_case(true)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Application::new(application, course.clone())), service);
    let outcome = tokio::select! {
        outcome = poll_fn(|context| connection.poll_without_shutdown(context)) => outcome,
        () = course.idle(patience, IDLE_TIME) => Ok(()),
    };
    let parts = connection.into_parts();
    let application = parts.io.into_inner().into_inner().await;
    let tunnel = lock(&conversation.tunnel).take();
    match (outcome, application) {
        // Invalid requests have been answered with an error.
        (Err(error), Some(application)) if error.is_parse() => {
            tracing::debug!(%error, "an application sent something that is no HTTP request");
            Ok(Served::Done(application))
        }
        (Err(error), _) => Err(io::Error::other(error)),
        (Ok(()), None) => Err(io::ErrorKind::ConnectionAborted.into()),
        (Ok(()), Some(application)) => Ok(match tunnel {
            Some(to) => Served::Tunnel { application, early: parts.read_buf.to_vec(), to },
            None => Served::Done(application),
        }),
    }
}

/// What the requests of one connection share.
struct Conversation<'a, P: Proxy> {
    proxy: &'a P,
    local: SocketAddr,
    course: &'a Arc<Course>,
    /// The stream to the target of the last plain request.
    kept: Mutex<Option<Upstream>>,
    /// A granted tunnel. It starts when the response has been written.
    tunnel: Mutex<Option<Tunnel<P::Connection>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Proxy> Conversation<'_, P> {
    async fn answer(&self, request: Request<Incoming>, answering: Answering) -> Response<ResponseBody> {
        let is_head = request.method() == hyper::Method::HEAD;
        let answer =
            match asked::check_framing(&request).and_then(|()| Asked::of(request.method(), request.uri())) {
                Ok(Asked::Local) => Err(local_page::answer(&request, self.local, || self.proxy.status())),
                Ok(Asked::Tunnel(target)) => self.open_tunnel(&target).await,
                Ok(Asked::Plain(target)) => match self.forward(request, target).await {
                    Ok((response, upstream)) => return self.pass(response, upstream, answering),
                    Err(page) => Err(page),
                },
                Err(page) => Err(page),
            };
        match answer {
            Ok(head) => head.map(|()| ResponseBody::page("", answering)),
            Err(page) => page.into_response(is_head, answering),
        }
    }

    async fn open_tunnel(&self, target: &TargetAddress) -> Result<Response<()>, Page> {
        let fail = |error| unreached(&error).and_close();
        let tunnel = if self.proxy.greets_at_once(target).await.map_err(fail)? {
            Tunnel::Target(target.clone())
        } else {
            // Data that the application sends because it assumes a tunnel must not be read as a request.
            Tunnel::Opened(self.proxy.connect(target).await.map_err(fail)?)
        };
        *lock(&self.tunnel) = Some(tunnel);
        let mut head = Response::new(());
        head.extensions_mut().insert(ReasonPhrase::from_static(b"Connection established"));
        Ok(head)
    }

    /// Forwards a request to its target, over the kept stream if it leads there.
    async fn forward(
        &self,
        request: Request<Incoming>,
        target: TargetAddress,
    ) -> Result<(Response<Incoming>, Upstream), Page> {
        let (mut head, incoming) = request.into_parts();
        asked::rewrite(&mut head);
        let go_ahead = head.headers.get(EXPECT).map(|_| Arc::new(Notify::new()));
        let body = RequestBody::new(incoming, self.course.clone(), go_ahead.clone());
        let again = repeatable(&head, &body);
        let mut request = Request::from_parts(head, body);
        if let Some(go_ahead) = go_ahead {
            hyper::ext::on_informational(&mut request, move |response| {
                if response.status() == StatusCode::CONTINUE {
                    go_ahead.notify_one();
                }
            });
        }
        if let Some(mut upstream) = self.take_kept(&target).await {
            match upstream.ask(request).await {
                Ok(response) => return Ok((response, upstream)),
                Err(unanswered) => {
                    let again = unanswered.unsent.or_else(|| repeated(again.as_ref()));
                    request = again.ok_or_else(|| self.unanswered(&target, &unanswered.error))?;
                }
            }
        }
        let stream = if again.is_some() {
            self.proxy.open(&target).await.map_err(|error| unreached(&error))?
        } else {
            // What cannot be repeated waits until the target is connected.
            let opened = self.proxy.connect(&target).await.map_err(|error| unreached(&error))?;
            Unanswered::answered(opened.stream)
        };
        match self.ask(&target, stream, request).await {
            Err(error) if is_lost(&error) && again.is_some() => {
                // The connection to the server was lost before the reply, for example because the server restarted.
                let request = repeated(again.as_ref()).ok_or_else(|| self.unanswered(&target, &error))?;
                let opened = self.proxy.connect(&target).await.map_err(|error| unreached(&error))?;
                let stream = Unanswered::answered(opened.stream);
                self.ask(&target, stream, request).await.map_err(|error| self.unanswered(&target, &error))
            }
            answer => answer.map_err(|error| self.unanswered(&target, &error)),
        }
    }

    /// Sends a request over a new stream and waits for the head of the response.
    async fn ask<S: CodedStream>(
        &self,
        target: &TargetAddress,
        stream: S,
        request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Upstream), hyper::Error> {
        let (counters, course) = (self.proxy.counters().clone(), self.course.clone());
        let mut upstream = Upstream::new(target.clone(), stream, counters, course).await?;
        let response = upstream.ask(request).await.map_err(|unanswered| unanswered.error)?;
        Ok((response, upstream))
    }

    async fn take_kept(&self, target: &TargetAddress) -> Option<Upstream> {
        let mut kept = lock(&self.kept).take().filter(|kept| kept.target == *target)?;
        kept.is_ready().await.then_some(kept)
    }

    /// The response to an application whose target did not answer.
    fn unanswered(&self, target: &TargetAddress, error: &hyper::Error) -> Page {
        if let Some(failure) = error.source().and_then(request_failure) {
            self.proxy.on_unreached(target, failure);
            return unreached(failure).and_close();
        }
        let reason = match error.source() {
            _ if error.is_parse() => format!("{target} answered with something that is no HTTP response"),
            Some(source) => format!("the connection to {target} was cut before it had answered: {source}"),
            None => format!("{target} closed the connection before it had answered"),
        };
        self.proxy.on_failed(target, &reason);
        Page::failure(StatusCode::BAD_GATEWAY, reason).and_close()
    }

    /// Turns a target's response into the one for the application.
    fn pass(
        &self,
        response: Response<Incoming>,
        upstream: Upstream,
        answering: Answering,
    ) -> Response<ResponseBody> {
        let (mut head, incoming) = response.into_parts();
        if head.status.is_informational() || has_other_coding(&head.headers) {
            let text =
                "the target answered with something that this proxy did not ask for and does not pass on";
            return Page::failure(StatusCode::BAD_GATEWAY, text).and_close().into_response(false, answering);
        }
        if head.headers.contains_key(TRANSFER_ENCODING) {
            head.headers.remove(CONTENT_LENGTH); // two framings: hyper used the first
        }
        asked::strip_hop_fields(&mut head.headers);
        if self.course.is_held() {
            // Only the application knows whether it will send the body anyway.
            head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        head.version = Version::HTTP_11;
        let body = ResponseBody::passing(incoming, self.course.clone(), upstream.is_cut(), answering);
        *lock(&self.kept) = Some(upstream);
        Response::from_parts(head, body)
    }
}

/// Returns true if a body has another coding than `chunked`, which hyper has decoded.
fn has_other_coding(headers: &hyper::HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Returns true if the connection to the server was lost before the server had replied.
fn is_lost(error: &hyper::Error) -> bool {
    matches!(error.source().and_then(request_failure), Some(LinkError::Lost(_)))
}

/// Returns the request once more, from a copy of its head.
fn repeated(head: Option<&Parts>) -> Option<Request<RequestBody>> {
    head.map(|head| Request::from_parts(head.clone(), RequestBody::empty()))
}

/// Copies the head of a request without a body if the request may be sent twice.
fn repeatable(head: &Parts, body: &RequestBody) -> Option<Parts> {
    (asked::is_repeatable(&head.method) && hyper::body::Body::is_end_stream(body)).then(|| head.clone())
}

/// The response to an application if there is no stream to its target.
fn unreached(error: &LinkError) -> Page {
    let status = match error {
        LinkError::Unreachable(_) | LinkError::NotAdmitted(_) => StatusCode::SERVICE_UNAVAILABLE,
        error => status_of(error.code()),
    };
    Page::failure(status, error)
}

/// The HTTP status that corresponds to a reply of the server.
fn status_of(code: ReplyCode) -> StatusCode {
    match code {
        ReplyCode::NotAllowed => StatusCode::FORBIDDEN,
        ReplyCode::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        ReplyCode::TooManyStreams => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

#[cfg(test)]
mod tests;
