//! whitewater for Godot 4: `WhitewaterMultiplayerPeer`, which takes the place of `ENetMultiplayerPeer`. docs/engines/GODOT.md shows its use.
//!
//! - [`lane`]: which channel of a session carries which transfer mode and channel of Godot.
//! - [`settings`]: what a script sets, as the settings of a session.
//! - [`link`]: one end of sessions as Godot sees it, without the engine: a [`host`] or a [`guest`].
//! - [`inbox`]: packets that have arrived and wait to be read.
//! - [`peer`]: the class that scripts see.

mod guest;
mod host;
mod inbox;
mod lane;
mod link;
mod peer;
mod settings;

use godot::init::{ExtensionLibrary, gdextension};

struct Whitewater;

// SAFETY: nothing of the engine is used outside of the calls that it makes.
#[gdextension]
unsafe impl ExtensionLibrary for Whitewater {}
