//! What a browser has, bound by hand: WebTransport is unstable in `web-sys`, and the rest is little. All of it is in windows and in
//! workers, and what Node lacks can be set as a global.

use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub(super) fn performance_now() -> f64;
    #[wasm_bindgen(catch, js_namespace = crypto, js_name = getRandomValues)]
    pub(super) fn random_values(bytes: &mut [u8]) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(js_name = setTimeout)]
    pub(super) fn set_timeout(then: &JsValue, ms: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    pub(super) fn clear_timeout(timeout: &JsValue);

    /// Source: <https://www.w3.org/TR/webtransport/>.
    #[derive(Clone)]
    pub(super) type WebTransport;
    #[wasm_bindgen(constructor, catch)]
    pub(super) fn new(url: &str, options: &Object) -> Result<WebTransport, JsValue>;
    #[wasm_bindgen(method, getter)]
    pub(super) fn ready(this: &WebTransport) -> Promise;
    #[wasm_bindgen(method, getter)]
    pub(super) fn closed(this: &WebTransport) -> Promise;
    #[wasm_bindgen(method, getter)]
    pub(super) fn datagrams(this: &WebTransport) -> Datagrams;
    #[wasm_bindgen(method, catch)]
    pub(super) fn close(this: &WebTransport) -> Result<(), JsValue>;

    pub(super) type Datagrams;
    #[wasm_bindgen(method, getter)]
    pub(super) fn readable(this: &Datagrams) -> Readable;
    #[wasm_bindgen(method, getter)]
    pub(super) fn writable(this: &Datagrams) -> Writable;
    #[wasm_bindgen(method, catch, js_name = createWritable)]
    pub(super) fn create_writable(this: &Datagrams) -> Result<Writable, JsValue>;
    #[wasm_bindgen(method, getter, js_name = maxDatagramSize)]
    pub(super) fn max_datagram_size(this: &Datagrams) -> f64;

    pub(super) type Readable;
    #[wasm_bindgen(method, catch, js_name = getReader)]
    pub(super) fn get_reader(this: &Readable) -> Result<Reader, JsValue>;
    pub(super) type Reader;
    #[wasm_bindgen(method)]
    pub(super) fn read(this: &Reader) -> Promise;
    pub(super) type Read;
    #[wasm_bindgen(method, getter)]
    pub(super) fn done(this: &Read) -> bool;
    #[wasm_bindgen(method, getter)]
    pub(super) fn value(this: &Read) -> JsValue;

    pub(super) type Writable;
    #[wasm_bindgen(method, catch, js_name = getWriter)]
    pub(super) fn get_writer(this: &Writable) -> Result<Writer, JsValue>;
    #[derive(Clone, Debug)]
    pub(super) type Writer;
    #[wasm_bindgen(method)]
    pub(super) fn write(this: &Writer, bytes: &Uint8Array) -> Promise;
    #[wasm_bindgen(method, js_name = close)]
    pub(super) fn finish(this: &Writer) -> Promise;

    /// Source: <https://websockets.spec.whatwg.org/>.
    #[derive(Debug)]
    pub(super) type WebSocket;
    #[wasm_bindgen(constructor, catch)]
    pub(super) fn new(url: &str) -> Result<WebSocket, JsValue>;
    #[wasm_bindgen(method, setter, js_name = binaryType)]
    pub(super) fn set_binary_type(this: &WebSocket, kind: &str);
    #[wasm_bindgen(method, getter, js_name = bufferedAmount)]
    pub(super) fn buffered_amount(this: &WebSocket) -> f64;
    #[wasm_bindgen(method, catch)]
    pub(super) fn send(this: &WebSocket, bytes: &Uint8Array) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    pub(super) fn close(this: &WebSocket) -> Result<(), JsValue>;
    #[wasm_bindgen(method, setter)]
    pub(super) fn set_onopen(this: &WebSocket, then: &JsValue);
    #[wasm_bindgen(method, setter)]
    pub(super) fn set_onmessage(this: &WebSocket, then: &JsValue);
    #[wasm_bindgen(method, setter)]
    pub(super) fn set_onclose(this: &WebSocket, then: &JsValue);
    #[wasm_bindgen(method, setter)]
    pub(super) fn set_onerror(this: &WebSocket, then: &JsValue);

    pub(super) type Message;
    #[wasm_bindgen(method, getter)]
    pub(super) fn data(this: &Message) -> JsValue;
    pub(super) type Close;
    #[wasm_bindgen(method, getter)]
    pub(super) fn code(this: &Close) -> u16;
    #[wasm_bindgen(method, getter)]
    pub(super) fn reason(this: &Close) -> JsValue;
}

/// Whether there is a constructor with this name.
pub(super) fn has(name: &str) -> bool {
    Reflect::get(&js_sys::global(), &name.into()).is_ok_and(|found| found.is_instance_of::<Function>())
}

/// A function that does nothing. An error of a WebSocket says nothing and its close follows, but where an error without a listener is thrown,
/// as in Node, this is one.
pub(super) fn ignore() -> JsValue {
    Reflect::get(&js_sys::global(), &"Boolean".into()).unwrap_or(JsValue::NULL)
}

/// Unreliable datagrams, with what a game wants of congestion control.
pub(super) fn web_transport_options(hashes: &[[u8; 32]]) -> Result<Object, JsValue> {
    let options = Object::new();
    Reflect::set(&options, &"requireUnreliable".into(), &true.into())?;
    Reflect::set(&options, &"congestionControl".into(), &"low-latency".into())?;
    if !hashes.is_empty() {
        let list = Array::new();
        for hash in hashes {
            let entry = Object::new();
            Reflect::set(&entry, &"algorithm".into(), &"sha-256".into())?;
            Reflect::set(&entry, &"value".into(), &Uint8Array::from(hash.as_slice()))?;
            list.push(&entry);
        }
        Reflect::set(&options, &"serverCertificateHashes".into(), &list)?;
    }
    Ok(options)
}

/// What an exception says.
pub(super) fn text(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| "it says nothing about its error".to_owned())
}
