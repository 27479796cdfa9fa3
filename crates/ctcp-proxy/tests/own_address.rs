//! Tests of own addresses when no descriptor is left.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::net::Ipv4Addr;
use std::process::Command;

use ctcp_proxy::target_policy::is_own_address;

/// Set in the process that runs out of descriptors.
const INSIDE: &str = "CTCP_TEST_WITHOUT_DESCRIPTORS";

#[test]
fn without_descriptors_no_address_is_considered_foreign() {
    if std::env::var_os(INSIDE).is_none() {
        let this = std::env::current_exe().expect("this test");
        let script = "ulimit -n 32 && exec \"$0\"";
        let status = Command::new("sh").args(["-c", script]).arg(this).env(INSIDE, "1").status();
        assert!(status.expect("sh").success());
        return;
    }
    let own = Ipv4Addr::LOCALHOST.into();
    assert!(is_own_address(own).expect("there are descriptors"));
    let held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let answer = is_own_address(own);
    drop(held);
    assert!(answer.is_err(), "{answer:?}");
}
