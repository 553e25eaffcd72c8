//! What does not move: floor and rocks, drawn once into a picture.

use super::pen::Pen;
use super::pixels;
use crate::layout::Layout;
use crate::palette::{FLOOR, LIGHT, NIGHT, ROCK};
use tower_defence::client::View;
use tower_defence::sim::{At, Cell};
use wasm_bindgen::JsValue;
use web_sys::HtmlCanvasElement;

pub(super) struct Floor {
    picture: HtmlCanvasElement,
    layout: Layout,
    ratio: f64,
    rocks: Vec<At>,
}

impl Floor {
    pub(super) fn new(view: &View, layout: &Layout, ratio: f64) -> Result<Self, JsValue> {
        let (picture, pen) = Pen::hidden(pixels(layout.width * ratio), pixels(layout.height * ratio))?;
        pen.begin(ratio);
        pen.clear(layout);
        let (left, top) = layout.place(0.0, 0.0);
        let (right, bottom) = layout.place(view.board.width().into(), view.board.height().into());
        pen.stroke(&ROCK[1].css(), 2.0);
        pen.fill(&NIGHT.css());
        pen.rounded((left - 2.0, top - 2.0), (right - left + 4.0, bottom - top + 4.0), 6.0, true);
        let (rocks, side) = (rocks(view), layout.cell);
        for at in view.board.places() {
            let (x, y) = layout.place(at.x.into(), at.y.into());
            let [even, odd] = FLOOR;
            pen.fill(&if (at.x ^ at.y) & 1 == 0 { even } else { odd }.css());
            pen.context.fill_rect(x, y, side, side);
        }
        pen.stroke(&LIGHT.with(0.035), 1.0);
        for at in view.board.places() {
            let (x, y) = layout.place(at.x.into(), at.y.into());
            pen.context.stroke_rect(x + 0.5, y + 0.5, side, side);
        }
        for at in &rocks {
            rock(&pen, layout, *at);
        }
        Ok(Self { picture, layout: *layout, ratio, rocks })
    }

    pub(super) fn is_of(&self, view: &View, layout: &Layout, ratio: f64) -> bool {
        self.layout == *layout && self.ratio.to_bits() == ratio.to_bits() && self.rocks == rocks(view)
    }

    pub(super) fn draw(&self, pen: &Pen, layout: &Layout) {
        let (picture, width, height) = (&self.picture, layout.width, layout.height);
        let _ =
            pen.context.draw_image_with_html_canvas_element_and_dw_and_dh(picture, 0.0, 0.0, width, height);
    }
}

fn rocks(view: &View) -> Vec<At> {
    view.board.iter().filter(|(_, cell)| *cell == Cell::Rock).map(|(at, _)| at).collect()
}

/// A block with two stones on it, which differ from cell to cell.
fn rock(pen: &Pen, layout: &Layout, at: At) {
    let [side, top, edge] = ROCK;
    let (cell, (x, y)) = (layout.cell, layout.place(at.x.into(), at.y.into()));
    let inset = cell * 0.05;
    pen.stroke(&edge.with(0.0), 0.0);
    pen.fill(&side.css());
    pen.rounded((x + inset, y + inset), (cell - 2.0 * inset, cell - 2.0 * inset), cell * 0.16, false);
    pen.fill(&top.css());
    pen.rounded((x + inset, y + inset), (cell - 2.0 * inset, cell * 0.78), cell * 0.16, false);
    let kind = u32::from(at.x) * 7 + u32::from(at.y) * 13;
    let turn = f64::from(kind % 9) * 0.7;
    let shift = f64::from(kind % 5) * 0.05 - 0.1;
    pen.fill(&edge.css());
    pen.polygon((x + cell * (0.36 + shift), y + cell * 0.34), cell * 0.14, 5, turn, false);
    pen.polygon((x + cell * (0.64 + shift), y + cell * 0.54), cell * 0.1, 5, turn + 1.0, false);
}
