//! Draws an outcome as SVG: lines with their names at the ends, confidence intervals if there are several seeds, and
//! the paper's numbers as crosses. The colours are those of Okabe and Ito, which are distinguishable for the
//! colour-blind. After seven lines, further lines are dashed.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic; only positive values.
    Logarithmic,
    /// Linear, for shares from 0 to 1, which are shown in percent.
    Percent,
    /// Logarithmic, for shares shown in percent.
    LogarithmicPercent,
}

impl Scale {
    fn is_logarithmic(self) -> bool {
        matches!(self, Self::Logarithmic | Self::LogarithmicPercent)
    }
}

/// An axis.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: &'static str,
    /// The scale.
    pub scale: Scale,
}

/// The description of a plot.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plot {
    /// The title above the plot.
    pub title: &'static str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Series whose names end with one of these are kept in the files but not drawn.
    pub hidden: &'static [&'static str],
    /// Series whose names end with one of these are drawn as dots without a line, such as measurements next to a
    /// formula.
    pub dots: &'static [&'static str],
}

/// Width and height in pixels.
const SIZE: (u32, u32) = (1100, 560);

/// The x coordinate where the plot ends and the names of the lines begin.
const NAMES: i32 = 800;

/// The minimum distance of two names, in pixels.
const NAME_HEIGHT: i32 = 17;

/// The palette of Okabe and Ito (2008) without yellow, which is hard to see on white.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// A series: its name, its points (x, y, and the bounds of the interval), and the printed numbers.
type Line = (String, Vec<(f64, f64, f64, f64)>, Vec<(f64, f64)>);

impl Outcome {
    /// Returns the text of `ID.svg`.
    ///
    /// # Errors
    /// Returns an error if it cannot be drawn, for example because of the logarithm of a value that is not positive.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn core::error::Error>> {
        let lines = self.lines();
        let (sx, sy) = (self.plot.x.scale, self.plot.y.scale);
        let place = |x: f64, y: f64| (transform(sx, x), transform(sy, y));
        let ours =
            lines.iter().flat_map(|(_, points, _)| points).flat_map(|&(x, _, lo, hi)| [(x, lo), (x, hi)]);
        let papers = lines.iter().flat_map(|(_, _, published)| published).copied();
        let all: Vec<(f64, f64)> = ours.chain(papers).map(|(x, y)| place(x, y)).collect();
        if all.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
            return Err("a point that cannot be drawn".into());
        }
        let (x_range, y_range) =
            (range(all.iter().map(|point| point.0)), range(all.iter().map(|point| point.1)));

        let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (left, _) = root.split_horizontally(NAMES);
        let mut chart = ChartBuilder::on(&left)
            .caption(self.plot.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(x_range, y_range)?;
        chart
            .configure_mesh()
            .x_desc(self.plot.x.label)
            .y_desc(self.plot.y.label)
            .x_label_formatter(&|value| tick(sx, *value))
            .y_label_formatter(&|value| tick(sy, *value))
            .light_line_style(WHITE)
            .draw()?;
        let mut ends = Vec::new();
        for (index, (name, points, published)) in lines.iter().enumerate() {
            let colour = PALETTE[index % PALETTE.len()];
            let line = points.iter().map(|&(x, y, ..)| place(x, y));
            if self.is_dots(name) {
                // Dots have no line.
            } else if index < PALETTE.len() {
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
            } else {
                chart.draw_series(DashedLineSeries::new(line, 6, 4, colour.stroke_width(2)))?;
            }
            if self.seeds > 1 {
                let interval = |&(x, _, lo, hi): &_| PathElement::new([place(x, lo), place(x, hi)], colour);
                chart.draw_series(points.iter().map(interval))?;
            }
            chart
                .draw_series(points.iter().map(|&(x, y, ..)| Circle::new(place(x, y), 3, colour.filled())))?;
            chart.draw_series(
                published.iter().map(|&(x, y)| Cross::new(place(x, y), 5, colour.stroke_width(2))),
            )?;
            let last = points.last().map(|&(x, y, ..)| (x, y)).or(published.last().copied());
            if let Some((x, y)) = last {
                ends.push((name.as_str(), colour, chart.backend_coord(&place(x, y))));
            }
        }
        drop(chart);
        draw_names(&root, ends, !self.published.is_empty())?;
        root.present()?;
        Ok(())
    }

    fn is_dots(&self, name: &str) -> bool {
        self.plot.dots.iter().any(|dots| name.ends_with(dots))
    }

    /// Returns the series in the order of their first point, with their printed numbers.
    fn lines(&self) -> Vec<Line> {
        let is_shown = |name: &str| !self.plot.hidden.iter().any(|hidden| name.ends_with(hidden));
        let mut lines: Vec<Line> = Vec::new();
        let names = self.points.iter().map(|point| &point.series);
        for name in names.chain(self.published.iter().map(|published| &published.series)) {
            if is_shown(name) && lines.iter().all(|(other, ..)| other != name) {
                lines.push((name.clone(), Vec::new(), Vec::new()));
            }
        }
        for (name, points, published) in &mut lines {
            let ours = self.points.iter().filter(|point| point.series == *name);
            // An interval that reaches zero has no lower end on a logarithmic axis.
            let bottom =
                |lo: f64, y: f64| if self.plot.y.scale.is_logarithmic() && lo <= 0.0 { y } else { lo };
            points.extend(ours.map(|point| (point.x, point.y, bottom(point.lo, point.y), point.hi)));
            let papers = self.published.iter().filter(|printed| printed.series == *name);
            published.extend(papers.map(|printed| (printed.x, printed.y)));
        }
        lines
    }
}

