//! Which profiles clients may choose. A profile applies to both directions, so a client's choice determines how the server sends.

use crate::code::Code;
use crate::code::redundancy::Redundancy;
use crate::congestion::Algorithm;
use crate::profile::{Profile, ProfileName};

/// Maximum number of combinations per symbol that a client may ask for: enough for a loss of half of all packets.
const RATIO_MAX: f64 = 2.0;

/// The profiles for general use.
const GENERAL: [ProfileName; 3] = [ProfileName::DEFAULT, ProfileName::CTCP, ProfileName::TCP];

/// The profiles, by name, that a server grants in addition to its own.
///
/// The profiles for general use, `default`, `ctcp` and `tcp`, are restricted: only the block code or none, only congestion controllers that
/// respond to a full queue like other traffic, and at most two combinations per symbol. The profiles of the other papers let a client
/// choose all parts, and are for private networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant(Vec<ProfileName>);

impl Default for Grant {
    /// The profiles for general use.
    fn default() -> Self {
        Self(GENERAL.to_vec())
    }
}

impl Grant {
    /// Grants the profiles with these names.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = ProfileName>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Grants nothing but the server's own profile.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Vec::new())
    }

    /// The profile that a server with profile `own` grants to a client that asked for `asked`: that one, or its own. `None` is a profile
    /// unknown to this version.
    pub(crate) fn answer(&self, asked: Option<Profile>, own: Profile) -> Profile {
        asked.filter(|asked| self.allows(asked)).unwrap_or(own)
    }

    fn allows(&self, asked: &Profile) -> bool {
        self.0.contains(&asked.name) && (!GENERAL.contains(&asked.name) || is_fair(asked))
    }
}

/// Whether a profile does other traffic no more harm than any transfer does. The parts are checked, since the name is only a label.
fn is_fair(profile: &Profile) -> bool {
    let fair_controls = [Algorithm::DEFAULT, Algorithm::CTCP, Algorithm::RENO, Algorithm::CUBIC];
    let redundancy = profile.redundancy;
    let fair_rules = [Redundancy::FEEDBACK, Redundancy::FROM_LOSS, Redundancy::ALGORITHM_3];
    let has_fair_redundancy = fair_rules.contains(&redundancy)
        || (redundancy.is_fixed() && redundancy.ratio().is_some_and(|ratio| ratio <= RATIO_MAX));
    [Code::BLOCK, Code::PLAIN].contains(&profile.code)
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
        let own = Profile { congestion: Algorithm::CUBIC, ..Profile::default() };
        for asked in [Profile::DEFAULT, Profile::CTCP, Profile::TCP] {
            assert_eq!(Grant::default().answer(Some(asked), own), asked, "{asked}");
            assert_eq!(Grant::of([asked.name]).answer(Some(asked), own), asked);
            assert_eq!(Grant::nothing().answer(Some(asked), own), own);
        }
        assert_eq!(Grant::of([ProfileName::TCP]).answer(Some(Profile::CTCP), own), own);
        assert_eq!(Grant::default().answer(None, own), own);
        let stranger = Profile { name: ProfileName::new(77, "stranger"), ..Profile::DEFAULT };
        assert_eq!(Grant::default().answer(Some(stranger), own), own);
        assert_eq!(Grant::of([stranger.name]).answer(Some(stranger), own), stranger);
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
            assert_eq!(Grant::default().allows(&asked), is_granted, "{asked}");
        }
    }
}
