//! `--metrics ADDR:PORT`: the counters of the libraries for Prometheus, in the text format of OpenMetrics.
//!
//! No values are stored here: they are read for each request.

mod figures;

use core::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::debug;

use crate::error::CliError;
pub(crate) use figures::{LinkFigures, RelayFigures, ServerFigures};

/// The maximum number of connections; further ones wait. A scraper has one.
const CONNECTIONS_MAX: usize = 16;

/// A connection without a request is closed after this time.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);

/// The pause after a failed accept, for example when no descriptors are left.
const ACCEPT_REST: Duration = Duration::from_millis(100);

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The listener for metrics, if there is one.
#[derive(Debug)]
pub(crate) struct Listener(Option<StdListener>);

/// Binds the port at `address`, if there is one, so that a port in use is reported at once.
pub(crate) fn start(address: Option<SocketAddr>) -> Result<Listener, CliError> {
    let Some(address) = address else { return Ok(Listener(None)) };
    listen(address).map_err(|error| cannot_serve(address, &error))
}

/// The same for a command that may run alongside others with the same options: if the port is in use, another command
/// serves it.
pub(crate) fn start_if_free(address: Option<SocketAddr>) -> Result<Listener, CliError> {
    let Some(address) = address else { return Ok(Listener(None)) };
    match listen(address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            debug!(%address, "another program serves metrics there");
            Ok(Listener(None))
        }
        listener => listener.map_err(|error| cannot_serve(address, &error)),
    }
}

fn listen(address: SocketAddr) -> io::Result<Listener> {
    let listener = StdListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(Listener(Some(listener)))
}

fn cannot_serve(address: SocketAddr, error: &io::Error) -> CliError {
    CliError::failure(format!("cannot serve metrics on {address}: {error}"))
}

/// Serves `figures` until the returned set is dropped.
pub(crate) fn publish(listener: Listener, figures: impl Collector) -> Result<JoinSet<()>, CliError> {
    let mut tasks = JoinSet::new();
    let Some(listener) = listener.0 else { return Ok(tasks) };
    let listener = TcpListener::from_std(listener)
        .map_err(|error| CliError::failure(format!("cannot serve metrics: {error}")))?;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(figures));
    tasks.spawn(serve(listener, Arc::new(registry)));
    Ok(tasks)
}

async fn serve(listener: TcpListener, registry: Arc<Registry>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let registry = registry.clone();
                tasks.spawn(async move {
                    answer(stream, &registry).await;
                    drop(place);
                });
            }
            Err(error) => {
                debug!(%error, "no connection for metrics");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, registry: &Registry) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path(), registry);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(REQUEST_PATIENCE);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        debug!(%error, "a connection for metrics failed");
    }
}

fn respond(method: &Method, path: &str, registry: &Registry) -> Response<String> {
    let mut text = String::new();
    let status = match (method, path) {
        (&(Method::GET | Method::HEAD), "/metrics") => {
            match prometheus_client::encoding::text::encode(&mut text, registry) {
                Ok(()) => StatusCode::OK,
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
            }
        }
        (&(Method::GET | Method::HEAD), _) => StatusCode::NOT_FOUND,
        _ => StatusCode::METHOD_NOT_ALLOWED,
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    if status == StatusCode::OK {
        response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
    } else {
        *response.body_mut() = format!("{status}: metrics are at /metrics\n");
    }
    response
}
