//! An outcome as an SVG: lines with their intervals, and the paper's numbers as crosses.

use plotters::prelude::*;

use crate::outcome::Outcome;

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten; only positive values.
    Logarithmic,
}

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: &'static str,
    /// How.
    pub scale: Scale,
}

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// Stands above it.
    pub title: &'static str,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Series whose names end so stay in the files and out of the picture.
    pub hidden: &'static [&'static str],
    /// Series whose names end so are drawn as dots without a line, as what was measured beside the line of a formula.
    pub dots: &'static [&'static str],
}

/// Width and height in pixels.
const SIZE: (u32, u32) = (1100, 560);

/// The legend stands to the right of this column, where it hides nothing.
const LEGEND: i32 = 860;
const LEGEND_LINE: i32 = 18;

/// A line's points: x, y, and the ends of the interval.
type Line = (String, Vec<(f64, f64, f64, f64)>, Vec<(f64, f64)>);

impl Outcome {
    /// The text of `ID.svg`.
    ///
    /// # Errors
    /// When it cannot be drawn, as for a logarithm of something not positive.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn core::error::Error>> {
        let lines = self.lines();
        let transform =
            |scale: Scale, value: f64| if scale == Scale::Logarithmic { value.log10() } else { value };
        let (sx, sy) = (self.plot.x.scale, self.plot.y.scale);
        let ours =
            lines.iter().flat_map(|(_, points, _)| points).flat_map(|&(x, _, lo, hi)| [(x, lo), (x, hi)]);
        let papers = lines.iter().flat_map(|(_, _, published)| published).copied();
        let all: Vec<(f64, f64)> =
            ours.chain(papers).map(|(x, y)| (transform(sx, x), transform(sy, y))).collect();
        if all.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
            return Err("a point that cannot be drawn".into());
        }
        let (x_range, y_range) =
            (range(all.iter().map(|point| point.0)), range(all.iter().map(|point| point.1)));

        let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (left, right) = root.split_horizontally(LEGEND);
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
        for (index, (name, points, published)) in lines.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let place = |x: f64, y: f64| (transform(sx, x), transform(sy, y));
            if !self.is_dots(name) {
                let line = points.iter().map(|&(x, y, ..)| place(x, y));
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
            }
            let intervals =
                points.iter().map(|&(x, _, lo, hi)| PathElement::new([place(x, lo), place(x, hi)], colour));
            chart.draw_series(intervals)?;
            chart
                .draw_series(points.iter().map(|&(x, y, ..)| Circle::new(place(x, y), 3, colour.filled())))?;
            chart.draw_series(
                published.iter().map(|&(x, y)| Cross::new(place(x, y), 5, colour.stroke_width(2))),
            )?;
        }
        drop(chart);
        self.draw_legend(&lines, &right)?;
        root.present()?;
        Ok(())
    }

    fn draw_legend(
        &self,
        lines: &[Line],
        area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    ) -> Result<(), Box<dyn core::error::Error>> {
        let style = ("sans-serif", 13);
        let mut y = 60;
        for (index, (name, ..)) in lines.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            if self.is_dots(name) {
                area.draw(&Circle::new((10, y), 3, colour.filled()))?;
            } else {
                area.draw(&PathElement::new([(0, y), (20, y)], colour.stroke_width(2)))?;
            }
            area.draw(&Text::new(name.clone(), (26, y - 7), style))?;
            y += LEGEND_LINE;
        }
        if !self.published.is_empty() {
            area.draw(&Cross::new((10, y), 5, BLACK.stroke_width(2)))?;
            area.draw(&Text::new("as printed", (26, y - 7), style))?;
        }
        Ok(())
    }

    fn is_dots(&self, name: &str) -> bool {
        self.plot.dots.iter().any(|dots| name.ends_with(dots))
    }

    /// The series in the order in which they were found, with what is printed of each.
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
            // What reaches down to nothing has no end on a logarithmic axis.
            let bottom =
                |lo: f64, y: f64| if self.plot.y.scale == Scale::Logarithmic && lo <= 0.0 { y } else { lo };
            points.extend(ours.map(|point| (point.x, point.y, bottom(point.lo, point.y), point.hi)));
            let papers = self.published.iter().filter(|printed| printed.series == *name);
            published.extend(papers.map(|printed| (printed.x, printed.y)));
        }
        lines
    }
}

/// What stands at a tick.
fn tick(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Linear => format!("{}", (value * 1e4).round() / 1e4),
        Scale::Logarithmic if (1.0..4.0).contains(&value) => format!("{:.0}", 10_f64.powf(value)),
        Scale::Logarithmic if (-1.0..4.0).contains(&value) => format!("{:.2}", 10_f64.powf(value)),
        Scale::Logarithmic => format!("{:.1e}", 10_f64.powf(value)),
    }
}

/// From the least to the largest, with some room around.
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
        let mut outcome = Outcome::new(plot, 1);
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
        // The interval of each point is a line by itself.
        assert_eq!(lines(&outcome), without + measured.len());
        measured.iter().for_each(|(x, found)| outcome.point("two", *x, found));
        assert!(lines(&outcome) > without + 2 * measured.len());
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
    fn what_has_no_logarithm_is_an_error_and_not_a_picture() {
        let mut outcome = outcome(Scale::Logarithmic);
        assert!(outcome.svg().is_ok());
        outcome.point("one", 0.0, &summary(&[1.0]));
        assert!(outcome.svg().is_err());
    }
}
