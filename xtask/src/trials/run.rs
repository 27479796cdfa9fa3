//! The command: which trials, how many, and the tables.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use ctcp_proto::PathMode;
use ctcp_sim::measure::goodput_share;

use super::path::{Transfer, Trial};
use super::{crowd, pauses, shared, transport};

/// The options of a run.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// The first seed, and their number: of paths, or of runs of a cell.
    first: u64,
    seeds: u64,
    /// Profile, or profile/congestion control, and that of the flow alongside.
    design: String,
    rival: String,
    /// A transfer takes at most the time in which the link sends this many packets.
    packets: u64,
    /// A transfer takes at least so many round trips.
    rounds: u32,
    /// Transfers over each path, which lose different packets, and the one to trace.
    lucks: u64,
    luck: u64,
    /// If set, the server sends, starting this long after the connection is up. Otherwise, the client sends at once.
    download_after: Option<Duration>,
    /// Faster paths are left out, in Mbit/s.
    rate_max: u64,
    /// Threads.
    jobs: usize,
    /// How long a crowd or a shared link is measured.
    seconds: u64,
    /// Only cells whose name contains this.
    only: String,
}

impl Options {
    /// The cells of a table that are to run.
    fn chosen<T: ToString>(&self, cells: Vec<T>) -> Vec<T> {
        cells.into_iter().filter(|cell| cell.to_string().contains(&self.only)).collect()
    }
}

/// How the commands are used.
const USAGE: &str = "trials paths|trace|crowd|shared|pauses [--design PROFILE[/CONGESTION]] [--jobs N]; \
                     all but crowd: [--first SEED]; all but crowd and trace: [--seeds N]; \
                     paths, trace: [--packets N] [--rounds N] [--download-after MS]; paths: [--lucks N] [--rate-max MBIT/S]; trace: [--luck N]; \
                     crowd, shared: [--seconds N]; all but paths and trace: [--only TEXT]; \
                     shared: [--rival PROFILE[/CONGESTION]]";

/// Runs what the arguments request.
///
/// # Errors
/// Returns an error if the arguments are invalid.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let kind = arguments.next().unwrap_or_default();
    let options = parse(arguments).map_err(io::Error::other)?;
    match kind.as_str() {
        "paths" => paths(&options),
        "trace" => trace(&options),
        "crowd" => crowds(&options),
        "shared" => shared(&options),
        "pauses" => pausing(&options),
        _ => Err(io::Error::other(USAGE)),
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        first: 1,
        seeds: 200,
        design: "default".to_owned(),
        rival: "tcp/cubic".to_owned(),
        packets: u64::MAX,
        rounds: 100,
        lucks: 1,
        luck: 0,
        download_after: None,
        rate_max: u64::MAX,
        jobs: 2,
        seconds: 60,
        only: String::new(),
    };
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{argument} needs a number"));
        match argument.as_str() {
            "--first" => options.first = number()?,
            "--seeds" => options.seeds = number()?,
            "--packets" => options.packets = number()?,
            "--rounds" => options.rounds = u32::try_from(number()?).map_err(|_| "too many round trips")?,
            "--luck" => options.luck = number()?,
            "--lucks" => options.lucks = number()?.max(1),
            "--download-after" => options.download_after = Some(Duration::from_millis(number()?)),
            "--rate-max" => options.rate_max = number()?,
            "--jobs" => options.jobs = number()? as usize,
            "--seconds" => options.seconds = number()?,
            "--design" => options.design = value,
            "--rival" => options.rival = value,
            "--only" => options.only = value,
            _ => return Err(format!("{argument} is not known: {USAGE}")),
        }
    }
    Ok(options)
}

/// Runs `work` for every item on several threads and passes each result to `take`, in order.
fn in_parallel<T: Send>(
    jobs: usize,
    items: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T),
) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let item = next.fetch_add(1, Ordering::Relaxed);
                    if item >= items || sender.send((item, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut waiting, mut due) = (BTreeMap::new(), 0);
        for (item, result) in receiver {
            waiting.insert(item, result);
            while let Some(result) = waiting.remove(&due) {
                take(due, result);
                due += 1;
            }
        }
    });
}