/// Draws each name next to the end of its line, or as near as the other names allow.
fn draw_names(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    mut ends: Vec<(&str, RGBColor, (i32, i32))>,
    has_published: bool,
) -> Result<(), Box<dyn core::error::Error>> {
    ends.sort_by_key(|&(_, _, (_, y))| y);
    let lowest = i32::try_from(SIZE.1)? - NAME_HEIGHT * i32::from(has_published);
    let count = i32::try_from(ends.len())?;
    let mut next = NAME_HEIGHT;
    for (index, (name, colour, (x, y))) in (0..).zip(ends) {
        // Leave room for the remaining names.
        let place = y.min(lowest - NAME_HEIGHT * (count - index)).max(next);
        next = place + NAME_HEIGHT;
        root.draw(&PathElement::new([(x + 5, y), (NAMES + 4, place)], colour.mix(0.4)))?;
        root.draw(&Text::new(
            name.to_owned(),
            (NAMES + 8, place - 8),
            ("sans-serif", 14).into_font().color(&colour),
        ))?;
    }
    if has_published {
        root.draw(&Cross::new((NAMES + 14, lowest), 5, BLACK.stroke_width(2)))?;
        root.draw(&Text::new("as printed", (NAMES + 26, lowest - 8), ("sans-serif", 14)))?;
    }
    Ok(())
}

fn transform(scale: Scale, value: f64) -> f64 {
    if scale.is_logarithmic() { value.log10() } else { value }
}

/// Formats the label of a tick.
fn tick(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Linear => format!("{}", (value * 1e4).round() / 1e4),
        Scale::Percent => format!("{} %", (value * 1e4).round() / 1e2),
        Scale::LogarithmicPercent => {
            let percent = 10_f64.powf(value + 2.0);
            let digits = if percent < 1.0 { 2 } else { 1 };
            format!("{percent:.digits$} %")
        }
        Scale::Logarithmic if (1.0..4.0).contains(&value) => format!("{:.0}", 10_f64.powf(value)),
        Scale::Logarithmic if (-1.0..4.0).contains(&value) => format!("{:.2}", 10_f64.powf(value)),
        Scale::Logarithmic => format!("{:.1e}", 10_f64.powf(value)),
    }
}

/// Returns the range of the values with a margin.
fn range(values: impl Iterator<Item = f64>) -> core::ops::Range<f64> {
    let (mut least, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        least = least.min(value);
        largest = largest.max(value);
    }
    if !least.is_finite() || !largest.is_finite() {
        return 0.0..1.0;
    }
    let room = ((largest - least) * 0.05).max(1e-6);
    least - room..largest + room
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::summary;

    fn outcome(scale: Scale) -> Outcome {
        let plot = Plot {
            title: "A title",
            x: Axis { label: "n (symbols)", scale },
            y: Axis { label: "cost", scale },
            hidden: &["deviation"],
            dots: &["dots"],
        };
        let mut outcome = Outcome::new(plot, 2);
        outcome.point("one", 1.0, &summary(&[10.0, 12.0]));
        outcome.point("one", 2.0, &summary(&[100.0]));
        outcome.point("one deviation", 2.0, &summary(&[-5.0]));
        outcome.published("one", 2.0, 90.0);
        outcome
    }

    #[test]
    fn dots_have_no_line() {
        let lines = |outcome: &Outcome| outcome.svg().unwrap().matches("<polyline").count();
        let mut outcome = outcome(Scale::Linear);
        let without = lines(&outcome);
        let measured = [1.0, 2.0].map(|x| (x, summary(&[20.0])));
        measured.iter().for_each(|(x, found)| outcome.point("two, dots", *x, found));
        // The interval of each point is a line of its own, and so is the connection to the name.
        let with_dots = lines(&outcome);
        assert_eq!(with_dots, without + measured.len() + 1);
        measured.iter().for_each(|(x, found)| outcome.point("two", *x, found));
        assert_eq!(lines(&outcome), with_dots + measured.len() + 2);
    }

    #[test]
    fn a_picture_has_title_axes_legend_and_the_papers_numbers() {
        let svg = outcome(Scale::Linear).svg().unwrap();
        assert!(
            ["A title", "n (symbols)", "cost", "one", "as printed"].iter().all(|text| svg.contains(text))
        );
        assert!(!svg.contains("deviation") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_value_without_a_logarithm_is_an_error() {
        let mut outcome = outcome(Scale::Logarithmic);
        assert!(outcome.svg().is_ok());
        outcome.point("one", 0.0, &summary(&[1.0]));
        assert!(outcome.svg().is_err());
    }
}
