//! Which profiles clients may choose. A profile applies to both directions, so a client's choice determines how the server sends.

use crate::catalogue::Catalogue;
use crate::code::Code;
use crate::code::redundancy::Redundancy;
use crate::congestion::Algorithm;
use crate::profile::{Profile, ProfileName};

/// Maximum number of combinations per symbol that a client may ask for: enough for a loss of half of all packets.
const RATIO_MAX: f64 = 2.0;

/// The profiles, by name, that a server grants in addition to its own.
///
/// A granted profile has exactly its own parts, or only parts that are fair to other traffic: a code of the product, congestion
/// controllers that respond to a full queue like other traffic, and at most two combinations per symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    names: Vec<ProfileName>,
    any_parts: bool,
}

impl Default for Grant {
    /// The profiles for general use.
    fn default() -> Self {
        Self::of([ProfileName::DEFAULT, ProfileName::CTCP, ProfileName::TCP, ProfileName::LOW_LATENCY])
    }
}

impl Grant {
    /// Grants the profiles with these names.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = ProfileName>) -> Self {
        Self { names: names.into_iter().collect(), any_parts: false }
    }

    /// The same profiles with any parts, for private networks and simulations.
    #[must_use]
    pub fn with_any_parts(self) -> Self {
        Self { any_parts: true, ..self }
    }

    /// Grants nothing but the server's own profile.
    #[must_use]
    pub fn nothing() -> Self {
        Self::of([])
    }

    /// The profile that a server with profile `own` grants to a client that asked for `asked`: that one, or its own. `None` is a profile
    /// unknown to this version.
    pub(crate) fn answer(&self, catalogue: &Catalogue, asked: Option<Profile>, own: Profile) -> Profile {
        asked.filter(|asked| self.allows(catalogue, asked)).unwrap_or(own)
    }

    fn allows(&self, catalogue: &Catalogue, asked: &Profile) -> bool {
        self.names.contains(&asked.name)
            && (self.any_parts || catalogue.profiles().contains(asked) || is_fair(asked))
    }
}

/// Whether a profile does other traffic no more harm than any transfer does. The parts are checked, since the name is only a label.
fn is_fair(profile: &Profile) -> bool {
    let fair_controls = [Algorithm::DEFAULT, Algorithm::CTCP, Algorithm::RENO, Algorithm::CUBIC];
    let redundancy = profile.redundancy;
    let fair_rules = [Redundancy::FEEDBACK, Redundancy::FROM_LOSS, Redundancy::ALGORITHM_3];
    let has_fair_redundancy = fair_rules.contains(&redundancy)
        || (redundancy.is_fixed() && redundancy.ratio().is_some_and(|ratio| ratio <= RATIO_MAX));
    [Code::BLOCK, Code::PLAIN, Code::SLIDING].contains(&profile.code)
        && fair_controls.contains(&profile.congestion)
        && has_fair_redundancy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::redundancy::{Ratio, RepairRule, TakesRatio};
    use crate::congestion::AlgorithmSpec;

    #[test]
    fn a_profile_that_is_not_granted_becomes_the_servers_own() {
        let catalogue = Catalogue::default();
        let own = Profile { congestion: Algorithm::CUBIC, ..Profile::default() };
        for asked in [Profile::DEFAULT, Profile::CTCP, Profile::TCP, Profile::LOW_LATENCY] {
            assert_eq!(Grant::default().answer(&catalogue, Some(asked), own), asked, "{asked}");
            assert_eq!(Grant::of([asked.name]).answer(&catalogue, Some(asked), own), asked);
            assert_eq!(Grant::nothing().answer(&catalogue, Some(asked), own), own);
        }
        assert_eq!(Grant::of([ProfileName::TCP]).answer(&catalogue, Some(Profile::CTCP), own), own);
        assert_eq!(Grant::default().answer(&catalogue, None, own), own);
        let stranger = Profile { name: ProfileName::new(77, "stranger"), ..Profile::DEFAULT };
        assert_eq!(Grant::default().answer(&catalogue, Some(stranger), own), own);
        assert_eq!(Grant::of([stranger.name]).answer(&catalogue, Some(stranger), own), stranger);
    }

    #[test]
    fn a_granted_name_does_not_permit_other_parts() {
        static RECKLESS: AlgorithmSpec = AlgorithmSpec {
            number: 77,
            name: "reckless",
            make: |size| Algorithm::RENO.controller(size),
            answers_to_marks: false,
            is_punctual: false,
            window: None,
        };
        static STRANGER: RepairRule = RepairRule {
            number: 77,
            name: "stranger",
            takes_ratio: TakesRatio::Never,
            is_short: |_| true,
            windows_in_block: 1.0,
            codes: &["block"],
        };
        let ratio = |ratio| Redundancy::fixed(Ratio::new(ratio).expect("in range"));
        let base = Profile::default();
        let table = [
            (Profile { congestion: Algorithm::RENO, ..base }, true),
            (Profile { redundancy: ratio(2.0), ..base }, true),
            (Profile { redundancy: ratio(2.1), ..base }, false),
            (Profile { redundancy: Redundancy::ALGORITHM_3, ..base }, true),
            (Profile { redundancy: Redundancy::following(&STRANGER), ..base }, false),
            (Profile { congestion: Algorithm::new(&RECKLESS), ..base }, false),
        ];
        for (asked, is_granted) in table {
            assert_eq!(Grant::default().allows(&Catalogue::default(), &asked), is_granted, "{asked}");
        }
    }

    #[test]
    fn a_granted_profile_of_a_laboratory_has_its_own_parts_or_fair_ones() {
        let ratio = |ratio| Redundancy::fixed(Ratio::new(ratio).expect("in range"));
        let name = ProfileName::new(77, "laboratory");
        let profile = Profile { name, redundancy: ratio(3.0), ..Profile::DEFAULT };
        let (catalogue, grant) = (Catalogue::default().with_profile(profile), Grant::of([name]));
        let table = [(ratio(3.0), true), (ratio(2.0), true), (ratio(64.0), false)];
        for (redundancy, is_granted) in table {
            let asked = Profile { redundancy, ..profile };
            assert_eq!(grant.allows(&catalogue, &asked), is_granted, "{asked}");
            assert!(grant.clone().with_any_parts().allows(&catalogue, &asked), "{asked}");
        }
    }
}