fn paths(options: &Options) -> io::Result<()> {
    let ours = transport(&options.design)?;
    let mut found = Vec::new();
    let chosen: Vec<Trial> = (options.first..options.first + options.seeds)
        .flat_map(|seed| (0..options.lucks).map(move |luck| (seed, luck)))
        .map(|(seed, luck)| Trial::draw(seed, luck, options.rounds, options.download_after))
        .filter(|trial| trial.path.rate.as_bits_per_second() <= options.rate_max.saturating_mul(1_000_000))
        .collect();
    let work = |index: usize| {
        let trial = chosen[index];
        let time = trial.time(options.packets);
        let bytes = trial.oracle_bytes(&transport("default").expect("it exists"), time);
        let transfer = (bytes > 0).then(|| trial.transfer(&ours, bytes, time));
        (trial, time, bytes, transfer)
    };
    in_parallel(options.jobs, chosen.len(), work, |_, (trial, time, bytes, transfer)| {
        let path = trial.path;
        let link = goodput_share(bytes, time, path.rate);
        let Some(transfer) = transfer else {
            println!("{:6} {path}: the oracle delivers nothing", path.seed);
            return;
        };
        println!(
            "{:6} {path}, oracle {link:.3}: {:.3} of it{}, excess {:.3}, dropped {:.3}, acks {:.4}, repairs {:.3}, spurious {} stalls {} luck {}",
            path.seed,
            transfer.share,
            if transfer.is_done { "" } else { " UNDONE" },
            transfer.excess(),
            transfer.dropped,
            transfer.acks,
            transfer.redundant,
            transfer.spurious,
            transfer.stalls,
            trial.luck,
        );
        found.push((trial, transfer));
    });
    summarize(found);
    Ok(())
}

fn summarize(mut found: Vec<(Trial, Transfer)>) {
    if found.is_empty() {
        println!("no path was chosen");
        return;
    }
    let at =
        |sorted: &[f64], share: f64| sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)];
    let mut shares: Vec<f64> = found.iter().map(|(_, transfer)| transfer.share).collect();
    shares.sort_by(f64::total_cmp);
    let mut excess: Vec<f64> = found.iter().map(|(_, transfer)| transfer.excess()).collect();
    excess.sort_by(f64::total_cmp);
    println!(
        "goodput/oracle: mean {:.3}, below 0.65 {} of {}, median {:.3}, tenth {:.3}, first {:.3}, thousandth {:.3}, worst {:.3}; excess: mean {:.3}, p90 {:.3}, p99 {:.3}, worst {:.3}",
        shares.iter().sum::<f64>() / shares.len() as f64,
        shares.iter().filter(|&&share| share < 0.65).count(),
        shares.len(),
        at(&shares, 0.5),
        at(&shares, 0.1),
        at(&shares, 0.01),
        at(&shares, 0.001),
        shares[0],
        excess.iter().sum::<f64>() / excess.len() as f64,
        at(&excess, 0.9),
        at(&excess, 0.99),
        excess[excess.len() - 1],
    );
    found.sort_by(|one, other| one.1.share.total_cmp(&other.1.share));
    print_first("slow", 12, &found);
    found.sort_by(|one, other| other.1.excess().total_cmp(&one.1.excess()));
    print_first("wasteful", 8, &found);
}

fn print_first(what: &str, count: usize, found: &[(Trial, Transfer)]) {
    for (trial, transfer) in found.iter().take(count) {
        println!(
            "{what} {:6} {}: {:.3} excess {:.3} dropped {:.3} luck {}",
            trial.path.seed,
            trial.path,
            transfer.share,
            transfer.excess(),
            transfer.dropped,
            trial.luck
        );
    }
}

fn trace(options: &Options) -> io::Result<()> {
    let ours = transport(&options.design)?;
    let trial = Trial::draw(options.first, options.luck, options.rounds, options.download_after);
    let time = trial.time(options.packets);
    println!("{}, {:.1} s", trial.path, time.as_secs_f64());
    trial.trace(&ours, time, time / 100);
    Ok(())
}

