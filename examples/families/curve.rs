//! The picture of latency and bytes over loss.

use super::{bars::lossy, modes, ours};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use whitewater::Repairs;
use whitewater_sim::scenario::{Mode, Scenario, Workload};

/// The curve of a mode: a value for each loss in percent.
struct Curve {
    name: String,
    mean: Vec<(f64, f64)>,
    p99: Vec<(f64, f64)>,
    bytes: Vec<(f64, f64)>,
}

/// Runs every mode at every loss and writes the picture to `path`.
pub(crate) fn draw(seeds: u64, path: &str) -> Result<(), Box<dyn Error>> {
    let modes = [
        Mode::fast(),
        Mode::turbo_flush(),
        ours(Repairs::Off),
        ours(Repairs::Auto),
        ours(Repairs::Budget(100)),
    ];
    let curves = modes.iter().map(|mode| curve(mode, seeds)).collect::<Result<Vec<_>, _>>()?;
    let mut svg = String::new();
    fill(&mut svg, seeds, &curves).map_err(|error| format!("no picture: {error}"))?;
    std::fs::write(path, svg)?;
    println!("picture: {path}");
    Ok(())
}

fn curve(mode: &Mode, seeds: u64) -> Result<Curve, Box<dyn Error>> {
    let (mut mean, mut p99, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for percent in LOSSES {
        let report =
            Scenario::new(Workload::input60(), lossy(percent / 100.0), mode.clone()).run(1..=seeds)?;
        let latency = report.latency();
        mean.push((percent, latency.mean.as_secs_f64() * 1e3));
        p99.push((percent, latency.p99.as_secs_f64() * 1e3));
        // A run lasts a minute.
        bytes.push((percent, report.bytes() as f64 / seeds as f64 / 60.0 * 8.0 / 1e3));
    }
    Ok(Curve { name: mode.name.clone(), mean, p99, bytes })
}

fn fill(svg: &mut String, seeds: u64, curves: &[Curve]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, (1200, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("{}; round trip 60 to 72 ms; {seeds} runs", modes::describe(&Workload::input60()));
    let head = TextStyle::from(("sans-serif", 23)).pos(Pos::new(HPos::Center, VPos::Top));
    root.draw(&Text::new(title, (600, 12), head))?;
    let (_, below) = root.split_vertically(44);
    let panels = below.split_evenly((1, 3));
    let [mean, p99, bytes] = panels.as_slice() else { return Err("no panels".into()) };
    panel(mean, "mean latency, ms", curves, |curve| &curve.mean, SeriesLabelPosition::UpperLeft)?;
    panel(p99, "p99 of the latency, ms", curves, |curve| &curve.p99, SeriesLabelPosition::UpperLeft)?;
    panel(
        bytes,
        "sent in both directions, kbit/s",
        curves,
        |curve| &curve.bytes,
        SeriesLabelPosition::LowerRight,
    )?;
    root.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    what: &str,
    curves: &[Curve],
    points: fn(&Curve) -> &[(f64, f64)],
    legend: SeriesLabelPosition,
) -> Result<(), Box<dyn Error>> {
    let most = curves.iter().flat_map(points).map(|(_, value)| *value).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .caption(what, ("sans-serif", 20))
        .set_label_area_size(LabelAreaPosition::Left, 50)
        .set_label_area_size(LabelAreaPosition::Bottom, 46)
        .build_cartesian_2d(0.0..MOST, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc("lost each way, percent")
        .x_labels(7)
        .x_label_formatter(&|percent| format!("{percent:.0}"))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 16))
        .draw()?;
    for curve in curves {
        let style = modes::color(&curve.name).stroke_width(2);
        let line = chart.draw_series(LineSeries::new(points(curve).iter().copied(), style))?;
        line.label(&curve.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    let mut labels = chart.configure_series_labels();
    let labels = labels.position(legend).label_font(("sans-serif", 15));
    labels.background_style(WHITE.mix(0.85)).border_style(BLACK.mix(0.3)).draw()?;
    Ok(())
}

/// Losses in percent.
const LOSSES: [f64; 9] = [0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, MOST];
const MOST: f64 = 30.0;
