//! What JavaScript calls. It owns frames, events and elements that are typed into; what they mean is decided here.

use crate::controls::{Controls, Said};
use crate::draw::{Canvas, Drawn};
use crate::effects::Effects;
use crate::here::Here;
use crate::layout::Layout;
use crate::net::There;
use crate::panel::Panel;
use crate::summary;
use std::time::Duration;
use tower_defence::client::{Command, View};
use tower_defence::lab::LinkSpec;
use tower_defence::wire::{Hello, NAME_MAX, Wish, shown};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::HtmlCanvasElement;
use whitewater_web::Target;

/// The game that is shown.
pub(crate) enum Shown {
    /// Bots, behind the start screen.
    Demo(Here),
    /// Our own, in this page.
    Here(Here),
    /// On a server.
    There(Box<There>),
    /// It is over for us, and why.
    Over(String),
}

/// A page with a canvas.
#[wasm_bindgen]
pub struct Page {
    canvas: Canvas,
    panel: Panel,
    pub(crate) shown: Shown,
    pub(crate) view: Option<View>,
    pub(crate) controls: Controls,
    pub(crate) effects: Effects,
    pub(crate) layout: Layout,
    pub(crate) drawn: Drawn,
    pub(crate) frames: Frames,
    last: f64,
}

/// Frames each second.
#[derive(Default)]
pub(crate) struct Frames {
    pub(crate) rate: f64,
    count: u32,
    since: f64,
}

impl Frames {
    fn count(&mut self, now: f64) {
        self.count += 1;
        if now - self.since >= 1000.0 {
            self.rate = f64::from(self.count) * 1000.0 / (now - self.since);
            (self.count, self.since) = (0, now);
        }
    }
}

#[wasm_bindgen]
impl Page {
    /// A page whose canvas has the id `board`. Bots play until somebody does.
    ///
    /// # Errors
    ///
    /// The page has no such canvas.
    #[wasm_bindgen(constructor)]
    pub fn new(seed: u32) -> Result<Self, JsValue> {
        std::panic::set_hook(Box::new(|info| web_sys::console::error_1(&info.to_string().into())));
        let document =
            web_sys::window().and_then(|window| window.document()).ok_or("there is no document")?;
        let element = document.get_element_by_id("board").ok_or("there is no canvas")?;
        let canvas = Canvas::new(element.dyn_into::<HtmlCanvasElement>()?)?;
        Ok(Self {
            canvas,
            panel: Panel::new(document),
            shown: Shown::Demo(demo(seed)),
            view: None,
            controls: Controls::default(),
            effects: Effects::default(),
            layout: Layout::fit(1.0, 1.0, BOARD),
            drawn: Drawn::default(),
            frames: Frames::default(),
            last: 0.0,
        })
    }

    /// Plays in this page, against bots over a simulated network: round trip in ms, loss in percent.
    pub fn play_here(&mut self, name: &str, wish: &str, rtt: f64, loss: f64, bots: u8, seed: u32) {
        let here =
            Here::new(self.last, &name_of(name), wish_of(wish), bots.min(23), &link(rtt, loss), seed.into());
        self.begin(Shown::Here(here));
    }

    /// Changes the simulated network.
    pub fn set_link(&mut self, rtt: f64, loss: f64) {
        if let Shown::Here(here) = &mut self.shown {
            here.set_link(&link(rtt, loss));
        }
    }

    /// Plays on a server. `hashes`: 32 bytes for each certificate. `ticket`: the number with which a player gets their place back.
    ///
    /// # Errors
    ///
    /// What is wrong with the server's config, in words for the player.
    #[expect(clippy::too_many_arguments, reason = "JavaScript has no other types for them")]
    pub fn join(
        &mut self,
        name: &str,
        wish: &str,
        ticket: u64,
        url: &str,
        websocket: Option<String>,
        hashes: &[u8],
        secret: &[u8],
    ) -> Result<(), String> {
        let secret = secret.try_into().map_err(|_| "the secret of the server has not 32 bytes".to_owned())?;
        let target = target(url, websocket, hashes)?;
        let hello = Hello { name: name_of(name), wish: wish_of(wish), ticket };
        let there = There::join(target, secret, &hello)?;
        self.begin(Shown::There(Box::new(there)));
        Ok(())
    }

    /// Whether to ask the server once more how to join, and to tell the answer to [`moved`](Self::moved).
    pub fn takes_config(&mut self) -> bool {
        match &mut self.shown {
            Shown::There(there) => there.take_question(),
            _ => false,
        }
    }

    /// The next session goes there, with the same name, role and ticket.
    ///
    /// # Errors
    ///
    /// What is wrong with the server's config.
    pub fn moved(&mut self, url: &str, websocket: Option<String>, hashes: &[u8]) -> Result<(), String> {
        if let Shown::There(there) = &mut self.shown {
            there.set_target(target(url, websocket, hashes)?);
        }
        Ok(())
    }

    /// Goes back to the start screen, where bots play.
    pub fn leave(&mut self, seed: u32) {
        self.begin(Shown::Demo(demo(seed)));
    }

    /// Receives and sends without drawing: for a tab in the background.
    pub fn pump(&mut self, now: f64) {
        let told = match &mut self.shown {
            Shown::Demo(here) | Shown::Here(here) => {
                here.pump(now);
                Ok(())
            }
            Shown::There(there) => there.pump(now),
            Shown::Over(_) => Ok(()),
        };
        if let Err(told) = told {
            self.shown = Shown::Over(told);
        }
    }