fn crowds(options: &Options) -> io::Result<()> {
    let cells = options.chosen(crowd::cells());
    let ours = transport(&options.design)?;
    let reno = transport("tcp")?;
    let time = Duration::from_secs(options.seconds);
    let work = |index: usize| (cells[index].run(&ours, time), cells[index].run(&reno, time));
    let mut failed = 0;
    in_parallel(options.jobs, cells.len(), work, |index, (ours, reno)| {
        let verdict = ours.judge(&reno);
        failed += usize::from(!verdict.is_empty());
        println!("{}: {ours} | reno {reno} {}", cells[index], verdict.join(", "));
    });
    println!("{failed} of {} cells failed", cells.len());
    Ok(())
}

fn shared(options: &Options) -> io::Result<()> {
    let cells = options.chosen(shared::cells());
    let ours = transport(&options.design)?;
    let rival = transport(&options.rival)?;
    let time = Duration::from_secs(options.seconds);
    let others = [
        (&rival, 1, PathMode::Aggregate),
        (&ours, 1, PathMode::Aggregate),
        (&ours, 2, PathMode::Aggregate),
        (&ours, 2, PathMode::Independent),
    ];
    let run = |cell: shared::Shared, seed| others.map(|other| cell.run(seed, &rival, other, time));
    in_cells(options, &cells, run, |cell, runs| {
        let medians: Vec<_> = (0..others.len())
            .map(|other| shared::medians(&runs.iter().map(|run| run[other]).collect::<Vec<_>>()))
            .collect();
        print!("{cell}: two of {} {}", options.rival, medians[0]);
        for (name, shares) in ["one path", "two", "two independent"].iter().zip(&medians[1..]) {
            print!(
                ", {name} {shares} kept {:.3} got {:.3}",
                shares.kept(&medians[0]),
                shares.got(&medians[0])
            );
        }
        println!();
    });
    Ok(())
}

fn pausing(options: &Options) -> io::Result<()> {
    let cells = options.chosen(pauses::cells());
    let ours = transport(&options.design)?;
    let run = |cell: pauses::Pause, seed| cell.run(seed, &ours);
    in_cells(options, &cells, run, |cell, runs| {
        let ended: Vec<_> = runs.iter().flatten().copied().collect();
        println!("{cell}: {} of {} runs ended, {}", ended.len(), runs.len(), pauses::medians(&ended));
    });
    Ok(())
}

/// Runs every cell with every seed and passes the results of each cell to `take`, in order.
fn in_cells<C: Copy + Sync, T: Send>(
    options: &Options,
    cells: &[C],
    run: impl Fn(C, u64) -> T + Sync,
    mut take: impl FnMut(C, &[T]),
) {
    let seeds = options.seeds.max(1) as usize;
    let work = |index: usize| run(cells[index / seeds], options.first + (index % seeds) as u64);
    let mut runs = Vec::new();
    in_parallel(options.jobs, cells.len() * seeds, work, |index, result| {
        runs.push(result);
        if runs.len() == seeds {
            take(cells[index / seeds], &runs);
            runs.clear();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Options, String> {
        parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_select_the_trials() {
        let options = parsed(
            "--first 7 --seeds 3 --design tcp --packets 1000 --only loss --rounds 25 --download-after 300",
        )
        .expect("all are known");
        assert_eq!((options.first, options.seeds, options.packets, options.rounds), (7, 3, 1_000, 25));
        assert_eq!(options.download_after, Some(Duration::from_millis(300)));
        assert_eq!((options.design.as_str(), options.only.as_str()), ("tcp", "loss"));
        assert!(parsed("--seeds").is_err() && parsed("--seeds x").is_err() && parsed("--sedes 5").is_err());
    }

    #[test]
    fn results_are_in_the_order_of_the_items_for_any_number_of_threads() {
        let mut squares = Vec::new();
        in_parallel(3, 20, |item| item * item, |item, square| squares.push((item, square)));
        assert_eq!(squares, (0..20).map(|item| (item, item * item)).collect::<Vec<_>>());
    }
}
