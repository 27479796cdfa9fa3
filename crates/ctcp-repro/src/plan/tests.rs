use super::*;
use crate::outcome::Outcome;
use crate::plot::{Axis, Plot, Scale};

const THREADS: [usize; 3] = [1, 2, 5];

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Returns a plan whose values have no short decimal form, and whose outcome depends on their order.
fn plan(cells: u32) -> Plan {
    let axis = Axis { label: "", scale: Scale::Linear };
    let plot = Plot { title: "", x: axis, y: axis, hidden: &[], dots: &[] };
    let measure = |cell: &u32| (f64::from(*cell) / 3.0).exp();
    Plan::new((0..cells).collect(), measure, move |found| {
        let mut outcome = Outcome::new(plot, 1);
        let sum = found.iter().fold(0.0, |sum, (_, value)| sum / 3.0 + value);
        outcome.exact("sum", found.len() as f64, sum);
        outcome
    })
}

#[test]
fn results_do_not_depend_on_threads_and_every_cell_is_measured_once() {
    let plan = plan(40);
    let all = THREADS.map(|count| {
        let measured = AtomicUsize::new(0);
        let values = plan.measure(Shard::WHOLE, threads(count), &|| {
            measured.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(measured.into_inner(), 40);
        values
    });
    assert!(all.iter().all(|values| *values == all[0]));
}

#[test]
fn shards_have_equal_numbers_of_cells_and_spread_cells_at_equal_distances() {
    let plan = plan(120);
    let shards: Vec<Vec<usize>> =
        (1..=8).map(|index| plan.cells_of(Shard::new(index, 8).unwrap()).collect()).collect();
    let mut all = shards.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..120) && shards.iter().all(|cells| cells.len() == 15));
    for distance in [4, 7, 8, 9] {
        let with_one = shards.iter().filter(|cells| cells.iter().any(|cell| cell % distance == 0));
        assert!(with_one.count() >= 6, "every {distance}th");
    }
}

#[test]
fn a_shard_without_cells_is_empty() {
    assert!(plan(2).measure(Shard::new(3, 3).unwrap(), threads(2), &|| ()).is_empty());
}

#[test]
fn values_keep_every_bit_through_json() {
    let plan = plan(200);
    let values = plan.measure(Shard::WHOLE, threads(2), &|| ());
    let text = serde_json::to_string(&values).unwrap();
    let again: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(plan.outcome(values).unwrap().points, plan.outcome(again).unwrap().points);
}

#[test]
fn values_that_do_not_fit_are_an_error() {
    let plan = plan(2);
    assert!(plan.outcome(vec![Value::from(1.0)]).unwrap_err().to_string().contains("1 values for 2 cells"));
    assert!(plan.outcome(vec![Value::from(1.0), Value::from("x")]).is_err());
}
