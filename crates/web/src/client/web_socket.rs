//! Datagrams as the messages of a WebSocket.

use super::js::{self, Close, Message, WebSocket};
use super::link::Sent;
use super::shared::{LinkId, Shared};
use js_sys::{ArrayBuffer, Uint8Array};
use std::rc::{Rc, Weak};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};

/// A WebSocket, perhaps not open yet.
pub(super) struct Line {
    socket: WebSocket,
    /// It calls them for as long as this lives.
    _opened: Closure<dyn Fn()>,
    _arrived: Closure<dyn Fn(Message)>,
    _closed: Closure<dyn Fn(Close)>,
}

impl Line {
    /// Starts to open it. What happens is told to `shared`.
    pub(super) fn open(url: &str, id: LinkId, shared: &Weak<Shared>) -> Result<Rc<Self>, JsValue> {
        let socket = WebSocket::new(url)?;
        socket.set_binary_type("arraybuffer");
        let told = shared.clone();
        let opened = Closure::<dyn Fn()>::new(move || {
            if let Some(shared) = told.upgrade() {
                shared.is_ready(id, None);
            }
        });
        let told = shared.clone();
        let arrived = Closure::<dyn Fn(Message)>::new(move |message: Message| {
            // A text is no datagram.
            if let (Some(shared), Ok(data)) = (told.upgrade(), message.data().dyn_into::<ArrayBuffer>()) {
                shared.has_arrived(id, &mut Uint8Array::new(&data).to_vec());
            }
        });
        let told = shared.clone();
        let closed = Closure::<dyn Fn(Close)>::new(move |close: Close| {
            if let Some(shared) = told.upgrade() {
                let reason = close.reason().as_string().unwrap_or_default();
                shared
                    .is_lost(id, &format!("the WebSocket was closed, with code {}: {reason}", close.code()));
            }
        });
        socket.set_onopen(opened.as_ref());
        socket.set_onmessage(arrived.as_ref());
        socket.set_onclose(closed.as_ref());
        socket.set_onerror(&js::ignore());
        Ok(Rc::new(Self { socket, _opened: opened, _arrived: arrived, _closed: closed }))
    }

    pub(super) fn is_full(&self) -> bool {
        self.socket.buffered_amount() > BUFFERED_MAX
    }

    pub(super) fn send(&self, datagram: &[u8]) -> Sent {
        match self.socket.send(&Uint8Array::from(datagram)) {
            Ok(()) => Sent::Away,
            Err(_) => Sent::Full,
        }
    }

    /// Ends it, after what was sent has left.
    pub(super) fn close(&self) {
        let _ = self.socket.close(); // it may be closed already
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.socket.set_onopen(&JsValue::NULL);
        self.socket.set_onmessage(&JsValue::NULL);
        self.socket.set_onclose(&JsValue::NULL);
    }
}

/// Bytes.
const BUFFERED_MAX: f64 = 65_536.0;
