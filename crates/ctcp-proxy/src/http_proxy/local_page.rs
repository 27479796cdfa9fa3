//! Pages of the proxy itself: `/proxy.pac` for the automatic configuration of browsers and systems, and a status page.
//!
//! Every web page in a browser can send requests here, and a page whose name resolves to this machine (DNS rebinding)
//! could read the responses. So the pages are served only for `Host` names of this machine that no one else can own.

use core::fmt::Write;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

use ctcp_base::Escaped;
use hyper::header::HOST;
use hyper::{Method, Request, StatusCode, Version};

use super::page::Page;
use crate::address::{Host, split_port};
use crate::coded::{PathHealth, PathState, PathSummary};
use crate::failures::time_of_day;

/// The content of the pages.
#[derive(Clone, Debug, Default)]
pub struct LocalStatus {
    /// The connection to the server.
    pub server: ServerStatus,
    /// The address of the SOCKS5 listener, if there is one.
    pub socks5: Option<SocketAddr>,
    /// Names and values of counters.
    pub numbers: Vec<(&'static str, u64)>,
    /// Bytes from targets so far.
    pub from_targets: u64,
    /// Bytes to targets so far.
    pub to_targets: u64,
    /// Recent failures, the latest first.
    pub failed: Vec<Failed>,
}

/// The state of the connection to the server.
#[derive(Clone, Debug, Default)]
pub struct ServerStatus {
    /// The server as configured, and its current address if that differs.
    pub address: String,
    /// Whether the connection is established.
    pub is_connected: bool,
    /// Why it is not, if known.
    pub last_error: Option<String>,
    /// Whether that error is an answer of the server.
    pub has_answered: bool,
    /// How long the server has been silent since it was last sent something that needs an answer.
    pub silent: Option<Duration>,
    /// Measurements of the path, if there are any.
    pub path: Option<PathHealth>,
    /// The open paths.
    pub paths: Vec<PathSummary>,
    /// Bits per second from targets, over the last seconds.
    pub downstream: f64,
    /// Bits per second to targets.
    pub upstream: f64,
}

/// A failure, once or several times with the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The target.
    pub target: String,
    /// The reason in a sentence.
    pub reason: String,
    /// When it failed last.
    pub last: SystemTime,
    /// How often it failed.
    pub times: u64,
}

/// A shorter silence is not shown: a lost packet can take a second to repair.
const SILENCE_WORTH_SAYING: Duration = Duration::from_secs(2);

/// Seconds until a browser reloads the page.
const REFRESH: u64 = 2;

/// Answers a request for a page of the proxy, which was accepted at `local`.
pub(super) fn answer<B>(
    request: &Request<B>,
    local: SocketAddr,
    status: impl FnOnce() -> LocalStatus,
) -> Page {
    let host = match own_host(request, local) {
        Ok(host) => host,
        Err(page) => return page,
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Page::failure(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD here").allowing("GET, HEAD");
    }
    match request.uri().path() {
        "/proxy.pac" | "/wpad.dat" => {
            let text = pac(&host, local, status().socks5);
            Page::new(StatusCode::OK, "application/x-ns-proxy-autoconfig", text)
        }
        "/" => Page::new(StatusCode::OK, "text/html; charset=utf-8", html(&status(), time_of_day())),
        _ => Page::failure(StatusCode::NOT_FOUND, "there are / and /proxy.pac"),
    }
}

/// Checks that the `Host` of a request is this machine and returns it: an address of this machine or a name of
/// loopback.
fn own_host<B>(request: &Request<B>, local: SocketAddr) -> Result<String, Page> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, further) = (hosts.next(), hosts.next());
    match host {
        // Browsers always send Host.
        None if request.version() == Version::HTTP_10 => Ok(local.to_string()),
        None => Err(Page::failure(StatusCode::BAD_REQUEST, "the request has no Host (RFC 9112 section 3.2)")),
        Some(_) if further.is_some() => {
            Err(Page::failure(StatusCode::BAD_REQUEST, "the request has more than one Host"))
        }
        Some(host) => {
            let host = host.to_str().ok().filter(|host| is_own(host, local));
            host.map(str::to_owned).ok_or_else(|| {
                let text = format!("the pages of this proxy are at http://{local}/ and under no other name");
                Page::failure(StatusCode::MISDIRECTED_REQUEST, text)
            })
        }
    }
}

