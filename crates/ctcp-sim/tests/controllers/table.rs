//! Utilisation over loss, rate, round trip, queue and late ACKs, as a table that is read before it is changed.
//!
//! A cell is `utilisation / mean queue in ms / packets that reach the queue for each that arrives`.

use core::fmt::Write;

use ctcp_proto::Profile;

use crate::alone::alone;
use crate::bottleneck::Conditions;

fn row(profile: Profile, conditions: Conditions) -> String {
    let mut row = format!(
        "{:7} {:2} Mbit/s {:3} ms queue {:4} late ACKs {} ms",
        profile.to_string(),
        conditions.megabits,
        conditions.rtt.as_millis(),
        conditions.queue,
        conditions.late_acks.as_millis(),
    );
    for loss in [0.0, 0.05, 0.2] {
        let measured = alone(profile, Conditions { loss, ..conditions }, 2);
        let queueing = measured.queueing().as_secs_f64() * 1e3;
        write!(row, "  {:.2}/{queueing:.0}/{:.1}", measured.utilisation(), measured.cost())
            .expect("a string takes all");
    }
    row
}

#[test]
fn the_table_is_as_reviewed() {
    let mut table = String::new();
    for profile in [Profile::CTCP, Profile::TCP, Profile::DEFAULT] {
        for (megabits, rtt, queue, late_acks) in
            [(25, 20, 1.0, 0), (25, 20, 1.0, 2), (25, 20, 0.25, 0), (5, 100, 1.0, 0), (25, 10, 1.0, 2)]
        {
            let conditions = Conditions::new(megabits, rtt, queue, 0.0).with_late_acks(late_acks);
            table += &row(profile, conditions);
            table.push('\n');
        }
    }
    assert!(table == include_str!("table.txt"), "the table changed; it is now:\n{table}");
}
