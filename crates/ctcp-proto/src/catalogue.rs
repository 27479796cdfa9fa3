//! The profiles and parts that a program can choose from, by name and by number.
//!
//! The product has the parts for general use. A laboratory registers its own here. Everything else then works with them: the command line,
//! the handshake, sockets and simulations.

use crate::code::Code;
use crate::code::redundancy::{self, Redundancy, RepairRule};
use crate::congestion::Algorithm;
use crate::error::UnknownName;
use crate::profile::Profile;
use crate::wire::ProfileParameter;

/// Profiles, codes, congestion controllers and repair rules. Within each kind, numbers are unique.
#[derive(Clone, Debug)]
pub struct Catalogue {
    profiles: Vec<Profile>,
    codes: Vec<Code>,
    controls: Vec<Algorithm>,
    rules: Vec<&'static RepairRule>,
}

impl Default for Catalogue {
    /// The parts for general use.
    fn default() -> Self {
        Self {
            profiles: vec![Profile::DEFAULT, Profile::CTCP, Profile::TCP, Profile::LOW_LATENCY],
            codes: vec![Code::BLOCK, Code::PLAIN, Code::SLIDING],
            controls: vec![Algorithm::DEFAULT, Algorithm::CTCP, Algorithm::RENO, Algorithm::CUBIC],
            rules: redundancy::RULES.to_vec(),
        }
    }
}

impl Catalogue {
    /// Adds a profile that is made of registered parts.
    ///
    /// # Panics
    /// Panics if a profile with the same number or name is registered.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        let is_taken =
            |known: &Profile| known.name == profile.name || known.name.as_str() == profile.name.as_str();
        assert!(!self.profiles.iter().any(is_taken), "two profiles {}", profile.name);
        self.profiles.push(profile);
        self
    }

    /// Adds a code.
    ///
    /// # Panics
    /// Panics if a code with the same number or name is registered.
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Self {
        let is_taken = |known: &Code| *known == code || known.as_str() == code.as_str();
        assert!(!self.codes.iter().any(is_taken), "two codes {code}");
        self.codes.push(code);
        self
    }

    /// Replaces the implementation of the code with the same number.
    #[must_use]
    pub fn replacing_code(mut self, code: Code) -> Self {
        self.codes.retain(|&known| known != code);
        self.codes.push(code);
        self
    }

    /// Adds a congestion controller.
    ///
    /// # Panics
    /// Panics if a congestion controller with the same number or name is registered.
    #[must_use]
    pub fn with_control(mut self, control: Algorithm) -> Self {
        let is_taken = |known: &Algorithm| *known == control || known.as_str() == control.as_str();
        assert!(!self.controls.iter().any(is_taken), "two congestion controls {control}");
        self.controls.push(control);
        self
    }

    /// Adds a repair rule.
    ///
    /// # Panics
    /// Panics if a repair rule with the same number or name is registered.
    #[must_use]
    pub fn with_rule(mut self, rule: &'static RepairRule) -> Self {
        let is_taken = |known: &&RepairRule| known.number == rule.number || known.name == rule.name;
        assert!(!self.rules.iter().any(is_taken), "two rules {}", rule.name);
        self.rules.push(rule);
        self
    }

    /// Whether this contains only the parts for general use.
    #[must_use]
    pub fn is_general(&self) -> bool {
        let general = Self::default();
        let lengths = |it: &Self| [it.profiles.len(), it.codes.len(), it.controls.len(), it.rules.len()];
        lengths(self) == lengths(&general)
    }

    /// All profiles.
    #[must_use]
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// All congestion controllers.
    #[must_use]
    pub fn controls(&self) -> &[Algorithm] {
        &self.controls
    }

    /// The profile with this name.
    ///
    /// # Errors
    /// Returns an error that lists the known names if there is no such profile.
    pub fn profile(&self, name: &str) -> Result<Profile, UnknownName> {
        named("profile", &self.profiles, |profile| profile.name.as_str(), name)
    }

    /// The code with this name.
    ///
    /// # Errors
    /// Returns an error that lists the known names if there is no such code.
    pub fn code(&self, name: &str) -> Result<Code, UnknownName> {
        named("code", &self.codes, Code::as_str, name)
    }

    /// The congestion controller with this name.
    ///
    /// # Errors
    /// Returns an error that lists the known names if there is no such congestion controller.
    pub fn control(&self, name: &str) -> Result<Algorithm, UnknownName> {
        named("congestion control", &self.controls, Algorithm::as_str, name)
    }

    /// The repair rule with this name, and its factor: `fixed=1.25`.
    ///
    /// # Errors
    /// Returns an error that lists the known names if there is no such rule.
    pub fn redundancy(&self, text: &str) -> Result<Redundancy, UnknownName> {
        Redundancy::parse(&self.rules, text)
    }

    /// Whether the profile and all of its parts are registered here, with the same rules.
    pub(crate) fn has(&self, profile: &Profile) -> bool {
        self.profile_of(&to_parameter(profile)) == Some(*profile)
    }

    /// The profile for a parameter of the handshake; `None` if a part is not registered or the parts do not fit together.
    pub(crate) fn profile_of(&self, parameter: &ProfileParameter) -> Option<Profile> {
        let named = self.profiles.iter().find(|profile| profile.name.number() == parameter.profile)?;
        let profile = Profile {
            code: *self.codes.iter().find(|code| code.number() == parameter.code)?,
            congestion: *self.controls.iter().find(|control| control.number() == parameter.congestion)?,
            redundancy: Redundancy::from_numbers(
                &self.rules,
                parameter.redundancy,
                parameter.redundancy_parameter,
            )?,
            ..*named
        };
        profile.check().is_ok().then_some(profile)
    }
}