    /// Draws a frame, at the browser's time in ms.
    pub fn frame(&mut self, now: f64) {
        self.frames.count(now);
        let passed = ((now - self.last) / 1000.0).clamp(0.0, 0.1);
        self.last = now;
        self.pump(now);
        let view = match &self.shown {
            Shown::Demo(here) | Shown::Here(here) => here.view(),
            Shown::There(there) => there.view(),
            Shown::Over(_) => None,
        };
        self.view = view.or(self.view.take()); // while we connect again, the last view stays
        self.effects.advance(passed);
        let board = self.view.as_ref().map_or(BOARD, |view| (view.board.width(), view.board.height()));
        self.layout = self.canvas.fit(board);
        if let Some(view) = &self.view {
            self.effects.watch(view);
            self.drawn = self.canvas.draw(now, view, &self.controls, &self.effects, &self.layout);
        }
        self.panel.show(now, &self.shown, self.view.as_ref(), &self.controls, self.frames.rate);
    }

    /// A key is pressed or released. Returns what JavaScript has to do: `talk`, `leave`, `taken` or nothing.
    pub fn key(&mut self, key: &str, is_down: bool) -> String {
        let said = match &self.view {
            Some(view) if self.is_playing() => self.controls.key(key, is_down, view, &self.layout),
            _ if is_down && matches!(key, "q" | "Escape") => Said::Leave,
            _ => Said::Nothing,
        };
        self.act(said)
    }

    /// A button with this name is pressed. Returns the same as [`key`](Self::key).
    pub fn press(&mut self, button: &str) -> String {
        let said = match (&self.view, button) {
            (_, "leave") => Said::Leave,
            (Some(view), _) if self.is_playing() => self.controls.press(button, view),
            _ => Said::Nothing,
        };
        self.act(said)
    }

    /// A pointer on the canvas: `down`, `move`, `up` or `cancel`, in pixels of CSS.
    pub fn pointer(&mut self, what: &str, id: i32, x: f64, y: f64) {
        let Some(view) = self.view.as_ref().filter(|_| self.is_playing()) else { return };
        let said = match what {
            "down" => self.controls.down(id, x, y, view, &self.layout),
            "move" => self.controls.moved(id, x, y, &self.layout),
            "up" => self.controls.up(id, view, &self.layout),
            _ => self.controls.cancelled(id, &self.layout),
        };
        self.act(said);
    }

    /// The mouse is over the canvas, or has left it.
    pub fn hover(&mut self, x: f64, y: f64) {
        self.controls.hover = self.layout.hit(x, y);
    }

    /// The page has lost the keyboard.
    pub fn blurred(&mut self) {
        let said = self.controls.blurred(&self.layout);
        self.act(said);
    }

    /// Says something to all.
    pub fn say(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.command(Command::Chat(text.trim().to_owned()));
        }
    }

    /// What is shown, for tests and the curious.
    #[must_use]
    pub fn summary(&self) -> JsValue {
        summary::of(self)
    }
}

impl Page {
    fn is_playing(&self) -> bool {
        matches!(self.shown, Shown::Here(_) | Shown::There(_))
    }

    fn begin(&mut self, shown: Shown) {
        self.shown = shown;
        self.view = None;
        self.effects.clear();
        self.controls = Controls::default();
    }

    fn act(&mut self, said: Said) -> String {
        let told = match said {
            Said::Nothing => "",
            Said::Chosen => "taken",
            Said::Talk => "talk",
            Said::Leave => "leave",
            Said::Command(command) => {
                self.command(command);
                "taken"
            }
        };
        told.to_owned()
    }

    fn command(&mut self, command: Command) {
        match &mut self.shown {
            Shown::Here(here) => here.command(command),
            Shown::There(there) => there.command(command),
            Shown::Demo(_) | Shown::Over(_) => {}
        }
    }
}

/// In the middle of a wave, so that there is something to see.
fn demo(seed: u32) -> Here {
    let mut here = Here::new(0.0, "", Wish::Watch, 9, &link(40.0, 1.0), seed.into());
    here.skip(Duration::from_secs(9));
    here
}

fn target(url: &str, websocket: Option<String>, hashes: &[u8]) -> Result<Target, String> {
    let (certificate_hashes, rest) = hashes.as_chunks();
    if !rest.is_empty() {
        return Err("a hash of a certificate has not 32 bytes".to_owned());
    }
    Ok(Target { certificate_hashes: certificate_hashes.to_vec(), websocket, ..Target::new(url) })
}

fn link(rtt: f64, loss: f64) -> LinkSpec {
    let rtt = Duration::from_secs_f64(if rtt.is_finite() { rtt.clamp(0.0, 2000.0) / 1000.0 } else { 0.0 });
    let loss = if loss.is_finite() { loss.clamp(0.0, 90.0) / 100.0 } else { 0.0 };
    LinkSpec { rtt, loss, ..LinkSpec::default() }
}

fn wish_of(wish: &str) -> Wish {
    match wish {
        "build" => Wish::Build,
        "run" => Wish::Run,
        "watch" => Wish::Watch,
        _ => Wish::Any,
    }
}

/// As much of a name as others can be shown.
fn name_of(name: &str) -> String {
    let mut name = shown(name.trim());
    while name.len() > NAME_MAX {
        name.pop();
    }
    if name.is_empty() { "somebody".to_owned() } else { name }
}

/// The board until one is known.
const BOARD: (u8, u8) = tower_defence::sim::rules::BOARD;
