//! The end in a browser.

use crate::{Click, Cookie, SECRET};
use bevy::prelude::*;
use bevy_replicon::prelude::*;
use bevy_whitewater::WhitewaterClient;
use bevy_whitewater::replicon::RepliconSession;
use js_sys::{Reflect, global};
use wasm_bindgen::JsValue;
use whitewater::ClientConfig;
use whitewater_web::Target;

pub(crate) fn play(mut app: App) {
    app.add_systems(Startup, join).add_systems(Update, (click, show)).run();
}

fn join(mut commands: Commands<'_, '_>, channels: Res<'_, RepliconChannels>) -> Result {
    let place = get(&global(), "place");
    let text = |name| get(&place, name).as_string().unwrap_or_default();
    let mut target = Target::new(text("url"));
    target.websocket = get(&place, "websocket").as_string();
    target.certificate_hashes.push(bytes(&text("hash"))?);
    let config = ClientConfig::secret(channels.session(), SECRET);
    commands.insert_resource(WhitewaterClient::connect(&target, &config)?);
    Ok(())
}

/// Clicks come from the page: it adds to the global `clicks`, which is 0 after each frame.
fn click(mut clicks: MessageWriter<'_, Click>, state: Res<'_, State<ClientState>>) {
    let new = get(&global(), "clicks").as_f64().unwrap_or_default();
    if new > 0.0 && *state == ClientState::Connected {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a page does not click that often"
        )]
        clicks.write(Click(new as u32));
        set("clicks", &0.into());
    }
}

fn show(state: Res<'_, State<ClientState>>, cookies: Query<'_, '_, &Cookie>) {
    let clicks: Vec<_> = cookies.iter().map(|cookie| cookie.clicks).collect();
    set("seen", &JsValue::from(format!("{:?} {clicks:?}", state.get())));
}

fn get(of: &JsValue, name: &str) -> JsValue {
    Reflect::get(of, &name.into()).unwrap_or_default()
}

fn set(name: &str, value: &JsValue) {
    let _ = Reflect::set(&global(), &name.into(), value); // of a page, it takes any
}

/// The bytes of 64 hexadecimal digits.
fn bytes(hex: &str) -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * index..2 * index + 2).unwrap_or_default(), 16)?;
    }
    Ok(bytes)
}
