//! Which profiles clients may choose. A profile holds for both directions, so a client that asks for one decides how the server sends.

use crate::congestion::Algorithm;
use crate::profile::{Code, Profile, ProfileName, Redundancy};

/// Most combinations for a symbol that a client may ask for: enough where half of all packets get lost.
const RATIO_MAX: f64 = 2.0;

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
        Self(vec![ProfileName::Default, ProfileName::Ctcp, ProfileName::Tcp])
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

    /// All profiles that there are: for laboratories.
    #[must_use]
    pub fn everything() -> Self {
        Self::of(ProfileName::ALL.iter().copied())
    }

    /// What a server whose own profile is `own` answers to a client that asked for `asked`: that, or its own. `None` is what this
    /// version does not know.
    pub(crate) fn answer(&self, asked: Option<Profile>, own: Profile) -> Profile {
        asked.filter(|asked| self.allows(asked)).unwrap_or(own)
    }

    fn allows(&self, asked: &Profile) -> bool {
        let is_for_general_use = match asked.name {
            ProfileName::Default | ProfileName::Ctcp | ProfileName::Tcp => true,
            ProfileName::TcpNc | ProfileName::TcpNcEot | ProfileName::TcpNcPb | ProfileName::Sparse => false,
        };
        self.0.contains(&asked.name) && (!is_for_general_use || is_fair(asked))
    }
}

/// Whether a profile does others no more harm than any transfer does, part by part: its name is only a label.
fn is_fair(profile: &Profile) -> bool {
    let has_fair_code = match profile.code {
        Code::Block | Code::Plain => true,
        Code::Sparse | Code::Window | Code::Classic => false,
    };
    let has_fair_congestion = match profile.congestion {
        Algorithm::Default | Algorithm::Ctcp | Algorithm::Reno | Algorithm::Cubic => true,
        Algorithm::CtcpConstantAlpha | Algorithm::Vegas | Algorithm::Thesis => false,
    };
    let has_fair_redundancy = match profile.redundancy {
        Redundancy::Feedback | Redundancy::FromLoss => true,
        Redundancy::Fixed(ratio) => ratio.value().is_none_or(|ratio| ratio <= RATIO_MAX),
        Redundancy::EndOfTransmission(_) | Redundancy::PseudoBlock(_) => false,
    };
    has_fair_code && has_fair_congestion && has_fair_redundancy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Ratio;

    fn named(name: ProfileName) -> Profile {
        Profile::named(name)
    }

    #[test]
    fn the_profiles_for_general_use_are_granted_and_the_others_become_the_servers_own() {
        let own = Profile { congestion: Algorithm::Cubic, ..Profile::default() };
        let granted = |name| Grant::default().answer(Some(named(name)), own);
        for &name in ProfileName::ALL {
            let is_granted = matches!(name, ProfileName::Default | ProfileName::Ctcp | ProfileName::Tcp);
            assert_eq!(granted(name), if is_granted { named(name) } else { own }, "{name}");
            assert_eq!(Grant::everything().answer(Some(named(name)), own), named(name));
            assert_eq!(Grant::of([name]).answer(Some(named(name)), own), named(name));
            assert_eq!(Grant::nothing().answer(Some(named(name)), own), own);
        }
        assert_eq!(Grant::everything().answer(None, own), own);
    }

    #[test]
    fn a_harmless_name_covers_no_other_parts() {
        let ratio = |ratio| Redundancy::Fixed(Ratio::new(ratio).expect("in range"));
        let base = Profile::default();
        let table = [
            (Profile { congestion: Algorithm::Reno, ..base }, true),
            (Profile { redundancy: ratio(2.0), ..base }, true),
            (Profile { redundancy: ratio(2.1), ..base }, false),
            (Profile { redundancy: Redundancy::PseudoBlock(Ratio::FROM_LOSS), ..base }, false),
            (Profile { code: Code::Window, ..base }, false),
            (Profile { code: Code::Classic, ..named(ProfileName::Tcp) }, false),
            (Profile { congestion: Algorithm::Vegas, ..named(ProfileName::Tcp) }, false),
            (Profile { congestion: Algorithm::Thesis, ..base }, false),
        ];
        for (asked, is_granted) in table {
            assert_eq!(Grant::default().allows(&asked), is_granted, "{asked}");
        }
    }
}
