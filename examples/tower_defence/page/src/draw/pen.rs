//! Shapes on a canvas.

use crate::layout::Layout;
use crate::palette::{NIGHT, Rgb};
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

/// A canvas, with soft lights that are kept as pictures: shadows of the canvas would take most of a frame.
pub(super) struct Pen {
    pub(super) context: CanvasRenderingContext2d,
    lights: BTreeMap<[u8; 3], HtmlCanvasElement>,
}

impl Pen {
    pub(super) fn of(element: &HtmlCanvasElement) -> Result<Self, JsValue> {
        let context = element.get_context("2d")?.ok_or("there is no canvas in two dimensions")?;
        let context = context.dyn_into::<CanvasRenderingContext2d>()?;
        Ok(Self { context, lights: BTreeMap::new() })
    }

    /// A canvas that is not in the page.
    pub(super) fn hidden(width: u32, height: u32) -> Result<(HtmlCanvasElement, Self), JsValue> {
        let document =
            web_sys::window().and_then(|window| window.document()).ok_or("there is no document")?;
        let element = document.create_element("canvas")?.dyn_into::<HtmlCanvasElement>()?;
        element.set_width(width);
        element.set_height(height);
        let pen = Self::of(&element)?;
        Ok((element, pen))
    }

    pub(super) fn begin(&self, ratio: f64) {
        let _ = self.context.set_transform(ratio, 0.0, 0.0, ratio, 0.0, 0.0);
        self.alpha(1.0);
        self.adds(false);
        self.context.set_line_cap("round");
        self.context.set_line_join("round");
    }

    pub(super) fn clear(&self, layout: &Layout) {
        self.fill(&NIGHT.css());
        self.context.fill_rect(0.0, 0.0, layout.width, layout.height);
    }

    pub(super) fn alpha(&self, alpha: f64) {
        self.context.set_global_alpha(alpha.clamp(0.0, 1.0));
    }

    /// Whether what is drawn is added, as light is.
    pub(super) fn adds(&self, is_light: bool) {
        let operation = if is_light { "lighter" } else { "source-over" };
        let _ = self.context.set_global_composite_operation(operation);
    }

    pub(super) fn fill(&self, css: &str) {
        self.context.set_fill_style_str(css);
    }

    pub(super) fn stroke(&self, css: &str, width: f64) {
        self.context.set_stroke_style_str(css);
        self.context.set_line_width(width);
    }

    pub(super) fn dash(&self, on: f64, off: f64) {
        let dashes: js_sys::Array = [on, off].map(JsValue::from).into_iter().collect();
        let _ = self.context.set_line_dash(&dashes);
    }

    pub(super) fn solid(&self) {
        let _ = self.context.set_line_dash(&js_sys::Array::new());
    }

    /// Draws only on the board.
    pub(super) fn inside(&self, layout: &Layout, draw: impl FnOnce(&Self)) {
        let (left, top) = layout.place(0.0, 0.0);
        let (right, bottom) = layout.place(layout.board.0.into(), layout.board.1.into());
        self.context.save();
        self.context.begin_path();
        self.context.rect(left, top, right - left, bottom - top);
        self.context.clip();
        draw(self);
        self.context.restore();
    }

    pub(super) fn disc(&self, (x, y): (f64, f64), radius: f64) {
        self.arc_path((x, y), radius, 0.0, TAU);
        self.context.fill();
    }

    pub(super) fn circle(&self, (x, y): (f64, f64), radius: f64) {
        self.arc_path((x, y), radius, 0.0, TAU);
        self.context.stroke();
    }

    pub(super) fn arc(&self, at: (f64, f64), radius: f64, from: f64, to: f64) {
        self.arc_path(at, radius, from, to);
        self.context.stroke();
    }

    pub(super) fn line(&self, points: &[(f64, f64)]) {
        self.path(points);
        self.context.stroke();
    }

    /// A closed shape: filled, and its edge drawn if `has_edge`.
    pub(super) fn shape(&self, points: &[(f64, f64)], has_edge: bool) {
        self.path(points);
        self.context.close_path();
        self.context.fill();
        if has_edge {
            self.context.stroke();
        }
    }

    /// A shape whose corners are equally far from its middle.
    pub(super) fn polygon(&self, at: (f64, f64), radius: f64, corners: u8, turn: f64, has_edge: bool) {
        let corner =
            |number: u8| polar(at, radius, turn + TAU * f64::from(number) / f64::from(corners.max(1)));
        let points: Vec<(f64, f64)> = (0..corners).map(corner).collect();
        self.shape(&points, has_edge);
    }

    pub(super) fn rounded(
        &self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        radius: f64,
        has_edge: bool,
    ) {
        self.context.begin_path();
        let _ = self.context.round_rect_with_f64(x, y, width, height, radius);
        self.context.fill();
        if has_edge {
            self.context.stroke();
        }
    }

    pub(super) fn text(&self, text: &str, (x, y): (f64, f64), size: f64, css: &str) {
        self.context.set_font(&format!("600 {size:.0}px system-ui, sans-serif"));
        self.context.set_text_align("center");
        self.context.set_text_baseline("middle");
        self.fill(css);
        let _ = self.context.fill_text(text, x, y);
    }

    /// A soft light.
    pub(super) fn light(&mut self, (x, y): (f64, f64), radius: f64, colour: Rgb, alpha: f64) {
        let key = [colour.0, colour.1, colour.2];
        if !self.lights.contains_key(&key)
            && let Ok(light) = soft(colour)
        {
            self.lights.insert(key, light);
        }
        let Some(light) = self.lights.get(&key) else { return };
        self.adds(true);
        self.alpha(alpha);
        let side = 2.0 * radius;
        let (left, top) = (x - radius, y - radius);
        let _ = self.context.draw_image_with_html_canvas_element_and_dw_and_dh(light, left, top, side, side);
        self.alpha(1.0);
        self.adds(false);
    }

    fn path(&self, points: &[(f64, f64)]) {
        self.context.begin_path();
        for (x, y) in points {
            self.context.line_to(*x, *y); // the first one moves there
        }
    }

    fn arc_path(&self, (x, y): (f64, f64), radius: f64, from: f64, to: f64) {
        self.context.begin_path();
        let _ = self.context.arc(x, y, radius.max(0.0), from, to);
    }
}

/// The point in a direction from another.
pub(super) fn polar((x, y): (f64, f64), radius: f64, angle: f64) -> (f64, f64) {
    (x + radius * angle.cos(), y + radius * angle.sin())
}

fn soft(colour: Rgb) -> Result<HtmlCanvasElement, JsValue> {
    let (element, pen) = Pen::hidden(64, 64)?;
    let fade = pen.context.create_radial_gradient(32.0, 32.0, 0.0, 32.0, 32.0, 32.0)?;
    for (at, alpha) in [(0.0, 0.9), (0.25, 0.42), (0.55, 0.12), (1.0, 0.0)] {
        fade.add_color_stop(at, &colour.with(alpha))?;
    }
    pen.context.set_fill_style_canvas_gradient(&fade);
    pen.context.fill_rect(0.0, 0.0, 64.0, 64.0);
    Ok(element)
}
