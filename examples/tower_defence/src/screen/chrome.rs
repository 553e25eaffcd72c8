//! Around the board: the title, messages, the state of the network, and help for the keys.

use super::controls::Controls;
use super::words;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tower_defence::client::{Figures, Line as News, View};
use tower_defence::sim::rules::{BASE, WAVES};
use tower_defence::sim::{EventKind, Phase, Role};

pub(super) fn title(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let left = view.phase_left.as_secs_f32();
    let phase = match view.phase {
        Phase::Running => format!("wave {} of {WAVES}, {left:.0} s left", view.wave),
        Phase::Upgrading => format!("next wave in {left:.0} s: spend what you have"),
    };
    let base = format!("base {}/{BASE}", view.base);
    let mut spans = vec![" Tower defence  ".bold(), phase.into(), "  ".into()];
    spans.push(if view.base * 3 < BASE { base.light_red().bold() } else { base.light_green() });
    if view.is_overcharged {
        spans.push("  overcharge!".yellow());
    }
    if view.is_bounty {
        spans.push("  bounty!".yellow());
    }
    if !view.is_live {
        spans.push("  nothing heard of the server".light_red());
    }
    frame.render_widget(Paragraph::new(Line::from(spans)).bg(Color::Indexed(236)), area);
}

/// The newest line is at the bottom, with the typed line below it.
pub(super) fn lines(frame: &mut Frame<'_>, area: Rect, view: &View, controls: &Controls) {
    let mut lines: Vec<Line<'_>> = view.lines.iter().map(|line| told(line, view)).collect();
    if let Some(text) = &controls.chat {
        lines.push(Line::from(format!(" say: {text}_").bold()));
    }
    let skipped = lines.len().saturating_sub(area.height.into());
    frame.render_widget(Paragraph::new(lines.split_off(skipped)), area);
}

fn told<'a>(line: &News, view: &View) -> Line<'a> {
    let style = match line {
        News::Chat { .. } => Style::new().fg(Color::LightCyan),
        News::Event(event) if event.kind == EventKind::Refused => Style::new().fg(Color::LightRed),
        News::Event(event) if event.kind == EventKind::Over => Style::new().bold(),
        News::Event(_) => Style::new().fg(Color::Gray),
    };
    Line::from(Span::styled(format!(" {}", words::line(line, view)), style))
}

/// The state of the network: what this example is about.
pub(super) fn network(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let Figures { rtt, loss, up, down, error, error_max, snapshot_bytes, full_bytes, ahead, .. } =
        view.figures;
    let loss = loss.map_or_else(|| "unknown".to_owned(), |loss| format!("{:.0} %", loss * 100.0));
    let text = format!(
        " RTT {} ms  loss {loss}  up {:.1} kB/s  down {:.1} kB/s  prediction error {error:.2} (max {error_max:.2}) cells  \
         snapshot {snapshot_bytes} of {full_bytes} B  {ahead} ticks ahead",
        rtt.as_millis(),
        up / 1000.0,
        down / 1000.0,
    );
    frame.render_widget(Paragraph::new(text).fg(Color::Black).bg(Color::Indexed(109)), area);
}

pub(super) fn help(frame: &mut Frame<'_>, area: Rect, view: &View, controls: &Controls) {
    let text = match (view.you, view.role) {
        _ if controls.chat.is_some() => " Enter: say it   Esc: do not",
        (None, _) => " q: leave   t: say something",
        (_, Role::Builder) => {
            " q: leave   arrows: choose a cell   Space: build, raise   Tab: kind   r g b: colour   1-4: bonus   t: say"
        }
        (_, Role::Runner) => {
            " q: leave   arrows: run, to the ◈   Space: stop   r g b v h m: choose, Enter: buy   t: say"
        }
    };
    frame.render_widget(Paragraph::new(text).fg(Color::DarkGray), area);
}
