//! The policy that decides which targets the reverse proxy connects to.
//!
//! Each check is made for the resolved address that is then connected to (see [`crate::dial`]), so a name that resolves
//! differently a moment later gains nothing. The checks, in order:
//!
//! 1. A deny rule that matches the name, the address, or an IPv4 address inside it refuses.
//! 2. A [`Special`] address (loopback, link-local, private, the server's own, ...) is refused unless an allow rule for
//!    *addresses of that range alone* matches it. `127.0.0.1` and `127.0.0.0/8` open loopback, `0.0.0.0/0` does not,
//!    and the server's own address needs a rule for exactly that address. A rule for a name never opens a special
//!    address, because the owner of the name chooses its address.
//! 3. If there are allow rules, addresses that match none of them are refused. The rule `public` allows addresses that
//!    are not special.
//!
//! IPv6 addresses can contain IPv4 ones. Forms that reach the same host (mapped, compatible, NAT64) are checked as that
//! IPv4 address. Forms that are routed through it (6to4, Teredo, ISATAP) are checked as both, and both must pass.

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
pub(crate) use special::kind;

use special::{canonical, embedded, special};

/// The maximum number of rules in each list. They are checked for each connection; longer lists belong into a firewall.
pub const RULES_MAX: usize = 4096;

/// The rules for targets.
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
    /// The system failed to tell whether the address is the server's own; contains the system's error number. The
    /// target may be allowed later.
    Unchecked(i32),
    /// There are allow rules and none matches.
    NotListed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(rule) => write!(formatter, "a rule --deny-target {rule} forbids it"),
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
            Self::NotListed => formatter.write_str("no rule --allow-target allows it"),
        }
    }
}

impl fmt::Debug for TargetPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TargetPolicy").field("allow", &self.allow).field("deny", &self.deny).finish()
    }
}

impl Default for TargetPolicy {
    /// Allows everything but special addresses.
    fn default() -> Self {
        Self { allow: Vec::new(), deny: Vec::new(), is_own: Box::new(is_own_address) }
    }
}

impl TargetPolicy {
    /// Creates a policy from rules.
    ///
    /// # Errors
    /// Returns an error if a list has more than [`RULES_MAX`] rules.
    pub fn new(allow: Vec<Rule>, deny: Vec<Rule>) -> Result<Self, RuleError> {
        if allow.len().max(deny.len()) > RULES_MAX {
            return Err(RuleError::TooMany);
        }
        Ok(Self { allow, deny, ..Self::default() })
    }

    /// Replaces the test for the server's own addresses, [`is_own_address`]. A server behind address translation can
    /// add its public address in this way. While the test fails, only addresses named by rules can be connected to.
    #[must_use]
    pub fn with_own_addresses(
        mut self,
        is_own: impl Fn(IpAddr) -> io::Result<bool> + Send + Sync + 'static,
    ) -> Self {
        self.is_own = Box::new(is_own);
        self
    }

    /// Checks whether `address` may be connected to; `name` is the requested name, if there was one.
    ///
    /// # Errors
    /// Returns the reason for the refusal.
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

    /// Checks whether the address is special, and if so whether an allow rule opens it.
    fn check_special(&self, ip: IpAddr, port: u16) -> Result<(), Refusal> {
        let is_opened = |range: &IpNet| self.allow.iter().any(|rule| rule.opens(ip, port, range));
        let found = special(ip);
        if let Some((range, special)) = found
            && !is_opened(&range)
        {
            return Err(Refusal::Special(special));
        }
        // All of loopback belongs to the machine and is covered by its own rule.
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
