//! The picture of an event log: segments sent and acknowledged, round trips, windows and queues over the same time.

use crate::trace::{CAUSES, Trace};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// Draws an SVG. Equal logs give equal bytes.
pub(crate) fn draw(title: &str, trace: &Trace) -> Result<String, String> {
    let mut svg = String::new();
    fill(&mut svg, title, trace).map_err(|error| format!("no picture: {error}"))?;
    Ok(svg)
}

fn fill(svg: &mut String, title: &str, trace: &Trace) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let missing =
        if trace.lost > 0 { format!(" ({} events are missing)", trace.lost) } else { String::new() };
    root.draw(&Text::new(format!("{title}{missing}"), (LEFT, 14), ("sans-serif", 20)))?;
    let (_, below) = root.split_vertically(HEAD);
    let (sequence, below) = below.split_vertically(TALL);
    let panels = below.split_evenly((3, 1));
    let [rtt, window, queue] = panels.as_slice() else { return Err("no panels".into()) };
    self::sequence(&sequence, trace)?;
    self::rtt(rtt, trace)?;
    self::window(window, trace)?;
    self::queue(queue, trace)?;
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws axes for values up to `most`, over the time of the log.
fn chart<'a, 'b>(
    area: &'a Area<'b>,
    trace: &Trace,
    most: f64,
    what: &str,
    time: &str,
) -> Result<Chart<'a, 'b>, Box<dyn Error>> {
    let end = trace.end.max(1e-3) * 1.005;
    let mut chart = ChartBuilder::on(area)
        .margin_left(10)
        .margin_right(8)
        .margin_bottom(6)
        .margin_top(8)
        .set_label_area_size(LabelAreaPosition::Left, 76)
        .set_label_area_size(LabelAreaPosition::Bottom, if time.is_empty() { 24 } else { 44 })
        .build_cartesian_2d(0.0..end, 0.0..most.max(1.0) * 1.06)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.1))
        .x_labels(11)
        .y_labels(5)
        .x_desc(time)
        .y_desc(what)
        .x_label_formatter(&|s| format!("{}", (s * 1e3).round() / 1e3))
        .y_label_formatter(&|value| format!("{}", (value * 10.0).round() / 10.0))
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 16))
        .draw()?;
    Ok(chart)
}

/// The meaning of a line or mark.
struct Entry {
    shape: Shape,
    color: RGBColor,
    name: String,
}

#[derive(Clone, Copy)]
enum Shape {
    Line,
    Bar,
    Dot,
    Triangle,
}

/// Draws the legend of a panel to the right of it.
fn legend(area: &Area<'_>, entries: &[Entry]) -> Result<(), Box<dyn Error>> {
    for (row, Entry { shape, color, name }) in (0..).zip(entries) {
        let y = 24 + 24 * row;
        match shape {
            Shape::Line => area.draw(&PathElement::new([(6, y), (30, y)], color.stroke_width(2)))?,
            Shape::Bar => area.draw(&PathElement::new([(18, y - 7), (18, y + 7)], color.stroke_width(3)))?,
            Shape::Dot => area.draw(&Circle::new((18, y), 3, color.mix(0.5).filled()))?,
            Shape::Triangle => area.draw(&TriangleMarker::new((18, y), MARK, color.filled()))?,
        }
        let style = TextStyle::from(("sans-serif", 15)).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(name.as_str(), (40, y), style))?;
    }
    Ok(())
}

impl Entry {
    fn new(shape: Shape, color: RGBColor, name: impl Into<String>) -> Self {
        Self { shape, color, name: name.into() }
    }
}

/// Draws a line. Returns its legend entry.
fn line(
    chart: &mut Chart<'_, '_>,
    points: impl Iterator<Item = (f64, f64)>,
    color: RGBColor,
    name: &str,
) -> Result<Entry, Box<dyn Error>> {
    chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
    Ok(Entry::new(Shape::Line, color, name))
}

/// A value that stays until the next one, up to the end.
fn steps(points: &[(f64, f64)], end: f64) -> impl Iterator<Item = (f64, f64)> + use<'_> {
    let next = points.iter().skip(1).map(|(at, _)| *at).chain([end]);
    points.iter().zip(next).flat_map(|(&(at, value), next)| [(at, value), (next, value)])
}

