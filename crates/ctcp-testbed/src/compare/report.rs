//! The comparison as CSV: every value that was measured.

use core::fmt::Write;

use super::Comparison;

impl Comparison {
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
}
