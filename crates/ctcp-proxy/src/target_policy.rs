//! Which targets the reverse proxy connects to.
//!
//! The question is always asked of a resolved address that is then connected to (see [`crate::dial`]), so a name that
//! resolves to something else a moment later gains nothing. The answer, in this order:
//!
//! 1. A deny rule that matches the name, the address, or an IPv4 address inside it refuses.
//! 2. A [`Special`] address (loopback, link-local, private, the server's own, ...) is refused unless an allow rule for
//!    *addresses of that range alone* matches it: `127.0.0.1` and `127.0.0.0/8` open loopback, `0.0.0.0/0` does not, and
//!    an own address needs a rule for exactly that one. A rule for a name never opens one: anyone who owns the name
//!    chooses its address.
//! 3. With any allow rule at all, what none of them matches is refused. The rule `public` allows what is not special.
//!
//! IPv4 can hide in IPv6. Forms that reach the very same host (mapped, compatible, NAT64) are looked at as that IPv4
//! address; forms that reach it on a way (6to4, Teredo, ISATAP) are looked at as both, and both must pass.

use core::fmt;
use std::io;
use std::net::IpAddr;

use ipnet::IpNet;

mod own_address;
mod rule;
mod special;

pub use own_address::is_own_address;
pub use rule::{Rule, RuleError};
pub use special::Special;

use special::{canonical, embedded, special};

/// Rules at most in each list. They are walked for each connection; an operator with more wants a firewall.
pub const RULES_MAX: usize = 4096;

/// What may be connected to.
pub struct TargetPolicy {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    is_own: Box<dyn Fn(IpAddr) -> io::Result<bool> + Send + Sync>,
}

/// Why a target is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A deny rule matches.
    Denied(Rule),
    /// The address is special and no allow rule for its range alone matches it.
    Special(Special),
    /// Whether it is the server's own could not be found out; the system's error, by its number. Another time it may be
    /// allowed.
    Unchecked(i32),
    /// There are allow rules and none matches.
    NotListed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(rule) => write!(formatter, "the server's rule --deny-target {rule} forbids it"),
            Self::Special(Special::Own) => {
                write!(
                    formatter,
                    "it is {}, which needs an --allow-target for exactly this address",
                    Special::Own
                )
            }
            Self::Special(special) => {
                write!(
                    formatter,
                    "it is {special}, which needs an --allow-target for it or for a part of its range"
                )
            }
            Self::Unchecked(code) => {
                let error = io::Error::from_raw_os_error(*code);
                write!(formatter, "the server could not check whether it is an address of its own: {error}")
            }
            Self::NotListed => formatter.write_str("none of the server's --allow-target rules allows it"),
        }
    }
}

impl fmt::Debug for TargetPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TargetPolicy").field("allow", &self.allow).field("deny", &self.deny).finish()
    }
}

impl Default for TargetPolicy {
    /// Everything but special addresses.
    fn default() -> Self {
        Self { allow: Vec::new(), deny: Vec::new(), is_own: Box::new(is_own_address) }
    }
}

impl TargetPolicy {
    /// A policy of rules.
    ///
    /// # Errors
    /// When a list has more than [`RULES_MAX`] rules.
    pub fn new(allow: Vec<Rule>, deny: Vec<Rule>) -> Result<Self, RuleError> {
        if allow.len().max(deny.len()) > RULES_MAX {
            return Err(RuleError::TooMany);
        }
        Ok(Self { allow, deny, ..Self::default() })
    }

    /// Uses another way to tell the server's own addresses, instead of [`is_own_address`]: a server behind address
    /// translation adds its public address by it. While it fails, nothing is connected to whose rules do not name it.
    #[must_use]
    pub fn with_own_addresses(
        mut self,
        is_own: impl Fn(IpAddr) -> io::Result<bool> + Send + Sync + 'static,
    ) -> Self {
        self.is_own = Box::new(is_own);
        self
    }

    /// Whether `address` may be connected to; `name` is what the client asked for, if it was a name.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, name: Option<&str>, address: IpAddr, port: u16) -> Result<(), Refusal> {
        let host = canonical(address);
        let hidden = embedded(host);
        let all = || [Some(address), Some(host)].into_iter().chain(hidden).flatten();

        let denies =
            |rule: &&Rule| rule.matches_name(name, port) || all().any(|ip| rule.matches_address(ip, port));
        if let Some(rule) = self.deny.iter().find(denies) {
            return Err(Refusal::Denied(rule.clone()));
        }
        for ip in core::iter::once(host).chain(hidden.into_iter().flatten()) {
            self.check_special(ip, port)?;
        }
        let allows = |rule: &Rule| rule.matches_name(name, port) || rule.matches_address(host, port);
        if !self.allow.is_empty() && !self.allow.iter().any(allows) {
            return Err(Refusal::NotListed);
        }
        Ok(())
    }

    /// Whether an allow rule opens the address, if it is special.
    fn check_special(&self, ip: IpAddr, port: u16) -> Result<(), Refusal> {
        let is_opened = |range: &IpNet| self.allow.iter().any(|rule| rule.opens(ip, port, range));
        let found = special(ip);
        if let Some((range, special)) = found
            && !is_opened(&range)
        {
            return Err(Refusal::Special(special));
        }
        // All of loopback is the machine's own, and has its rule.
        let is_loopback = found.is_some_and(|(_, special)| special == Special::Loopback);
        if is_loopback || is_opened(&IpNet::from(ip)) {
            return Ok(());
        }
        match (self.is_own)(ip) {
            Ok(false) => Ok(()),
            Ok(true) => Err(Refusal::Special(Special::Own)),
            Err(error) => Err(Refusal::Unchecked(error.raw_os_error().unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests;