fn sequence(area: &Area<'_>, trace: &Trace) -> Result<(), Box<dyn Error>> {
    let (area, right) = area.split_horizontally(CHART);
    let most = trace.sends.iter().map(|(_, sn, n)| sn + n).fold(0.0, f64::max);
    let mut chart = chart(&area, trace, most, "segment number", "")?;
    // A mark has a minimum height, whatever the number of segments.
    let least = most / f64::from(TALL) * 3.0;
    let bar = |&(at, sn, n): &(f64, f64, f64)| {
        PathElement::new([(at, sn), (at, sn + n.max(least))], SENT.stroke_width(3))
    };
    chart.draw_series(trace.sends.iter().map(bar))?;
    let mut entries = vec![Entry::new(Shape::Bar, SENT, "sent")];
    entries.push(line(&mut chart, steps(&trace.acks, trace.end), ACKED, "acknowledged up to here")?);
    for (index, (cause, color)) in CAUSES.into_iter().zip(AGAIN).enumerate() {
        let of_cause: Vec<_> = trace.resends.iter().filter(|(.., cause)| *cause == index).collect();
        if of_cause.is_empty() {
            continue;
        }
        entries.push(Entry::new(Shape::Triangle, color, format!("resent: {cause} ({})", of_cause.len())));
        let mark = |&(at, sn, _): &(f64, f64, usize)| TriangleMarker::new((at, sn), MARK, color.filled());
        chart.draw_series(of_cause.into_iter().map(mark))?;
    }
    legend(&right, &entries)
}

fn rtt(area: &Area<'_>, trace: &Trace) -> Result<(), Box<dyn Error>> {
    let (area, right) = area.split_horizontally(CHART);
    let most = trace.rtts.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
    let mut chart = chart(&area, trace, most, "round trip, ms", "")?;
    let dot = |&(at, [rtt, ..]): &(f64, [f64; 3])| Circle::new((at, rtt), 3, ACKED.mix(0.5).filled());
    chart.draw_series(trace.rtts.iter().map(dot))?;
    let smoothed = trace.rtts.iter().map(|&(at, [_, srtt, _])| (at, srtt));
    let timeouts: Vec<_> = trace.rtts.iter().map(|&(at, [.., rto])| (at, rto)).collect();
    let entries = [
        Entry::new(Shape::Dot, ACKED, "measured (rtt)"),
        line(&mut chart, smoothed, BLACK, "smoothed (srtt)")?,
        line(&mut chart, steps(&timeouts, trace.end), TIMEOUT, "timeout (rto)")?,
    ];
    legend(&right, &entries)
}

fn window(area: &Area<'_>, trace: &Trace) -> Result<(), Box<dyn Error>> {
    let (area, right) = area.split_horizontally(CHART);
    let in_flight: Vec<_> = trace.queues.iter().map(|&(at, [_, in_flight, ..])| (at, in_flight)).collect();
    // A window far beyond what is in flight only needs to be shown as such.
    let top = 4.0 * in_flight.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    let shown = |(at, value): &(f64, f64)| (*at, value.min(top));
    let cwnds: Vec<_> = trace.cwnds.iter().map(shown).collect();
    let most = cwnds.iter().chain(&in_flight).map(|(_, value)| *value).fold(0.0, f64::max);
    let mut chart = chart(&area, trace, most, "window, segments", "")?;
    let entries = [
        line(&mut chart, steps(&in_flight, trace.end), SENT, "in flight")?,
        line(&mut chart, steps(&cwnds, trace.end), BLACK, "cwnd")?,
    ];
    legend(&right, &entries)
}

