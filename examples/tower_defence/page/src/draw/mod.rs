//! The canvas. Everything is drawn anew in each frame, but the floor, which is kept as a picture.

mod floor;
mod marks;
mod pen;
mod runners;
mod shots;
mod sparks;
mod turrets;

use crate::controls::Controls;
use crate::effects::Effects;
use crate::layout::Layout;
use floor::Floor;
use pen::Pen;
use tower_defence::client::View;
use wasm_bindgen::JsValue;
use web_sys::HtmlCanvasElement;

/// How much was drawn in the last frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawn {
    pub(crate) turrets: u32,
    /// Of these, what the server has not confirmed yet.
    pub(crate) guesses: u32,
    pub(crate) runners: u32,
    pub(crate) beams: u32,
    pub(crate) coins: u32,
}

/// The canvas of the page.
pub(crate) struct Canvas {
    element: HtmlCanvasElement,
    pen: Pen,
    floor: Option<Floor>,
    /// Pixels of the screen for each of CSS.
    ratio: f64,
}

impl Canvas {
    pub(crate) fn new(element: HtmlCanvasElement) -> Result<Self, JsValue> {
        let pen = Pen::of(&element)?;
        Ok(Self { element, pen, floor: None, ratio: 1.0 })
    }

    /// Fits the canvas to its element, and the board to the canvas.
    pub(crate) fn fit(&mut self, board: (u8, u8)) -> Layout {
        let ratio = web_sys::window().map_or(1.0, |window| window.device_pixel_ratio());
        // Beyond three, nobody sees a difference, but the phone gets warm.
        self.ratio = if ratio.is_finite() { ratio.clamp(1.0, 3.0) } else { 1.0 };
        let (width, height) =
            (f64::from(self.element.client_width()), f64::from(self.element.client_height()));
        let (columns, rows) = (pixels(width * self.ratio), pixels(height * self.ratio));
        if (self.element.width(), self.element.height()) != (columns, rows) {
            self.element.set_width(columns);
            self.element.set_height(rows);
        }
        Layout::fit(width, height, board)
    }

    pub(crate) fn draw(
        &mut self,
        now: f64,
        view: &View,
        controls: &Controls,
        effects: &Effects,
        layout: &Layout,
    ) -> Drawn {
        if self.floor.as_ref().is_none_or(|floor| !floor.is_of(view, layout, self.ratio)) {
            self.floor = Floor::new(view, layout, self.ratio).ok();
        }
        let (pen, seconds) = (&mut self.pen, now / 1000.0);
        pen.begin(self.ratio);
        match &self.floor {
            Some(floor) => floor.draw(pen, layout),
            None => pen.clear(layout),
        }
        marks::ends(pen, layout, view, seconds);
        let coins = marks::coins(pen, layout, view, seconds);
        marks::range(pen, layout, view, controls, seconds);
        let (turrets, guesses) = turrets::all(pen, layout, view, effects);
        marks::chosen(pen, layout, view, controls, seconds);
        let beams = shots::all(pen, layout, view);
        let runners = runners::all(pen, layout, view, seconds);
        sparks::all(pen, layout, effects);
        marks::stick(pen, controls);
        marks::countdown(pen, layout, view);
        Drawn { turrets, guesses, runners, beams, coins }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
fn pixels(length: f64) -> u32 {
    length.round().clamp(1.0, 8192.0) as u32
}
