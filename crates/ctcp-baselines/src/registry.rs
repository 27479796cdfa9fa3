//! What a laboratory adds to the parts for general use.

use std::sync::Arc;

use ctcp_proto::{
    AckRule, Catalogue, ExpiryRule, Grant, LossRule, Profile, ProfileName, Ratio, Redundancy, Rules,
};

use crate::controller::{THESIS, VEGAS};
use crate::rule::{end_of_transmission, pseudo_block};
use crate::scheme::{SPARSE, UNPACED, WINDOW, WINDOW_EOT};
use crate::{controller, rule, scheme};

/// A new profile is a constant here, and its name in this list.
const PROFILES: [Profile; 4] = [TCP_NC, TCP_NC_EOT, TCP_NC_PB, SPARSE_PROFILE];

/// What a classical source and its receiver know of the path.
const CLASSICAL: Rules =
    Rules { acks: AckRule::EveryPacket, loss: LossRule::Steadied, expiry: ExpiryRule::Repair, marks: false };

/// Sliding-window coding below TCP Vegas (TCP/NC, 2009).
pub const TCP_NC: Profile = Profile {
    name: ProfileName::new(2, "tcp-nc"),
    code: WINDOW,
    redundancy: Redundancy::FROM_LOSS,
    congestion: VEGAS,
    rules: CLASSICAL,
};

/// The same with the end of transmission protected (2013).
pub const TCP_NC_EOT: Profile = Profile {
    name: ProfileName::new(3, "tcp-nc-eot"),
    code: WINDOW_EOT,
    redundancy: end_of_transmission(Ratio::FROM_LOSS),
    ..TCP_NC
};

/// The same with pseudo blocks (2013).
pub const TCP_NC_PB: Profile = Profile {
    name: ProfileName::new(4, "tcp-nc-pb"),
    code: WINDOW_EOT,
    redundancy: pseudo_block(Ratio::FROM_LOSS),
    ..TCP_NC
};

/// The thesis (2012): sparse code, and a congestion control of its own.
pub const SPARSE_PROFILE: Profile = Profile {
    name: ProfileName::new(5, "sparse"),
    code: SPARSE,
    redundancy: Redundancy::fixed(Ratio::TENTH_MORE),
    congestion: THESIS,
    rules: Rules { acks: AckRule::EveryPacket, ..Rules::GENERAL },
};

/// Everything, for sockets.
#[must_use]
pub fn catalogue() -> Arc<Catalogue> {
    let with_codes = each(scheme::ALL).fold(Catalogue::default(), Catalogue::with_code);
    let with_controls = each(controller::ALL).fold(with_codes, Catalogue::with_control);
    let with_rules = each(rule::ALL).fold(with_controls, Catalogue::with_rule);
    Arc::new(PROFILES.into_iter().fold(with_rules, Catalogue::with_profile))
}

/// The parts of all files.
fn each<T: Copy>(files: &'static [&'static [T]]) -> impl Iterator<Item = T> {
    files.iter().flat_map(|parts| parts.iter().copied())
}

/// Everything, for simulations of the papers' sources, which are neither paced nor held by a window of packets.
#[must_use]
pub fn simulated() -> Arc<Catalogue> {
    let paced = Arc::unwrap_or_clone(catalogue());
    Arc::new(UNPACED.iter().copied().fold(paced, Catalogue::replacing_code))
}

/// Grants every profile.
#[must_use]
pub fn everything() -> Grant {
    Grant::of(catalogue().profiles().iter().map(|profile| profile.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_fits_together_and_has_its_parts_in_the_catalogue() {
        let catalogue = catalogue();
        for profile in catalogue.profiles() {
            assert_eq!(profile.check(), Ok(()), "{profile}");
            assert_eq!(catalogue.profile(profile.name.as_str()), Ok(*profile));
            assert_eq!(catalogue.code(profile.code.as_str()), Ok(profile.code));
            assert_eq!(catalogue.control(profile.congestion.as_str()), Ok(profile.congestion));
            assert_eq!(catalogue.redundancy(&profile.redundancy.to_string()), Ok(profile.redundancy));
        }
        let vegas = Profile { congestion: VEGAS, ..Profile::DEFAULT };
        let said = vegas.check().expect_err("its window is of packets").to_string();
        assert_eq!(
            said,
            "congestion control vegas needs a code whose window counts symbols; that of code block counts packets"
        );
    }
}
