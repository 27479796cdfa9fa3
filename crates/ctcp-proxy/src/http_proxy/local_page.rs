//! Pages of the proxy itself: `/proxy.pac` for browsers and systems that configure themselves, and a status page.

use std::net::SocketAddr;

use super::{METHOD_NOT_ALLOWED, NOT_FOUND, OK, Status};

/// A request for a page of the proxy itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPage {
    /// Whether the method is one of GET and HEAD.
    is_get: bool,
    /// HEAD: the same without the body.
    is_head: bool,
    path: String,
    /// How the application calls the proxy, if that is fit to be repeated.
    host: Option<String>,
}

/// What the status page says.
#[derive(Clone, Debug, Default)]
pub struct LocalStatus {
    /// A sentence on the connection to the server.
    pub link: String,
    /// Where SOCKS5 is served, if it is.
    pub socks5: Option<SocketAddr>,
    /// Names and numbers.
    pub numbers: Vec<(&'static str, u64)>,
}

impl LocalPage {
    pub(super) fn new(method: &str, path: &str, host: Option<&str>) -> Self {
        // The Host field is repeated inside JavaScript: only what an authority can be made of.
        let is_authority = |host: &&str| {
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte))
        };
        Self {
            is_get: matches!(method, "GET" | "HEAD"),
            is_head: method == "HEAD",
            path: path.split('?').next().unwrap_or_default().to_owned(),
            host: host.filter(is_authority).map(str::to_owned),
        }
    }

    /// Whether the answer carries its body.
    #[must_use]
    pub fn with_body(&self) -> bool {
        !self.is_head
    }

    /// The answer: status, content type, body. `local` is the address at which the application reached the proxy.
    #[must_use]
    pub fn answer(&self, local: SocketAddr, status: &LocalStatus) -> (Status, &'static str, String) {
        if !self.is_get {
            return (METHOD_NOT_ALLOWED, "text/plain", "ctcp: only GET and HEAD here\n".to_owned());
        }
        match self.path.as_str() {
            "/proxy.pac" | "/wpad.dat" => (OK, "application/x-ns-proxy-autoconfig", self.pac(local, status)),
            "/" => (OK, "text/html; charset=utf-8", page(status)),
            _ => (NOT_FOUND, "text/plain", "ctcp: there are / and /proxy.pac\n".to_owned()),
        }
    }

    /// Everything through the proxy but the machine itself: other names mean what the server sees.
    fn pac(&self, local: SocketAddr, status: &LocalStatus) -> String {
        let host = self.host.clone().unwrap_or_else(|| local.to_string());
        let socks5 = status.socks5.map_or_else(String::new, |address| format!("; SOCKS5 {address}"));
        format!(
            "function FindProxyForURL(url, host) {{\n  \
               if (host == \"localhost\" || host == \"::1\" || host == \"[::1]\" || shExpMatch(host, \"127.*\")) \
                 return \"DIRECT\";\n  \
               return \"PROXY {host}{socks5}\";\n\
             }}\n"
        )
    }
}

fn page(status: &LocalStatus) -> String {
    let rows: String = status
        .numbers
        .iter()
        .map(|(name, number)| format!("<tr><td>{}</td><td>{number}</td></tr>", escape(name)))
        .collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>ctcp proxy</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:40rem}}\
         td:last-child{{text-align:right;font-variant-numeric:tabular-nums;padding-left:2rem}}</style>\
         <h1>ctcp proxy</h1><p>{}</p><table>{rows}</table>\
         <p><a href=\"/proxy.pac\">proxy.pac</a> configures browsers.</p></html>\n",
        escape(&status.link)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
