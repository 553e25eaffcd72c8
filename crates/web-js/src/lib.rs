//! The classes of the npm package, as `npm/index.js` uses them. What programs call is there.

#![cfg(target_arch = "wasm32")]

mod event;
mod options;

use event::object;
use js_sys::{Promise, Uint8Array};
use options::{Options, channel_of};
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use whitewater::channel::{ChannelKind, SendError};
use whitewater::{Channel, CloseReason, Event};
use whitewater_web::{Client, Transport, TransportStats};

/// A session.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session {
    inner: Rc<RefCell<Inner>>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    channels: Vec<Channel>,
    /// Whether there may be more to read.
    is_readable: bool,
    /// Why it has ended, until all is read.
    closed: Option<CloseReason>,
    reconnects: u64,
}

#[wasm_bindgen]
impl Session {
    /// Starts to connect.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &Options) -> Result<Self, JsError> {
        let config = options.config()?;
        let channels = config.session.channels.iter().map(|channel| channel.channel);
        let channels = channels.map(|channel| channel_of(channel.number(), channel.kind())).collect();
        let client = Client::connect(&options.target()?, &config)?;
        let inner = Inner { client, channels, is_readable: false, closed: None, reconnects: 0 };
        Ok(Self { inner: Rc::new(RefCell::new(inner)) })
    }

    /// Takes what has happened next: an object with a `type`, or undefined if nothing has.
    pub fn take(&self) -> JsValue {
        self.inner.borrow_mut().take().unwrap_or(JsValue::UNDEFINED)
    }

    /// Waits until there is something to take.
    pub fn changed(&self) -> Promise {
        let changed = self.inner.borrow_mut().client.changed();
        wasm_bindgen_futures::future_to_promise(async move {
            changed.await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Does what is due, and sends. Returns for how many ms nothing else is.
    pub fn pump(&self) -> Option<f64> {
        self.inner.borrow_mut().client.pump().map(|wait| wait.as_secs_f64() * 1000.0)
    }

    /// Queues a message; false if the channel is full.
    pub fn send(&self, channel: u8, bytes: &[u8]) -> Result<bool, JsError> {
        let mut inner = self.inner.borrow_mut();
        let known = inner.channels.get(usize::from(channel)).copied();
        let sent = inner.client.send(known.unwrap_or(Channel::ordered(channel)), bytes);
        is_taken(sent)
    }

    /// Queues an unreliable datagram; false if too many wait.
    #[wasm_bindgen(js_name = sendDatagram)]
    pub fn send_datagram(&self, bytes: &[u8]) -> Result<bool, JsError> {
        is_taken(self.inner.borrow_mut().client.send_datagram(bytes))
    }

    /// Closes it once everything has arrived.
    pub fn close(&self, code: u16, text: &str) -> Result<(), JsError> {
        Ok(self.inner.borrow_mut().client.close_with(code, text)?)
    }

    /// Ends it at once.
    pub fn kick(&self, code: u16, text: &str) -> Result<(), JsError> {
        Ok(self.inner.borrow_mut().client.kick(code, text)?)
    }

    /// Whether everything sent on a reliable channel has arrived.
    #[wasm_bindgen(js_name = isDelivered)]
    pub fn is_delivered(&self, channel: u8) -> bool {
        let mut inner = self.inner.borrow_mut();
        let known = inner.channels.get(usize::from(channel)).copied();
        known.is_none_or(|channel| inner.client.is_delivered(channel))
    }

    /// What the server said in the handshake.
    pub fn user(&self) -> Vec<u8> {
        self.inner.borrow().client.user()
    }

    /// For the next session with this server.
    pub fn ticket(&self) -> Vec<u8> {
        self.inner.borrow().client.ticket()
    }

    /// Numbers of the session and of its transports.
    pub fn stats(&self) -> JsValue {
        let inner = self.inner.borrow();
        let stats = inner.client.connection().map(|connection| connection.stats()).unwrap_or_default();
        let TransportStats { transport, sent, received, too_long, queue_full, reconnects, .. } =
            inner.client.transport_stats();
        let number = |number: u64| JsValue::from_f64(number as f64);
        object(&[
            ("state", format!("{:?}", inner.client.state()).to_lowercase().into()),
            ("transport", transport.map_or(JsValue::UNDEFINED, name)),
            ("rtt", (stats.rtt.as_secs_f64() * 1000.0).into()),
            ("loss", stats.loss.map_or(JsValue::UNDEFINED, JsValue::from_f64)),
            ("bytesSent", number(stats.bytes_sent)),
            ("bytesReceived", number(stats.bytes_received)),
            ("datagramsSent", number(sent)),
            ("datagramsReceived", number(received)),
            ("tooLong", number(too_long)),
            ("queueFull", number(queue_full)),
            ("reconnects", number(reconnects)),
            ("transportError", inner.client.transport_error().into()),
        ])
    }
}

impl Inner {
    fn take(&mut self) -> Option<JsValue> {
        loop {
            if self.is_readable {
                if let Some(read) = self.read() {
                    return Some(read);
                }
                self.is_readable = false;
            }
            if let Some(reason) = self.closed.take() {
                return Some(event::closed(reason, &self.client));
            }
            match self.client.poll_event() {
                None => return self.moved(),
                Some(Event::Connected) => return Some(object(&[("type", "connected".into())])),
                Some(Event::Writable) => return Some(object(&[("type", "writable".into())])),
                Some(Event::Redirected) => {
                    let token = self.client.take_redirect().unwrap_or_default();
                    let token = Uint8Array::from(token.as_slice()).into();
                    return Some(object(&[("type", "redirected".into()), ("token", token)]));
                }
                Some(Event::Closed { reason, .. }) => {
                    self.closed = Some(reason);
                    self.is_readable = true; // what has arrived before
                }
                Some(_) => self.is_readable = true,
            }
        }
    }

    /// The next message, of the most urgent channel that has one; then the datagrams.
    fn read(&mut self) -> Option<JsValue> {
        for channel in &self.channels {
            if let Some(data) = self.client.recv(*channel) {
                let data = Uint8Array::from(&*data).into();
                let (kind, number) = ("message".into(), channel.number().into());
                return Some(object(&[("type", kind), ("channel", number), ("data", data)]));
            }
        }
        let data = Uint8Array::from(&*self.client.recv_datagram()?).into();
        Some(object(&[("type", "datagram".into()), ("data", data)]))
    }

    /// Whether another transport carries the session now.
    fn moved(&mut self) -> Option<JsValue> {
        let TransportStats { transport, reconnects, .. } = self.client.transport_stats();
        let has_moved = reconnects != std::mem::replace(&mut self.reconnects, reconnects);
        let transport = transport.map_or(JsValue::UNDEFINED, name);
        has_moved.then(|| object(&[("type", "moved".into()), ("transport", transport)]))
    }
}

fn is_taken<T>(sent: Result<T, SendError>) -> Result<bool, JsError> {
    let error = match sent {
        Ok(_) => return Ok(true),
        Err(SendError::Full { .. }) => return Ok(false),
        Err(error) => error,
    };
    // Not as the library says it: that could also print fields of types, among them floats, and takes 7 kB more.
    Err(JsError::new(&match error {
        SendError::TooLong { len, max, cure, .. } => format!("{len} bytes, where {max} are taken: {cure}"),
        SendError::Channel(error) => error.to_string(),
        SendError::NotConnected => "the session is not connected yet".to_owned(),
        _ => "the session is closed".to_owned(),
    }))
}

fn name(transport: Transport) -> JsValue {
    match transport {
        Transport::WebTransport => "webtransport".into(),
        Transport::WebSocket => "websocket".into(),
    }
}

/// The names of kinds of channels.
const KINDS: [(&str, ChannelKind); 5] = [
    ("ordered", ChannelKind::Ordered),
    ("unordered", ChannelKind::Unordered),
    ("sequenced", ChannelKind::Sequenced),
    ("unreliable", ChannelKind::Unreliable),
    ("stream", ChannelKind::Stream),
];
