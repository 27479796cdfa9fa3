//! `cargo xtask demo-result SHARE < RESULT`: checks the output of `ctcp demo --json`.

use std::io;

use serde_json::Value;

/// Returns the complaints about the demo's result. There are none if its content was verified and its goodput is at
/// least `least_share` of the link.
pub(crate) fn check(result: &str, least_share: f64) -> io::Result<Vec<String>> {
    let result: Value = serde_json::from_str(result)?;
    let mut complaints = Vec::new();
    if result["verified"] != Value::Bool(true) {
        complaints.push(format!("the content was not verified: {}", result["verified"]));
    }
    match result["goodput_share"].as_f64() {
        Some(share) if share >= least_share => {}
        Some(share) => {
            complaints.push(format!("goodput is {share:.3} of the link, at least {least_share} wanted"));
        }
        None => complaints.push("the result has no goodput_share".into()),
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(result: &str) -> usize {
        check(result, 0.8).expect("readable JSON").len()
    }

    #[test]
    fn a_verified_and_fast_demo_passes() {
        assert_eq!(complaints(r#"{"verified": true, "goodput_share": 0.8}"#), 0);
    }

    #[test]
    fn a_slow_unverified_or_incomplete_demo_does_not() {
        assert_eq!(complaints(r#"{"verified": true, "goodput_share": 0.79}"#), 1);
        assert_eq!(complaints(r#"{"verified": false, "goodput_share": 0.9}"#), 1);
        assert_eq!(complaints("{}"), 2);
        assert!(check("no JSON", 0.8).is_err());
    }
}
