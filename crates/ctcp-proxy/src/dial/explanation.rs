//! Explains why a target was not reached, for a person at the client who sees neither the server's rules nor its log.

use std::io;

use super::DialError;
use crate::address::TargetAddress;
use crate::target_policy::{Refusal, Special};

impl DialError {
    /// Returns a sentence that names the target as it was requested. It does not tell which address a name resolved to,
    /// because the server's resolver may know names that clients should not learn.
    #[must_use]
    pub fn explain(&self, target: &TargetAddress) -> String {
        let host = &target.host;
        match self {
            Self::Refused(Refusal::Special(Special::Own)) => {
                format!(
                    "the server refuses its own address {host} (an --allow-target for exactly this address can open it)"
                )
            }
            Self::Refused(Refusal::Special(special)) => match plural(*special) {
                Some(kind) => {
                    format!("the server refuses {kind}: {host} (an --allow-target at the server can open it)")
                }
                None => format!("the server refuses {host}: it is {special}"),
            },
            Self::Refused(Refusal::NotListed) => {
                format!("the server refuses {target}: none of its --allow-target rules allows it")
            }
            Self::Refused(refusal) => format!("the server refuses {target}: {refusal}"),
            Self::Unresolved(error) if error.kind() == io::ErrorKind::TimedOut => {
                format!("the server could not resolve the name {host}: its resolver did not answer in time")
            }
            Self::Unresolved(error) => {
                format!("the server could not resolve the name {host}: {}", words(error))
            }
            Self::Connect(error) => format!("the server could not connect to {target}: {}", words(error)),
        }
    }
}

/// The plural of a kind of address, if it is worth mentioning.
fn plural(special: Special) -> Option<&'static str> {
    Some(match special {
        Special::Loopback => "loopback addresses",
        Special::LinkLocal => "link-local addresses",
        Special::Private => "private addresses",
        Special::CarrierNat => "addresses of a carrier's own network",
        Special::Multicast => "multicast addresses",
        _ => return None,
    })
}

/// The text of a system error without its number and without repetitions.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens on that port (connection refused)".to_owned(),
        io::ErrorKind::TimedOut => "the target did not answer in time".to_owned(),
        io::ErrorKind::HostUnreachable => "the target is unreachable from the server".to_owned(),
        io::ErrorKind::NetworkUnreachable => "the server has no route to that network".to_owned(),
        _ => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            text.trim_start_matches("failed to lookup address information: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_are_sentences_without_error_numbers() {
        let target = |text: &str| text.parse::<TargetAddress>().unwrap();
        for (error, at, words) in [
            (
                DialError::Refused(Refusal::Special(Special::Private)),
                "10.1.2.3:80",
                "the server refuses private addresses: 10.1.2.3 (an --allow-target at the server can open it)",
            ),
            (
                DialError::Refused(Refusal::NotListed),
                "example.com:25",
                "the server refuses example.com:25: none of its --allow-target rules allows it",
            ),
            (
                DialError::Connect(io::Error::from_raw_os_error(111)),
                "example.com:81",
                "the server could not connect to example.com:81: nothing listens on that port (connection refused)",
            ),
            (
                DialError::Unresolved(io::Error::new(io::ErrorKind::TimedOut, "x")),
                "example.com:80",
                "the server could not resolve the name example.com: its resolver did not answer in time",
            ),
            (
                DialError::Unresolved(io::Error::other(
                    "failed to lookup address information: no such name (os error 2)",
                )),
                "example.com:80",
                "the server could not resolve the name example.com: no such name",
            ),
        ] {
            assert_eq!(error.explain(&target(at)), words);
        }
    }
}
