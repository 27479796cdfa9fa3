//! Where a relay carries: to stops that the operator named, and to addresses that rules allow.

use std::net::SocketAddr;

use ctcp::PublicKey;

use super::{Refusal, resolve};
use crate::dial::{DialError, Dialer};
use crate::request::{ReplyCode, Stop};

/// The stops to which a relay carries.
#[derive(Debug)]
pub struct Destinations {
    own: PublicKey,
    /// As clients name them.
    stops: Vec<Stop>,
    /// For all other stops.
    rules: Option<Dialer>,
}

impl Destinations {
    /// These stops and no others, for the relay with this key.
    #[must_use]
    pub fn new(own: PublicKey, stops: Vec<Stop>) -> Self {
        Self { own, stops, rules: None }
    }

    /// Also stops at all addresses that the dialer's policy allows, whatever their keys.
    #[must_use]
    pub fn or_allowed_by(self, rules: Dialer) -> Self {
        Self { rules: Some(rules), ..self }
    }

    /// The addresses of the first of these stops of a way, if it may go there.
    pub(super) async fn addresses(
        &self,
        client: &str,
        stop: &Stop,
        rest: &[Stop],
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let refuse = |text: String| Err((ReplyCode::NotAllowed, text));
        if core::iter::once(stop).chain(rest).any(|stop| stop.key == self.own) {
            return refuse(
                "a way passes a relay only once, and each relay needs a key of its own".to_owned(),
            );
        }
        if self.stops.contains(stop) {
            return resolve(stop).await;
        }
        let Some(rules) = &self.rules else {
            return refuse(format!(
                "this relay does not carry to {stop} (address and key must be as in its --to)"
            ));
        };
        match rules.allowed_addresses(client, &stop.address).await {
            Ok(found) => Ok(found.into_iter().map(|ip| SocketAddr::new(ip, stop.address.port)).collect()),
            Err(DialError::Refused(why)) => refuse(format!("this relay does not carry to {stop}: {why}")),
            Err(error) => {
                let text = error.to_string().replace("the server", "the relay");
                Err((error.reply_code(), format!("{}: {text}", stop.address)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target_policy::TargetPolicy;

    fn stop(address: &str, key: u8) -> Stop {
        format!("{address}={}", PublicKey([key; 32])).parse().expect("a stop")
    }

    const OWN: PublicKey = PublicKey([1; 32]);

    async fn answer(destinations: &Destinations, way: &[Stop]) -> Result<Vec<SocketAddr>, String> {
        let found = destinations.addresses("client", &way[0], &way[1..]).await;
        found.map_err(|(code, text)| format!("{code:?} {text}"))
    }

    #[tokio::test]
    async fn a_relay_carries_to_stops_that_were_named_with_their_keys() {
        let destinations = Destinations::new(OWN, vec![stop("127.0.0.1:9", 2)]);
        let found = answer(&destinations, &[stop("127.0.0.1:9", 2), stop("nowhere.example:1", 3)]).await;
        assert_eq!(found, Ok(vec!["127.0.0.1:9".parse().expect("an address")]));
        for other in [stop("127.0.0.1:9", 3), stop("127.0.0.1:10", 2), stop("127.0.0.2:9", 2)] {
            let refused = answer(&destinations, &[other]).await.expect_err("not named");
            assert!(refused.starts_with("NotAllowed this relay does not carry to 127.0.0."), "{refused}");
        }
    }

    #[tokio::test]
    async fn rules_allow_addresses_whatever_their_keys() {
        let allow = vec!["192.0.2.0/24:9".parse().expect("a rule"), "127.0.0.0/8".parse().expect("a rule")];
        let deny = vec!["127.0.0.9/32".parse().expect("a rule")];
        let rules = Dialer::new(TargetPolicy::new(allow, deny).expect("few rules"));
        let destinations = Destinations::new(OWN, Vec::new()).or_allowed_by(rules);
        for address in ["192.0.2.1:9", "127.0.0.1:7"] {
            let found = answer(&destinations, &[stop(address, 5)]).await;
            assert_eq!(found, Ok(vec![address.parse().expect("an address")]));
        }
        for address in ["192.0.2.1:10", "127.0.0.9:7", "10.0.0.1:9", "198.51.100.1:9"] {
            let refused = answer(&destinations, &[stop(address, 5)]).await.expect_err("no rule");
            assert!(refused.starts_with("NotAllowed this relay does not carry to"), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_way_does_not_go_in_a_circle() {
        let destinations = Destinations::new(OWN, vec![stop("127.0.0.1:9", 1), stop("127.0.0.1:8", 2)]);
        for way in [vec![stop("127.0.0.1:9", 1)], vec![stop("127.0.0.1:8", 2), stop("127.0.0.1:9", 1)]] {
            let refused = answer(&destinations, &way).await.expect_err("a circle");
            assert!(refused.starts_with("NotAllowed a way passes a relay only once"), "{refused}");
        }
    }
}
