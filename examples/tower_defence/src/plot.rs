//! Plots a headless game: panels over one time axis.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;
use std::time::Duration;
use tower_defence::headless::{Samples, percentile};

type Drawn = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (1000, 1000);
const FONT: &str = "sans-serif";

/// Draws `samples` into an SVG file.
pub(crate) fn draw(path: &Path, samples: &Samples) -> Drawn {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    // A panel of nothing but zeros would look empty.
    let has_errors = samples.errors.iter().any(|(_, error)| *error > 0.0);
    let title =
        if has_errors { samples.title.clone() } else { format!("{}; no prediction error", samples.title) };
    let titled = root.titled(&title, (FONT, 20))?;
    let end = end(samples);
    let panels = titled.split_evenly((if has_errors { 4 } else { 3 }, 1));
    let (first, rest) = panels.split_at(usize::from(has_errors));
    let [snapshots, effect, traffic] = rest else { return Ok(()) };
    for area in first {
        errors(area, samples, end)?;
    }
    bytes(snapshots, samples, end)?;
    effects(effect, samples, end)?;
    bandwidth(traffic, samples, end)?;
    root.present()?;
    Ok(())
}

/// Plots the prediction error in cells, between a client's predicted runner and the real one: the largest of each
/// tenth of a second.
fn errors(area: &Area<'_>, samples: &Samples, end: f64) -> Drawn {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (at, error) in &samples.errors {
        let (at, error) = ((at.as_secs_f64() * 10.0).floor() / 10.0, f64::from(*error));
        match points.last_mut().filter(|(last, _)| *last >= at) {
            Some((_, largest)) => *largest = largest.max(error),
            None => points.push((at, error)),
        }
    }
    let mut chart =
        chart(area, "prediction error, cells: the largest of all runners", "", end, most(&points))?;
    chart.draw_series(points.iter().map(|point| Circle::new(*point, 1, RED.filled())))?;
    Ok(())
}

/// Plots the bytes of a snapshot, as sent and in full: means of half a second.
fn bytes(area: &Area<'_>, samples: &Samples, end: f64) -> Drawn {
    let mean = |of: &dyn Fn(&tower_defence::headless::Snapshot) -> usize| {
        let points = samples.snapshots.iter().map(|one| (one.at, number(of(one))));
        means(points)
    };
    let (sent, full) = (mean(&|one| one.bytes), mean(&|one| one.full));
    let mut chart = chart(area, "bytes of a snapshot: as sent (blue), in full (grey)", "", end, most(&full))?;
    chart.draw_series(LineSeries::new(full, &BLACK.mix(0.4)))?;
    chart.draw_series(LineSeries::new(sent, &BLUE))?;
    Ok(())
}

/// Plots the time from an input to its effect: p50 and p99 of each second.
fn effects(area: &Area<'_>, samples: &Samples, end: f64) -> Drawn {
    let seconds = samples.latencies.last().map_or(0, |last| last.at.as_secs());
    let of = |percent: usize| -> Vec<(f64, f64)> {
        let second = |second: u64| {
            let within = samples.latencies.iter().filter(move |one| one.at.as_secs() == second);
            (to_f64(second), percentile(within.map(|one| one.took.as_secs_f64() * 1e3), percent))
        };
        (0..seconds).map(second).collect()
    };
    let (half, most_of_them) = (of(50), of(99));
    let caption = "from an input to its effect, ms: p50 (green), p99 (grey) of each second";
    let mut chart = chart(area, caption, "", end, most(&most_of_them))?;
    chart.draw_series(LineSeries::new(most_of_them, &BLACK.mix(0.4)))?;
    chart.draw_series(LineSeries::new(half, &GREEN))?;
    Ok(())
}

fn bandwidth(area: &Area<'_>, samples: &Samples, end: f64) -> Drawn {
    let up: Vec<_> = samples.traffic.iter().map(|one| (one.at.as_secs_f64(), one.up / 1e3)).collect();
    let down: Vec<_> = samples.traffic.iter().map(|one| (one.at.as_secs_f64(), one.down / 1e3)).collect();
    let caption = "kB/s of a client: up (blue), down (red)";
    let mut chart = chart(area, caption, "time, s", end, most(&up).max(most(&down)))?;
    chart.draw_series(LineSeries::new(up, &BLUE))?;
    chart.draw_series(LineSeries::new(down, &RED))?;
    Ok(())
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn chart<'a, 'b>(
    area: &'a Area<'b>,
    caption: &str,
    time: &str,
    end: f64,
    most: f64,
) -> Result<Chart<'a, 'b>, Box<dyn Error>> {
    let mut chart = ChartBuilder::on(area)
        .caption(caption, (FONT, 14))
        .margin(6)
        .margin_right(20)
        .x_label_area_size(if time.is_empty() { 22 } else { 36 })
        .y_label_area_size(44)
        .build_cartesian_2d(0.0..end, 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .label_style((FONT, 11))
        .x_desc(time)
        .axis_desc_style((FONT, 13))
        .draw()?;
    Ok(chart)
}

/// The mean of each half second.
fn means(points: impl Iterator<Item = (Duration, f64)>) -> Vec<(f64, f64)> {
    let mut means: Vec<(u128, f64, f64)> = Vec::new();
    for (at, value) in points {
        let half = at.as_millis() / 500;
        match means.last_mut().filter(|(last, ..)| *last == half) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1.0),
            None => means.push((half, value, 1.0)),
        }
    }
    let place = |half: u128| f64::from(u32::try_from(half).unwrap_or(u32::MAX)) / 2.0;
    means.into_iter().map(|(half, sum, count)| (place(half), sum / count)).collect()
}

/// The largest value, or a small one so that an empty panel can be drawn.
fn most(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max).max(0.1)
}

fn end(samples: &Samples) -> f64 {
    samples.traffic.last().map_or(1.0, |last| last.at.as_secs_f64())
}

fn number(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}

fn to_f64(second: u64) -> f64 {
    f64::from(u32::try_from(second).unwrap_or(u32::MAX))
}