/// The handshake's profile parameter (PROTOCOL.md section 3.1).
pub(crate) fn to_parameter(profile: &Profile) -> ProfileParameter {
    let (redundancy, redundancy_parameter) = profile.redundancy.to_numbers();
    ProfileParameter {
        profile: profile.name.number(),
        code: profile.code.number(),
        congestion: profile.congestion.number(),
        redundancy,
        redundancy_parameter,
    }
}

/// The element of `known` with this name.
fn named<T: Copy>(
    kind: &str,
    known: &[T],
    name_of: impl Fn(&T) -> &'static str,
    name: &str,
) -> Result<T, UnknownName> {
    known.iter().find(|&one| name_of(one) == name).copied().ok_or_else(|| {
        let names = known.iter().map(name_of).collect::<Vec<_>>().join(" ");
        UnknownName(format!("unknown {kind}: this version has {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::redundancy::Ratio;

    #[test]
    fn every_profile_survives_the_handshake() {
        let catalogue = Catalogue::default();
        let survives = |profile| catalogue.profile_of(&to_parameter(&profile)) == Some(profile);
        for &profile in catalogue.profiles() {
            assert!(survives(profile), "{profile}");
            assert_eq!(catalogue.profile(profile.name.as_str()), Ok(profile));
        }
        for &congestion in catalogue.controls() {
            assert!(survives(Profile { congestion, ..Profile::TCP }), "{congestion}");
            assert_eq!(catalogue.control(congestion.as_str()), Ok(congestion));
        }
        let redundancy = Redundancy::fixed(Ratio::new(1.25).expect("in range"));
        assert!(survives(Profile { redundancy, ..Profile::DEFAULT }));
        assert_eq!(catalogue.redundancy(&redundancy.to_string()), Ok(redundancy));
        let ctcp = to_parameter(&Profile::CTCP);
        assert_eq!((ctcp.profile, ctcp.code, ctcp.congestion, ctcp.redundancy), (1, 0, 1, 6));
    }

    #[test]
    fn unregistered_parts_and_misfits_are_rejected() {
        let catalogue = Catalogue::default();
        let of = |change: fn(&mut ProfileParameter)| {
            let mut parameter = to_parameter(&Profile::DEFAULT);
            change(&mut parameter);
            catalogue.profile_of(&parameter)
        };
        assert_eq!(of(|_| {}), Some(Profile::DEFAULT));
        assert_eq!(of(|parameter| parameter.profile = 2), None);
        assert_eq!(of(|parameter| parameter.code = 1), None);
        assert_eq!(of(|parameter| parameter.code = 3), None, "plain and from-loss");
        assert_eq!(of(|parameter| parameter.congestion = 2), None);
        assert_eq!(of(|parameter| parameter.redundancy = 4), None);
        assert_eq!(of(|parameter| parameter.redundancy = 2), None, "fixed without a factor");
    }

    #[test]
    fn the_error_for_an_unknown_name_lists_the_known_ones() {
        let catalogue = Catalogue::default();
        let said = |error: Result<_, UnknownName>| error.map(|_: ()| ()).expect_err("unknown").to_string();
        assert_eq!(
            said(catalogue.profile("brutal").map(drop)),
            "unknown profile: this version has default ctcp tcp low-latency"
        );
        assert_eq!(
            said(catalogue.code("turbo").map(drop)),
            "unknown code: this version has block plain sliding"
        );
        assert_eq!(
            said(catalogue.redundancy("fixed").map(drop)),
            "unknown redundancy: this version has feedback from-loss algorithm-3 fixed=R, R from 1 to 64"
        );
    }
}
