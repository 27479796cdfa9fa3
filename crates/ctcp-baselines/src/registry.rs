//! The catalogues of a laboratory: the product's parts plus the parts of this crate.

use std::sync::Arc;

use ctcp_proto::{
    AckRule, Catalogue, ExpiryRule, Grant, LossRule, Profile, ProfileName, Ratio, Redundancy, Rules,
};

use crate::controller::{THESIS, VEGAS};
use crate::rule::{end_of_transmission, pseudo_block};
use crate::scheme::{SPARSE, UNPACED, WINDOW, WINDOW_EOT};
use crate::{controller, rule, scheme};

/// All profiles of this crate. To add one, define a constant here and add its name to this list.
const PROFILES: [Profile; 4] = [TCP_NC, TCP_NC_EOT, TCP_NC_PB, SPARSE_PROFILE];

/// The rules of a classical source and its receiver.
const CLASSICAL: Rules = Rules {
    acks: AckRule::EveryPacket,
    loss: LossRule::Steadied,
    expiry: ExpiryRule::Repair,
    marks: false,
    interactive: false,
};

/// Sliding-window coding below TCP Vegas (TCP/NC, 2009).
pub const TCP_NC: Profile = Profile {
    name: ProfileName::new(2, "tcp-nc"),
    code: WINDOW,
    redundancy: Redundancy::FROM_LOSS,
    congestion: VEGAS,
    rules: CLASSICAL,
};

/// [`TCP_NC`] with protection of the end of a transmission (EOT, 2013).
pub const TCP_NC_EOT: Profile = Profile {
    name: ProfileName::new(3, "tcp-nc-eot"),
    code: WINDOW_EOT,
    redundancy: end_of_transmission(Ratio::FROM_LOSS),
    ..TCP_NC
};

/// [`TCP_NC`] with pseudo blocks (PB, 2013).
pub const TCP_NC_PB: Profile = Profile {
    name: ProfileName::new(4, "tcp-nc-pb"),
    code: WINDOW_EOT,
    redundancy: pseudo_block(Ratio::FROM_LOSS),
    ..TCP_NC
};

/// The thesis (2012): the sparse code with its own congestion control.
pub const SPARSE_PROFILE: Profile = Profile {
    name: ProfileName::new(5, "sparse"),
    code: SPARSE,
    redundancy: Redundancy::fixed(Ratio::TENTH_MORE),
    congestion: THESIS,
    rules: Rules { acks: AckRule::EveryPacket, ..Rules::GENERAL },
};

/// Returns all parts, for real sockets.
#[must_use]
pub fn catalogue() -> Arc<Catalogue> {
    let with_codes = each(scheme::ALL).fold(Catalogue::default(), Catalogue::with_code);
    let with_controls = each(controller::ALL).fold(with_codes, Catalogue::with_control);
    let with_rules = each(rule::ALL).fold(with_controls, Catalogue::with_rule);
    Arc::new(PROFILES.into_iter().fold(with_rules, Catalogue::with_profile))
}

/// Returns the parts of all files.
fn each<T: Copy>(files: &'static [&'static [T]]) -> impl Iterator<Item = T> {
    files.iter().flat_map(|parts| parts.iter().copied())
}

/// Returns all parts for simulations. The papers' sources are neither paced nor limited by a window of packets.
#[must_use]
pub fn simulated() -> Arc<Catalogue> {
    let paced = Arc::unwrap_or_clone(catalogue());
    Arc::new(UNPACED.iter().copied().fold(paced, Catalogue::replacing_code))
}

/// Returns a grant of every profile with any parts.
#[must_use]
pub fn everything() -> Grant {
    Grant::of(catalogue().profiles().iter().map(|profile| profile.name)).with_any_parts()
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
        let said = vegas.check().expect_err("the window of block is of packets").to_string();
        assert_eq!(
            said,
            "congestion control vegas needs a code whose window counts symbols; that of code block counts packets"
        );
    }
}
