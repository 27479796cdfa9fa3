//! One rule: a network or a name, and optionally a port.
//!
//! ```text
//!  10.0.0.0/8          10.1.2.3:22         0.0.0.0/0:443
//!  2001:db8::/32       [2001:db8::/32]:443 [::1]:8080
//!  *.example.com       *.example.com:443   example.com
//!  public              public:443
//! ```
//!
//! `public` is every address that is not special: what a server without rules connects to.
//!
//! `*.example.com` matches every name below `example.com` and not `example.com` itself. A name without a dot, other than
//! `localhost`, needs a port (`database:5432`).

use core::fmt;
use core::str::FromStr;
use std::net::IpAddr;

use ipnet::IpNet;

use super::special::{canonical, special};
use crate::address::{Host, NAME_BYTES_MAX, parse_port};

/// The keyword for all addresses that are not special.
const PUBLIC: &str = "public";

/// A rule of `--allow-target` or `--deny-target`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    matcher: Matcher,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Matcher {
    /// Every address in this network.
    Network(IpNet),
    /// Every address that is not special.
    Public,
    /// Exactly this name, in lower case.
    Name(String),
    /// Every name below this one, in lower case.
    Below(String),
}

/// Why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The rule is empty.
    #[error("the rule is empty")]
    Empty,
    /// The port is not a number from 1 to 65535.
    #[error("{0:?} is not a port (1 to 65535)")]
    Port(String),
    /// The prefix is not a number, or longer than the address.
    #[error("{0:?} is not a prefix length (0-32 for IPv4, 0-128 for IPv6)")]
    Prefix(String),
    /// Bits after the prefix are set; contains the network that was probably meant.
    #[error("address bits after the prefix are set: write {0} or leave the prefix out")]
    HostBits(String),
    /// Neither a network nor a name.
    #[error(
        "{0:?} is neither CIDR[:PORT] (10.0.0.0/8:443), [V6CIDR]:PORT ([2001:db8::/32]:443), *.name[:PORT] \
         (*.example.com:443) nor `public`"
    )]
    Neither(String),
    /// A name without a dot and without a port: more likely a mistake than a host, and as the only rule it would deny
    /// everything else.
    #[error(
        "is {0:?} a host? Then write it with its domain or a port ({0}:443); all names below it are *.{0}"
    )]
    OneWord(String),
    /// More than [`super::RULES_MAX`] rules.
    #[error("more than {max} rules", max = super::RULES_MAX)]
    TooMany,
}

impl Rule {
    /// Returns true if the rule matches this address (in exactly this form) and port.
    #[must_use]
    pub fn matches_address(&self, address: IpAddr, port: u16) -> bool {
        self.has_port(port)
            && match &self.matcher {
                Matcher::Network(network) => network.contains(&address),
                Matcher::Public => special(address).is_none(),
                Matcher::Name(_) | Matcher::Below(_) => false,
            }
    }

    /// Returns true if the rule opens a special address: it matches, and covers nothing outside `range`. A wider
    /// network contains special addresses only by accident.
    #[must_use]
    pub(super) fn opens(&self, address: IpAddr, port: u16, range: &IpNet) -> bool {
        matches!(&self.matcher, Matcher::Network(network) if range.contains(network))
            && self.matches_address(address, port)
    }

    /// Returns true if the rule matches this name and port. A trailing dot of the name is ignored (RFC 1034 section
    /// 3.1).
    #[must_use]
    pub fn matches_name(&self, name: Option<&str>, port: u16) -> bool {
        let Some(name) = name else { return false };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        self.has_port(port)
            && match &self.matcher {
                Matcher::Network(_) | Matcher::Public => false,
                Matcher::Name(own) => name == *own,
                Matcher::Below(parent) => name
                    .strip_suffix(parent.as_str())
                    .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
            }
    }

    fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        let (what, port) = split(text)?;
        let port = match port {
            Some(digits) => Some(parse_port(digits).map_err(|_| RuleError::Port(digits.to_owned()))?),
            None => None,
        };
        let matcher = match network(what)? {
            Some(network) => Matcher::Network(network),
            None if what == PUBLIC => Matcher::Public,
            None => name(what).ok_or_else(|| RuleError::Neither(text.to_owned()))?,
        };
        let is_one_word = |name: &str| !name.contains('.') && name != "localhost";
        if matches!(&matcher, Matcher::Name(name) if is_one_word(name)) && port.is_none() {
            return Err(RuleError::OneWord(what.to_owned()));
        }
        Ok(Self { matcher, port })
    }
}

/// Splits the port off: after `]:`, or after the only colon.
fn split(text: &str) -> Result<(&str, Option<&str>), RuleError> {
    let neither = || RuleError::Neither(text.to_owned());
    if let Some(rest) = text.strip_prefix('[') {
        let (inner, after) = rest.split_once(']').ok_or_else(neither)?;
        if !inner.contains(':') {
            return Err(neither());
        }
        return match after.strip_prefix(':') {
            Some(port) => Ok((inner, Some(port))),
            None if after.is_empty() => Ok((inner, None)),
            None => Err(neither()),
        };
    }
    match text.split_once(':') {
        Some((what, port)) if !port.contains(':') => Ok((what, Some(port))),
        _ => Ok((text, None)),
    }
}

/// Parses a network; `None` if the text does not start with an address.
fn network(text: &str) -> Result<Option<IpNet>, RuleError> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else { return Ok(None) };
    let network = match prefix {
        None => IpNet::from(address),
        Some(digits) => text.parse().map_err(|_| RuleError::Prefix(digits.to_owned()))?,
    };
    if network != network.trunc() {
        return Err(RuleError::HostBits(network.trunc().to_string()));
    }
    Ok(Some(plain(network)))
}

/// Converts a network of IPv4 addresses in IPv6 form to the IPv4 network, so that it matches either form.
fn plain(network: IpNet) -> IpNet {
    let plain = match (canonical(network.addr()), network.prefix_len().checked_sub(96)) {
        (address @ IpAddr::V4(_), Some(prefix)) if network.addr().is_ipv6() => {
            IpNet::new(address, prefix).ok()
        }
        _ => None,
    };
    plain.unwrap_or(network)
}

fn name(text: &str) -> Option<Matcher> {
    let (name, is_below) = match text.strip_prefix("*.") {
        Some(parent) => (parent, true),
        None => (text, false),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| !label.is_empty();
    // A name of only digits and dots is a mistyped address.
    let is_name = name.len() <= NAME_BYTES_MAX
        && matches!(Host::parse(&name), Ok(Host::Name(_)))
        && name.split('.').all(is_label)
        && name.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_name.then_some(if is_below { Matcher::Below(name) } else { Matcher::Name(name) })
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.matcher, self.port) {
            (Matcher::Network(network @ IpNet::V6(_)), Some(_)) => write!(formatter, "[{network}]")?,
            (Matcher::Network(network), _) => write!(formatter, "{network}")?,
            (Matcher::Public, _) => formatter.write_str(PUBLIC)?,
            (Matcher::Name(name), _) => formatter.write_str(name)?,
            (Matcher::Below(parent), _) => write!(formatter, "*.{parent}")?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}
