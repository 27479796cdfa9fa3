//! Named environments, so that demos and tests use the same settings under the same name.
//!
//! The microwave oven's timing and the settings of `lossy` are those of the CTCP paper (sections 7.1 and 6). All other
//! numbers, including the oven's rate and delay, are round values chosen by us. They are examples of a kind of link and
//! not measurements.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use ctcp_base::{Probability, Rate};

use crate::{LossModel, PathConfig};

/// A named environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A link without loss, limit or delay.
    Perfect,
    /// The setting of the CTCP paper's Fig. 3 at 5 % loss: 25 Mbit/s, 20 ms, no loss in the backward direction.
    Lossy,
    /// A busy wireless network: 50 Mbit/s, 10 ms, 3 % loss in short bursts, little jitter.
    Wifi,
    /// The edge of a mobile cell: 10 Mbit/s, 60 ms, 2 % loss in longer bursts, high jitter.
    Mobile,
    /// A geostationary satellite: 20 Mbit/s, 600 ms, 1 % independent loss.
    Satellite,
    /// A wireless link next to a microwave oven: everything is lost for 9 ms out of every 20 ms.
    MicrowaveOven,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 6] =
        [Self::Perfect, Self::Lossy, Self::Wifi, Self::Mobile, Self::Satellite, Self::MicrowaveOven];

    /// Returns the name of the preset, as accepted by its `FromStr`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Perfect => "perfect",
            Self::Lossy => "lossy",
            Self::Wifi => "wifi",
            Self::Mobile => "mobile",
            Self::Satellite => "satellite",
            Self::MicrowaveOven => "microwave-oven",
        }
    }

    /// Returns the configuration of both directions of the path.
    #[must_use]
    pub fn path(self) -> PathConfig {
        match self {
            Self::Perfect => PathConfig::default(),
            Self::Lossy => path(25, 20, independent(0.05)).with_lossless_return(),
            Self::Wifi => path(50, 10, bursts(0.03, 3.0)).with_jitter(Duration::from_millis(3)),
            Self::Mobile => path(10, 60, bursts(0.02, 10.0)).with_jitter(Duration::from_millis(15)),
            Self::Satellite => path(20, 600, independent(0.01)),
            Self::MicrowaveOven => path(10, 10, MICROWAVE_OVEN),
        }
    }
}

/// 50 Hz, and a mean pulse of 9 ms (CTCP paper, section 7.1).
const MICROWAVE_OVEN: LossModel = LossModel::OnOff {
    period: Duration::from_millis(20),
    on: Duration::from_millis(9),
    loss: Probability::ONE,
};

fn path(megabits: u64, rtt_millis: u64, loss: LossModel) -> PathConfig {
    PathConfig::new(Rate::from_megabits_per_second(megabits), Duration::from_millis(rtt_millis), loss)
}

fn independent(loss: f64) -> LossModel {
    LossModel::Bernoulli(Probability::new(loss).expect("a preset's loss is a probability"))
}

fn bursts(loss: f64, length: f64) -> LossModel {
    Probability::new(loss)
        .and_then(|mean| LossModel::bursts(mean, length))
        .expect("a preset's bursts are possible")
}

impl fmt::Display for Preset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The error for a text that is not the name of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPreset;

impl fmt::Display for UnknownPreset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no such environment: known are")?;
        for preset in Preset::ALL {
            write!(formatter, " {preset}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPreset {}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or(UnknownPreset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_read_back_from_its_name_and_describes_a_path() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
            let path = preset.path();
            assert_eq!(path.forward.rate, path.backward.rate, "{preset}");
        }
        let error = "marsh".parse::<Preset>().expect_err("no such preset");
        assert!(error.to_string().ends_with("satellite microwave-oven"));
    }
}
