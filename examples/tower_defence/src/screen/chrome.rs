//! Around the board: the title, messages, the state of the network, and help for the keys.

use super::controls::Controls;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tower_defence::client::{Figures, Line as News, View};
use tower_defence::sim::rules::{BASE, WAVES};
use tower_defence::sim::{EventKind, Phase, Role};
use tower_defence::words;

pub(super) fn title(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let left = view.phase_left.as_secs_f32();
    let phase: Span<'_> = match view.phase {
        _ if !view.is_live => "nothing heard of the server".light_red(), // and the rest is old
        Phase::Running => format!("wave {} of {WAVES}, {left:.0} s left", view.wave).into(),
        Phase::Upgrading => format!("next wave in {left:.0} s: spend money").into(),
    };
    let base = format!("base {}/{BASE}", view.base);
    let mut spans = vec![" Tower defence  ".bold(), phase, "  ".into()];
    spans.push(if view.base * 3 < BASE { base.light_red().bold() } else { base.light_green() });
    if view.is_overcharged {
        spans.push("  overcharge!".yellow());
    }
    if view.is_bounty {
        spans.push("  bounty!".yellow());
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
    let path = format!(
        " RTT {} ms  loss {loss}  up {:.1} kB/s  down {:.1} kB/s",
        rtt.as_millis(),
        up / 1000.0,
        down / 1000.0,
    );
    let errors = format!("prediction error {error:.2} (max {error_max:.2}) cells");
    let snapshot = format!("snapshot {snapshot_bytes} of {full_bytes} B  {ahead} ticks ahead");
    let texts = [
        format!("{path}  {errors}  {snapshot}"),
        format!("{path}  {errors}"),
        format!("{path}  error max {error_max:.2} cells"),
    ];
    let bar = Paragraph::new(fitting(texts, area.width)).fg(Color::Black).bg(Color::Indexed(109));
    frame.render_widget(bar, area);
}

/// The first text that fits, the longest first, or the last.
fn fitting<const N: usize>(texts: [String; N], width: u16) -> String {
    let fits = |text: &String| Line::raw(text.as_str()).width() <= width.into();
    let last = texts.last().cloned().unwrap_or_default();
    texts.into_iter().find(fits).unwrap_or(last)
}

pub(super) fn help(frame: &mut Frame<'_>, area: Rect, view: &View, controls: &Controls) {
    let texts = match (view.you, view.role) {
        _ if controls.chat.is_some() => [" Enter: say it   Esc: do not"; 2],
        (None, _) => [" q: leave   t: say something"; 2],
        (_, Role::Builder) => [
            " q: leave   arrows: choose a cell   Space: build, raise   Tab: kind   r g b: colour   1-4: bonus   t: say",
            " q leave  arrows cell  Space build/raise  Tab kind  rgb colour  1-4 bonus  t say",
        ],
        (_, Role::Runner) => [
            " q: leave   arrows: run, to the ◈   Space: stop   r g b v h m: choose, Enter: buy   t: say",
            " q leave  arrows run, to ◈  Space stop  rgbvhm choose  Enter buy  t say",
        ],
    };
    let text = fitting(texts.map(str::to_owned), area.width);
    frame.render_widget(Paragraph::new(text).fg(Color::DarkGray), area);
}