fn queue(area: &Area<'_>, trace: &Trace) -> Result<(), Box<dyn Error>> {
    let (area, right) = area.split_horizontally(CHART);
    let points = |value: fn(&[f64; 4]) -> f64| -> Vec<_> {
        trace.queues.iter().map(|(at, values)| (*at, value(values))).collect()
    };
    let lines = [
        (points(|[waiting, ..]| *waiting), ACKED, "waiting to be sent"),
        (points(|[_, _, unread, _]| *unread), READ, "received, not read"),
        (points(|[.., parked]| *parked), TIMEOUT, "received out of order"),
    ];
    let most = lines.iter().flat_map(|(points, ..)| points).map(|(_, value)| *value).fold(0.0, f64::max);
    let mut chart = chart(&area, trace, most, "queue, segments", "time, s")?;
    let mut entries = Vec::new();
    for (index, (points, color, name)) in lines.iter().enumerate() {
        if index == 0 || points.iter().any(|(_, value)| *value > 0.0) {
            entries.push(line(&mut chart, steps(points, trace.end), *color, name)?);
        }
    }
    legend(&right, &entries)
}

const SIZE: (u32, u32) = (1280, 1200);
/// Where charts end and legends begin.
const CHART: i32 = 1050;
/// The height of the title.
const HEAD: i32 = 44;
const LEFT: i32 = 86;
/// The height of the first panel.
const TALL: i32 = 480;
/// Half a mark, pixels.
const MARK: i32 = 6;

// Told apart by most who are color-blind. Source: Okabe, Ito, "Color Universal Design", 2008.
const SENT: RGBColor = RGBColor(86, 180, 233);
const ACKED: RGBColor = RGBColor(0, 114, 178);
const TIMEOUT: RGBColor = RGBColor(213, 94, 0);
const READ: RGBColor = RGBColor(0, 158, 115);
/// By cause.
const AGAIN: [RGBColor; 4] = [TIMEOUT, RGBColor(0, 0, 0), RGBColor(230, 159, 0), RGBColor(204, 121, 167)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};

    /// What `latency` with these words writes down and draws.
    fn drawn(words: &str) -> (Trace, String) {
        let Ok(Command::Events(events)) = Args::parse(words.split_whitespace().map(str::to_owned)) else {
            panic!("{words} is no run");
        };
        let mut log = Vec::new();
        let lines = crate::events::run(&events, &mut log).unwrap();
        let log = String::from_utf8(log).unwrap();
        assert_eq!(log.lines().count(), lines);
        let trace = Trace::parse(&log, 0).unwrap();
        let svg = draw(&events.plot.unwrap().title, &trace).unwrap();
        (trace, svg)
    }

    #[test]
    fn the_four_panels_have_as_many_marks_as_segments_were_sent_again() {
        for mode in ["by-time", "turbo", "repairs30"] {
            let (trace, svg) = drawn(&format!("--events x --plot --modes {mode} --seed 4"));
            for panel in
                ["segment number", "round trip, ms", "window, segments", "queue, segments", "time, s"]
            {
                assert!(svg.lines().any(|line| line == panel), "{mode}: no {panel}");
            }
            let used = (0..CAUSES.len()).filter(|cause| trace.resends.iter().any(|(.., why)| why == cause));
            assert!(trace.resends.len() > 5, "{mode}");
            // And one for each cause that says what it means.
            assert_eq!(svg.matches("<polygon").count(), trace.resends.len() + used.count(), "{mode}");
            assert_eq!(svg.matches("<circle").count(), trace.rtts.len() + 1, "{mode}");
        }
    }

    #[test]
    fn a_log_of_next_to_nothing_leaves_a_picture() {
        let log = r#"{"t":1,"e":"lost","n":7}
{"t":1,"e":"ack","una":7,"n":1,"bytes":5}"#;
        let svg = draw("<next to nothing>", &Trace::parse(log, 0).unwrap()).unwrap();
        assert!(
            svg.contains("&lt;next to nothing&gt; (7 events are missing)")
                && svg.trim_end().ends_with("</svg>")
        );
    }

    #[test]
    fn the_picture_in_the_docs_is_what_the_command_beside_it_draws() {
        let docs = include_str!("../../docs/EVENTS.md");
        let command = docs
            .lines()
            .find_map(|line| line.strip_prefix("cargo run --release --example latency -- "))
            .unwrap();
        let (_, svg) = drawn(command);
        assert!(svg == include_str!("../../docs/events.svg"), "draw it again: {command}");
    }
}
