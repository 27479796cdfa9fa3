//! Connections over several paths.

use core::time::Duration;

use super::several::{Conditions, Several};

const fn path(megabits: f64, rtt_ms: u64, loss: f64) -> Conditions {
    Conditions { megabits, rtt_ms, loss }
}

/// The rate of a download over these paths in Mbit/s, in the last of `seconds`.
fn rate(conditions: &[Conditions], seconds: u64, seed: u64) -> f64 {
    let mut several = Several::with_all_paths(conditions, seed);
    several.request(u64::MAX);
    several.run(Duration::from_secs(seconds / 3), |_| false);
    let before = several.bytes_read();
    several.run(Duration::from_secs(seconds - seconds / 3), |_| false);
    if std::env::var_os("SHOW").is_some() {
        for path in several.server.as_ref().unwrap().paths() {
            eprintln!("{path:?}");
        }
        eprintln!("{:?}", several.server.as_ref().unwrap().stats());
        eprintln!("{:?}", several.client.stats());
    }
    (several.bytes_read() - before) as f64 * 8e-6 / (seconds - seconds / 3) as f64
}

#[test]
fn one_case() {
    let case = [path(30.0, 30, 0.0), path(10.0, 200, 0.1)];
    eprintln!("{}", rate(&case, 30, 1));
}

#[test]
fn unequal_paths_add_up() {
    let cases = [
        [path(10.0, 20, 0.0), path(10.0, 20, 0.0)],
        [path(20.0, 20, 0.0), path(5.0, 120, 0.0)],
        [path(30.0, 30, 0.0), path(10.0, 200, 0.1)],
        [path(2.0, 10, 0.0), path(50.0, 80, 0.0)],
    ];
    for added in [0.0, 0.05, 0.15, 0.2] {
        for case in cases {
            let case = case.map(|path| Conditions { loss: 1.0 - (1.0 - path.loss) * (1.0 - added), ..path });
            let alone = case.map(|path| rate(&[path], 30, 1));
            let both = rate(&case, 30, 1);
            eprintln!(
                "{added} {} + {}: {:.2} + {:.2} alone, {both:.2} together: {:.3}",
                case[0].megabits,
                case[1].megabits,
                alone[0],
                alone[1],
                both / (alone[0] + alone[1])
            );
        }
    }
}
