use super::*;
use core::num::NonZeroUsize;

const NO_CHANGES: Changes = Changes { megabits: None, rtt_millis: None, loss: None, seconds: None };
const SETTINGS: Settings = Settings { quick: true, seeds: Some(2), changes: NO_CHANGES };

fn experiment() -> &'static Experiment {
    Experiment::named("thesis-overhead").unwrap()
}

/// Returns the files of a run in `count` shards, written and read back.
fn shards(count: u32, settings: &Settings) -> Vec<(String, Partial)> {
    let measured = (1..=count).map(|index| {
        let shard = Shard::new(index, count).unwrap();
        let plan = experiment().plan(settings);
        let values = plan.measure(shard, NonZeroUsize::new(2).unwrap(), &|| ());
        let partial = Partial::new(experiment(), settings, shard, values, 1.0);
        let again = Partial::from_json(&partial.json()).unwrap();
        assert_eq!(again, partial);
        (again.file_name(), again)
    });
    measured.collect()
}

fn bytes(outcome: &Outcome) -> [String; 3] {
    [outcome.json("id", "paper", "version", true, 0.0), outcome.csv(), outcome.svg().unwrap()]
}

#[test]
fn merged_shards_give_the_same_bytes_as_an_undivided_run() {
    let whole = bytes(&experiment().run(&SETTINGS, NonZeroUsize::MIN));
    for count in [1, 3, 7] {
        let mut shards = shards(count, &SETTINGS);
        shards.reverse();
        let merged = merge(shards).unwrap();
        assert_eq!(bytes(&merged.outcome), whole, "{count} shards");
        assert_eq!((merged.settings, merged.wall_s), (SETTINGS, f64::from(count)));
    }
}

#[test]
fn missing_duplicate_and_foreign_shards_are_named() {
    let three = shards(3, &SETTINGS);
    let why = |partials: Vec<(String, Partial)>| merge(partials).unwrap_err().to_string();
    assert_eq!(why(vec![]), "there is no shard to merge");
    let missing = why(three[..1].to_vec());
    assert!(missing.ends_with("2 missing (2/3, 3/3)"), "{missing}");
    let twice = why([&three[..], &[("copy.json".to_owned(), three[1].1.clone())]].concat());
    assert_eq!(twice, "thesis-overhead.shard-2-of-3.json and copy.json contain the same shard");
    let seven = shards(7, &SETTINGS);
    let foreign = why([&three[..], &seven[..1]].concat());
    assert!(foreign.contains("in 7 shards") && foreign.contains("shard-1-of-7.json"), "{foreign}");
    let other = shards(3, &Settings { seeds: Some(3), ..SETTINGS });
    let foreign = why([&three[..2], &other[2..]].concat());
    assert!(foreign.contains("3 seeds") && foreign.contains("2 seeds"), "{foreign}");
}

#[test]
fn shards_of_another_program_or_with_other_cells_are_refused() {
    let three = shards(3, &SETTINGS);
    let changed = |change: &dyn Fn(&mut Partial)| {
        let mut three = three.clone();
        change(&mut three[1].1);
        merge(three).unwrap_err().to_string()
    };
    assert!(changed(&|partial| partial.program = "0.0.1".to_owned()).contains("version 0.0.1"));
    assert!(changed(&|partial| drop(partial.found.pop())).contains("cells where this program has"));
    assert!(changed(&|partial| partial.found[0].cell = "Cell".to_owned()).contains("the cell Cell where"));
    assert!(changed(&|partial| partial.found[0].value = Value::from("x")).contains("does not fit"));
    let mut unknown = three;
    unknown[0].1.id = "nothing".to_owned();
    assert_eq!(merge(unknown).unwrap_err(), MergeError::Unknown("nothing".to_owned()));
}

#[test]
fn invalid_and_incomplete_shard_files_are_refused() {
    let text = shards(3, &SETTINGS)[0].1.json();
    for broken in ["", "{}", &text[..text.len() / 2], &text.replace("1/3", "4/3"), &text.replace(FORMAT, "x")]
    {
        assert!(Partial::from_json(broken).unwrap_err().starts_with("not a shard file: "));
    }
}
