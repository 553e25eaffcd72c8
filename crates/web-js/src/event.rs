//! What JavaScript is told.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;
use whitewater::CloseReason;
use whitewater_web::Client;

/// An object with these fields.
pub(crate) fn object(fields: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in fields {
        let _ = Reflect::set(&object, &(*name).into(), value); // a fresh object takes all
    }
    object.into()
}

/// Why a session has ended, or was never up.
pub(crate) fn closed(reason: CloseReason, client: &Client) -> JsValue {
    let (name, code) = named(reason);
    object(&[
        ("type", "closed".into()),
        ("reason", name.into()),
        ("code", code.map_or(JsValue::UNDEFINED, JsValue::from)),
        ("text", client.close_text().into()),
        ("data", js_sys::Uint8Array::from(client.rejection().as_slice()).into()),
        ("message", message(reason, client).into()),
    ])
}

/// A sentence, with the transport's error where no transport was to be had.
fn message(reason: CloseReason, client: &Client) -> String {
    match (reason, client.transport_error()) {
        (CloseReason::ConnectTimeout | CloseReason::Timeout, error) if !error.is_empty() => {
            format!("{reason} (transport: {error})")
        }
        _ => reason.to_string(),
    }
}

const fn named(reason: CloseReason) -> (&'static str, Option<u16>) {
    match reason {
        CloseReason::Local(code) => ("local", Some(code)),
        CloseReason::Peer(code) => ("peer", Some(code)),
        CloseReason::ConnectTimeout => ("connect-timeout", None),
        CloseReason::Denied(_) => ("denied", None),
        CloseReason::Rejected(code) => ("rejected", Some(code)),
        CloseReason::Timeout => ("timeout", None),
        CloseReason::ServerForgot => ("server-forgot", None),
        CloseReason::DeadLink => ("dead-link", None),
        CloseReason::SlowPeer => ("slow-peer", None),
        CloseReason::Replaced => ("replaced", None),
        CloseReason::NoMemory => ("no-memory", None),
        _ => ("protocol", None),
    }
}
