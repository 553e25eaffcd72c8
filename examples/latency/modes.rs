//! Modes and workloads in pictures. A mode has the same colour in all of them.

use plotters::style::RGBColor;
use whitewater_sim::scenario::{Answer, Traffic, Workload};

/// The colour of a mode. Most people who are color-blind can tell them apart. Source: Okabe, Ito, "Color
/// Universal Design", 2008, with its yellow replaced by a brown that shows on white.
pub(crate) fn color(mode: &str) -> RGBColor {
    match mode {
        "normal" => RGBColor(0, 0, 0),
        "fast" => RGBColor(230, 159, 0),
        "turbo" => RGBColor(204, 121, 167),
        "turbo + flush" => RGBColor(213, 94, 0),
        "by time" => RGBColor(0, 114, 178),
        "repairs 10 %" => RGBColor(86, 180, 233),
        "auto" | "repairs 30 %" => RGBColor(0, 158, 115),
        "repairs 100 %" => RGBColor(140, 86, 40),
        _ => RGBColor(128, 128, 128),
    }
}

/// What a workload sends, in words.
pub(crate) fn describe(workload: &Workload) -> String {
    let messages = |Traffic { count, size, every }: Traffic| match every.as_secs_f64() {
        0.0 => format!("{count} messages of {size} bytes at once"),
        every => format!("{:.0} messages of {size} bytes per second", 1.0 / every),
    };
    let back = match workload.answer {
        Answer::Traffic(answer) => format!(", {} back", messages(answer)),
        Answer::Echo => ", echoed".to_owned(),
        _ => String::new(),
    };
    messages(workload.traffic) + &back
}