fn is_own(host: &str, local: SocketAddr) -> bool {
    let Ok((host, port)) = split_port(host) else { return false };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    match Host::parse(host) {
        Ok(Host::Address(ip)) => {
            ip.to_canonical().is_loopback() || ip.to_canonical() == local.ip().to_canonical()
        }
        // Names below `localhost` always resolve to loopback (RFC 6761 section 6.3).
        Ok(Host::Name(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Err(_) => false,
    }
}

/// Sends everything through the proxy except nearby addresses; names and addresses mean what they mean at the server.
/// Names are not resolved here, neither for the decision nor by SOCKS5, which is therefore listed first.
fn pac(host: &str, local: SocketAddr, socks5: Option<SocketAddr>) -> String {
    let socks5 = socks5.and_then(|address| seen_from(local.ip(), address));
    let socks5 = socks5.map_or_else(String::new, |address| format!("SOCKS5 {address}; "));
    format!("{PAC_START}  return \"{socks5}PROXY {host}\";\n}}\n")
}

const PAC_START: &str = r#"function FindProxyForURL(url, host) {
  var name = host.toLowerCase().replace(/^\[|\]$|\.$/g, "");
  if (name.indexOf(":") >= 0) {
    // IPv6: loopback, unique local, link-local.
    if (/^(::1?$|f[cd][0-9a-f]{2}:|fe[89ab][0-9a-f]:)/.test(name)) return "DIRECT";
  } else if (name.indexOf(".") < 0 || /\.(localhost|local)$/.test(name)) {
    return "DIRECT";
  } else if (/^(0|10|127|169\.254|192\.168|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.[\d.]+$/.test(name)) {
    // This machine, private networks (RFC 1918), link-local, a carrier's own (RFC 6598).
    return "DIRECT";
  }
"#;

/// The address of our listener as seen by a client that reached us at `local`, if it is reachable for it.
fn seen_from(local: IpAddr, address: SocketAddr) -> Option<SocketAddr> {
    let (local, ip) = (local.to_canonical(), address.ip());
    if ip.is_unspecified() {
        return Some(SocketAddr::new(local, address.port()));
    }
    (ip == local || (ip.is_loopback() && local.is_loopback())).then_some(address)
}

fn html(status: &LocalStatus, now: SystemTime) -> String {
    let LocalStatus { server, socks5, numbers, from_targets, to_targets, failed } = status;
    let mut page = format!(
        "{HTML_START}<meta http-equiv=\"refresh\" content=\"{REFRESH}\">{STYLE}<h1>ctcp proxy</h1>\n"
    );
    let (class, headline) = headline(server);
    let _ = writeln!(page, "<p class=\"state {class}\">{}</p>", escape(&headline));
    let errors = format!("<h2>Last errors</h2>\n{}", failures(failed, now));
    // Errors come first if there are any: they are what a reader looks for.
    let (above, below) = if failed.is_empty() { ("", &errors[..]) } else { (&errors[..], "") };
    page.push_str(above);
    let mut rows = vec![("server", server.address.clone())];
    if let Some(path) = &server.path {
        rows.push(("round trip", milliseconds(path.rtt)));
        rows.push(("loss towards the server", format!("{:.1} %", path.loss * 100.0)));
    }
    rows.push(("rate from targets", rate(server.downstream)));
    rows.push(("rate to targets", rate(server.upstream)));
    rows.extend(numbers.iter().map(|(name, number)| (*name, number.to_string())));
    rows.push(("received from targets", size(*from_targets)));
    rows.push(("sent to targets", size(*to_targets)));
    if let Some(address) = socks5 {
        rows.push(("SOCKS5", address.to_string()));
    }
    page.push_str("<table>\n");
    for (name, value) in rows {
        let _ =
            writeln!(page, "<tr><td>{}</td><td class=\"value\">{}</td></tr>", escape(name), escape(&value));
    }
    page.push_str("</table>\n");
    // One path has its rows above.
    if server.paths.len() > 1 {
        page.push_str(&path_table(&server.paths));
    }
    page.push_str(below);
    let _ = writeln!(
        page,
        "<p class=\"small\">As of {} UTC, again every {REFRESH} s. <a href=\"/proxy.pac\">proxy.pac</a> configures \
         browsers.</p></html>",
        clock(now)
    );
    page
}

const HTML_START: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>ctcp proxy</title>\
     <meta name=\"viewport\" content=\"width=device-width\">";

const STYLE: &str = "<style>\
    :root{color-scheme:light dark}\
    body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:48rem;padding:0 1rem}\
    h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\
    .state{padding:.7rem 1rem;border-radius:.4rem;border-left:.4rem solid;overflow-wrap:anywhere}\
    .good{background:#2a92;border-color:#2a9d50}.bad{background:#d332;border-color:#d33030}\
    .wait{background:#d902;border-color:#d99000}\
    table{border-collapse:collapse;width:100%}td,th{padding:.25rem .5rem;border-bottom:1px solid #8884;\
    text-align:left;vertical-align:top;overflow-wrap:anywhere}\
    .value{text-align:right;font-variant-numeric:tabular-nums}.time{white-space:nowrap}.what{min-width:9rem}\
    .small{font-size:.85rem;opacity:.8}</style>";

/// The state as a CSS class and a sentence.
fn headline(server: &ServerStatus) -> (&'static str, String) {
    // A server that refuses us is not silent.
    let silent = server.silent.filter(|silent| *silent >= SILENCE_WORTH_SAYING && !server.has_answered);
    let silence = silent.map(|silent| format!("No answer for {} s", silent.as_secs()));
    match (server.is_connected, silence, &server.last_error) {
        (true, None, _) => ("good", "Connected to the server.".to_owned()),
        (true, Some(silence), _) => ("bad", format!("{silence}: the server is silent.")),
        (false, silence, Some(error)) => {
            let silence = silence.map_or_else(String::new, |silence| format!("{silence}. "));
            ("bad", format!("{silence}Not connected: {error}. Trying again."))
        }
        (false, Some(silence), None) => ("bad", format!("{silence}. Connecting to the server.")),
        (false, None, None) => ("wait", "Connecting to the server.".to_owned()),
    }
}

fn path_table(paths: &[PathSummary]) -> String {
    let mut table = "<h2>Paths</h2>\n<table>\n<tr><th>from</th><th>to</th><th>state</th><th>round trip</th>\
                     <th>received</th><th>sent</th></tr>\n"
        .to_owned();
    for path in paths {
        let from = path.local.map_or_else(|| "the system's choice".to_owned(), |local| local.to_string());
        let rtt = path.rtt.map_or_else(|| "-".to_owned(), milliseconds);
        let state = match path.state {
            PathState::Opening => "opening",
            PathState::Open => "open",
            PathState::Spare => "spare",
            PathState::Avoided => "no answer",
        };
        let _ = writeln!(
            table,
            "<tr><td>{from}</td><td>{}</td><td>{state}</td><td>{rtt}</td><td>{}</td><td>{}</td></tr>",
            path.remote,
            size(path.received),
            size(path.sent)
        );
    }
    table.push_str("</table>\n");
    table
}

fn failures(failed: &[Failed], now: SystemTime) -> String {
    if failed.is_empty() {
        return "<p>None.</p>\n".to_owned();
    }
    let mut table = "<table>\n<tr><th>when (UTC)</th><th>what</th><th>why</th></tr>\n".to_owned();
    for Failed { target, reason, last, times } in failed {
        let ago = now.duration_since(*last).unwrap_or_default().as_secs();
        let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        let _ = writeln!(
            table,
            "<tr><td class=\"time\">{}, {} ago</td><td class=\"what\">{}</td><td>{}{times}</td></tr>",
            clock(*last),
            span(ago),
            escape(target),
            escape(reason)
        );
    }
    table.push_str("</table>\n");
    table
}

/// Seconds in the largest suitable unit.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// The time of day in UTC.
fn clock(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn rate(bits: f64) -> String {
    match bits {
        ..1e3 => format!("{bits:.0} bit/s"),
        ..1e6 => format!("{:.1} kbit/s", bits / 1e3),
        _ => format!("{:.1} Mbit/s", bits / 1e6),
    }
}

/// A number of bytes in a suitable unit.
fn size(bytes: u64) -> String {
    let in_units = |unit: f64| bytes as f64 / unit;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", in_units(1e3)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", in_units(1e6)),
        1_000_000_000..1_000_000_000_000 => format!("{:.1} GB", in_units(1e9)),
        _ => format!("{:.1} TB", in_units(1e12)),
    }
}

/// Escapes any text for HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in Escaped(text).to_string().chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
