//! The comparison as tables in Markdown and as CSV.

use core::fmt::Write;

use ctcp_repro::comparison::number;

use super::Comparison;
use super::cell::{Test, percent};
use super::statistics::{Row, Value};
use crate::testbed::Record;

impl Comparison {
    /// The complete report: tables, the best peers, the peers and the machine.
    #[must_use]
    pub fn markdown(&self, record: &Record) -> String {
        let rows = self.summary();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_head(&mut text, record);
        for test in Test::ALL {
            let of_test: Vec<&Row> = rows.iter().filter(|row| self.cells[row.cell].test == test).collect();
            if !of_test.is_empty() {
                let _ = self.write_table(&mut text, test, &of_test);
            }
        }
        text
    }

    /// Every measured value.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "peer,rate_bps,rtt_ms,loss,scenario,value,unit,is_cut_off,seed\n".to_owned();
        for sample in &self.samples {
            let _ = writeln!(
                text,
                "{},{},{},{},\"{}\",{},{},{},{}",
                sample.peer,
                sample.rate_bps,
                sample.rtt_ms,
                sample.loss,
                sample.scenario,
                sample.value,
                sample.unit,
                sample.is_cut_off,
                sample.seed
            );
        }
        text
    }

    fn write_head(&self, text: &mut String, record: &Record) -> core::fmt::Result {
        let machine = &record.machine;
        let loads = record.runs.iter().map(|run| run.load);
        let load = loads.clone().sum::<f64>() / loads.clone().count().max(1) as f64;
        let lateness = record.runs.iter().filter(|run| run.is_accepted());
        let lateness = lateness.map(|run| run.emulator.lateness.p99_ms).fold(0.0, f64::max);
        writeln!(
            text,
            "Repetitions: {}, peers in turn; {}, {} cores, Linux {}; load average {load:.1} (at most {:.1}, \
             threads that keep cores awake included); the emulator's 99th percentile of lateness was at most {lateness:.2} ms in a run.\n",
            self.repetitions,
            machine.cpu,
            machine.cores,
            machine.linux,
            loads.fold(0.0, f64::max),
        )?;
        writeln!(
            text,
            "Each value is the median over the repetitions, in brackets the least and the greatest of them. **Bold** is the best value of a row \
             and what is within 1 % of it; the column *best* names it. CPU is that of programs, both ends together, and not what the kernel does \
             for packets between its calls. `in 3`: only so many repetitions have a value. `>` stands before a value that was cut off by the time limit. `-`: did not \
             take part, or failed.\n"
        )?;
        for (peer, description) in &record.peers {
            writeln!(text, "- {peer}: {}; {}", description.version, description.settings)?;
        }
        for (peer, reason) in &self.missing {
            writeln!(text, "- left out: {peer}: {reason}")?;
        }
        for failure in &self.failures {
            writeln!(text, "- failed: {failure}")?;
        }
        Ok(())
    }

    fn write_table(&self, text: &mut String, test: Test, rows: &[&Row]) -> core::fmt::Result {
        let taking_part = |peer: usize| rows.iter().any(|row| row.values[peer].is_some());
        let peers: Vec<usize> = (0..self.peers.len()).filter(|&peer| taking_part(peer)).collect();
        writeln!(text, "\n## {}\n", test.title())?;
        write!(text, "| quantity | path | loss | best |")?;
        peers.iter().try_for_each(|&peer| write!(text, " {} |", self.peers[peer]))?;
        writeln!(text, "\n|---|---|---|---|{}", "---|".repeat(peers.len()))?;
        // Sorted by quantity, then by condition and loss, which is the order of the cells.
        let mut sorted = rows.to_vec();
        sorted.sort_by_key(|row| (row.metric, row.statistic, row.cell));
        for row in sorted {
            let cell = &self.cells[row.cell];
            let statistic =
                if row.statistic == "median" { String::new() } else { format!(", {}", row.statistic) };
            let quantity = format!("{}{statistic} ({})", row.metric.name(), row.unit);
            let best = if row.best.is_empty() { "-".to_owned() } else { row.best.join(", ") };
            write!(text, "| {quantity} | {} | {} % | {best} |", cell.condition.name(), percent(row.loss))?;
            for &peer in &peers {
                let is_best = row.best.contains(&self.peers[peer]);
                write!(text, " {} |", shown(row.values[peer].as_ref(), is_best, self.repetitions))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

fn shown(value: Option<&Value>, is_best: bool, repetitions: u32) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let mut text = number(value.value);
    if value.is_cut_off {
        text.insert_str(0, "> ");
    }
    if is_best {
        text = format!("**{text}**");
    }
    if value.repetitions > 1 {
        let _ = write!(text, " ({} to {})", number(value.least), number(value.most));
    }
    // Other repetitions failed or did not get this far.
    if value.repetitions < repetitions as usize {
        let _ = write!(text, " in {}", value.repetitions);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_shows_its_spread_whether_it_is_best_and_whether_it_was_cut_off() {
        let value = Value { value: 0.9512, least: 0.94, most: 0.96, repetitions: 5, is_cut_off: false };
        assert_eq!(shown(Some(&value), true, 5), "**0.951** (0.940 to 0.960)");
        assert_eq!(shown(Some(&value), false, 6), "0.951 (0.940 to 0.960) in 5");
        let value = Value { value: 8_000.0, repetitions: 1, is_cut_off: true, ..value };
        assert_eq!(shown(Some(&value), false, 1), "> 8000");
        assert_eq!(shown(None, false, 1), "-");
    }
}
