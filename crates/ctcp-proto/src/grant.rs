//! Which profiles clients may choose. A profile holds for both directions, so a client that asks for one decides how the server sends.

use crate::code::Code;
use crate::congestion::Algorithm;
use crate::profile::{Profile, ProfileName};
use crate::redundancy::Redundancy;

/// Most combinations for a symbol that a client may ask for: enough where half of all packets get lost.
const RATIO_MAX: f64 = 2.0;

/// The profiles for general use.
const GENERAL: [ProfileName; 3] = [ProfileName::DEFAULT, ProfileName::CTCP, ProfileName::TCP];

/// The profiles a server grants besides its own, by name.
///
/// Those for general use, `default`, `ctcp` and `tcp`, come with bounds: only block code or none, only congestion controls that answer to
/// a full queue as other traffic does, and at most two combinations for a symbol. The profiles of the other papers leave a client all parts to choose,
/// and are for networks of one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant(Vec<ProfileName>);

impl Default for Grant {
    /// The profiles for general use.
    fn default() -> Self {
        Self(GENERAL.to_vec())
    }
}

impl Grant {
    /// The profiles with these names.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = ProfileName>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Nothing but the server's own profile.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Vec::new())
    }

    /// What a server whose own profile is `own` answers to a client that asked for `asked`: that, or its own. `None` is what this
    /// version does not know.
    pub(crate) fn answer(&self, asked: Option<Profile>, own: Profile) -> Profile {
        asked.filter(|asked| self.allows(asked)).unwrap_or(own)
    }

    fn allows(&self, asked: &Profile) -> bool {
        self.0.contains(&asked.name) && (!GENERAL.contains(&asked.name) || is_fair(asked))
    }
}

/// Whether a profile does others no more harm than any transfer does, part by part: its name is only a label.
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
    use crate::congestion::AlgorithmSpec;
    use crate::redundancy::{Ratio, RepairRule, TakesRatio};

    #[test]
    fn what_is_not_granted_becomes_the_servers_own() {
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
    fn a_harmless_name_covers_no_other_parts() {
        static RECKLESS: AlgorithmSpec = AlgorithmSpec {
            number: 77,
            name: "reckless",
            make: |size| Algorithm::RENO.controller(size),
            answers_to_marks: false,
            is_punctual: false,
            needs_symbols: false,
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
