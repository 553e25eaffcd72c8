//! The picture: how many messages take longer than x, and at what cost.

use crate::Outcome;
use crate::modes;
use crate::table::bytes_of_fast;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::coord::{Shift, types::RangedCoordf64};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use std::time::Duration;
use whitewater_sim::scenario::{Report, percentile};

/// Draws an SVG. Equal outcomes give equal bytes.
pub(crate) fn draw(title: &str, outcomes: &[Outcome]) -> Result<String, String> {
    let mut svg = String::new();
    fill(&mut svg, title, outcomes).map_err(|error| format!("no picture: {error}"))?;
    Ok(svg)
}

fn fill(svg: &mut String, title: &str, outcomes: &[Outcome]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let head = TextStyle::from(("sans-serif", 23)).pos(Pos::new(HPos::Center, VPos::Top));
    root.draw(&Text::new(title, (i32::try_from(SIZE.0)? / 2, 12), head))?;
    let (_, below) = root.split_vertically(44);
    let (left, right) = below.split_horizontally(CURVES);
    curves(&left, outcomes).map_err(|error| error.to_string())?;
    bars(&right, outcomes).map_err(|error| error.to_string())?;
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn curves(area: &Area<'_>, outcomes: &[Outcome]) -> Result<(), Box<dyn Error>> {
    let lines: Vec<_> = outcomes.iter().map(|(name, report)| (name, curve(report))).collect();
    let points = || lines.iter().flat_map(|(_, line)| line).map(|&(ms, _)| ms);
    let least = points().fold(f64::INFINITY, f64::min).min(1e7) * 0.95;
    let most = points().fold(least, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .set_label_area_size(LabelAreaPosition::Left, 66)
        .set_label_area_size(LabelAreaPosition::Bottom, 48)
        .build_cartesian_2d(
            (least..most).log_scale().with_key_points(ticks(least, most)),
            (LEAST_PERCENT..100.0).log_scale().with_key_points(vec![0.1, 1.0, 10.0, 100.0]),
        )?;
    chart
        .configure_mesh()
        .light_line_style(BLACK.mix(0.05))
        .bold_line_style(BLACK.mix(0.15))
        .x_desc("latency, ms")
        .y_desc("share of messages that take longer")
        .x_label_formatter(&|ms| ms.to_string())
        .y_label_formatter(&|percent| format!("{percent} %"))
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 18))
        .draw()?;
    for (name, line) in lines {
        let style = modes::color(name).stroke_width(2);
        let drawn = chart.draw_series(LineSeries::new(line, style))?.label(name);
        drawn.legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .legend_area_size(28)
        .label_font(("sans-serif", 16))
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

fn bars(area: &Area<'_>, outcomes: &[Outcome]) -> Result<(), Box<dyn Error>> {
    let most =
        outcomes.iter().map(|(_, report)| report.bytes()).max().unwrap_or_default().max(1) as f64 / 1e3;
    let rows = outcomes.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .set_label_area_size(LabelAreaPosition::Bottom, 48)
        .build_cartesian_2d(RangedCoordf64::from(0.0..most * 1.02), RangedCoordf64::from(rows..0.0))?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(4)
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.15))
        .x_desc(if bytes_of_fast(outcomes).is_some() {
            "kB, both directions (times fast)"
        } else {
            "kB, both directions"
        })
        .x_label_formatter(&|kb| format!("{kb:.0}"))
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 18))
        .draw()?;
    let fast = bytes_of_fast(outcomes);
    for (row, (name, report)) in (0u32..).zip(outcomes) {
        let (kb, top) = (report.bytes() as f64 / 1e3, f64::from(row));
        let bar = Rectangle::new([(0.0, top + 0.42), (kb, top + 0.88)], modes::color(name).mix(0.8).filled());
        let ratio = fast.map_or_else(String::new, |fast| format!(" ({:.2})", kb * 1e3 / fast));
        let style = TextStyle::from(("sans-serif", 16)).pos(Pos::new(HPos::Left, VPos::Bottom));
        let text = Text::new(format!("{name}: {kb:.0} kB{ratio}"), (most * 0.01, top + 0.38), style);
        chart.draw_series([bar])?;
        chart.draw_series([text])?;
    }
    Ok(())
}

/// Latencies, ms, and the percentage of messages that take longer, including undelivered ones.
fn curve(report: &Report) -> Vec<(f64, f64)> {
    let mut all: Vec<_> = report.runs.iter().flat_map(|run| &run.latencies).copied().collect();
    all.sort_unstable();
    let sent = usize::try_from(report.sent).unwrap_or(usize::MAX).max(all.len());
    // Undelivered messages count as later than all others, but have no place on the axis.
    let arrived = all.len() as f64 / sent.max(1) as f64;
    let at = |percent: f64| percentile(&all, (1.0 - percent / 100.0) / arrived);
    let levels =
        (0..=STEPS).map(|step| 100.0 * (LEAST_PERCENT / 100.0).powf(f64::from(step) / f64::from(STEPS)));
    let on_axis = levels.filter(|percent| !all.is_empty() && 1.0 - percent / 100.0 <= arrived);
    on_axis.map(|percent| (ms(at(percent)), percent)).collect()
}

/// Round numbers on the axis.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    let round = |mantissas: &[f64]| -> Vec<f64> {
        let decades = (-2..8).map(|exponent| 10f64.powi(exponent));
        let all = decades.flat_map(|decade| mantissas.iter().map(move |mantissa| mantissa * decade));
        all.filter(|tick| (least..=most).contains(tick)).collect()
    };
    if most > 12.0 * least {
        round(&[1.0, 2.0, 5.0])
    } else {
        round(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0])
    }
}

fn ms(time: Duration) -> f64 {
    // A logarithm needs a value above zero.
    time.max(Duration::from_micros(1)).as_secs_f64() * 1e3
}

const SIZE: (u32, u32) = (1200, 560);
/// Where the curves end and the bars begin.
const CURVES: u32 = 880;
/// The lowest share shown.
const LEAST_PERCENT: f64 = 0.1;
/// Points per curve.
const STEPS: u32 = 240;

#[cfg(test)]
mod tests {
    use super::*;
    use whitewater_sim::scenario::Run;

    #[test]
    fn what_did_not_arrive_is_later_than_all_that_did() {
        let run = |ms: &[u64]| {
            let mut run = Run::default();
            run.latencies = ms.iter().copied().map(Duration::from_millis).collect();
            run
        };
        let mut report = Report::default();
        report.runs = vec![run(&[40, 10]), run(&[20])];
        report.sent = 4;
        let line = curve(&report);
        assert_eq!(line.first(), Some(&(10.0, 100.0)));
        let &(ms, percent) = line.last().unwrap();
        assert!(ms == 40.0 && (25.0..26.0).contains(&percent), "{ms} {percent}");
    }

    #[test]
    fn a_mode_without_deliveries_leaves_a_picture() {
        for outcomes in [vec![], vec![("fast".to_owned(), Report::default())]] {
            let svg = draw("<nothing>", &outcomes).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
            assert!(svg.contains("&lt;nothing&gt;"));
        }
    }
}
