//! What JavaScript asks for. `npm/index.js` has given every option its default.

use crate::KINDS;
use js_sys::{Array, Uint8Array};
use std::time::Duration;
use wasm_bindgen::prelude::*;
use whitewater::channel::{Carrier, ChannelKind};
use whitewater::session::token::PublicToken;
use whitewater::{Channel, ChannelConfig, ClientConfig, SessionConfig};
use whitewater_web::{Target, Transports};

#[wasm_bindgen]
extern "C" {
    #[derive(Debug)]
    pub type Options;
    #[wasm_bindgen(method, getter)]
    fn url(this: &Options) -> String;
    #[wasm_bindgen(method, getter)]
    fn websocket(this: &Options) -> Option<String>;
    #[wasm_bindgen(method, getter, js_name = certificateHashes)]
    fn certificate_hashes(this: &Options) -> Array;
    #[wasm_bindgen(method, getter)]
    fn patience(this: &Options) -> f64;
    #[wasm_bindgen(method, getter)]
    fn transport(this: &Options) -> String;
    #[wasm_bindgen(method, getter, js_name = protocolId)]
    fn protocol_id(this: &Options) -> u64;
    #[wasm_bindgen(method, getter)]
    fn token(this: &Options) -> Option<Vec<u8>>;
    #[wasm_bindgen(method, getter)]
    fn secret(this: &Options) -> Option<Vec<u8>>;
    #[wasm_bindgen(method, getter)]
    fn insecure(this: &Options) -> bool;
    #[wasm_bindgen(method, getter)]
    fn user(this: &Options) -> Vec<u8>;
    #[wasm_bindgen(method, getter)]
    fn ticket(this: &Options) -> Vec<u8>;
    #[wasm_bindgen(method, getter)]
    fn deadline(this: &Options) -> f64;
    #[wasm_bindgen(method, getter)]
    fn channels(this: &Options) -> Array;

    type ChannelOptions;
    #[wasm_bindgen(method, getter)]
    fn kind(this: &ChannelOptions) -> String;
    #[wasm_bindgen(method, getter)]
    fn carrier(this: &ChannelOptions) -> Option<String>;
    #[wasm_bindgen(method, getter, js_name = maxMessage)]
    fn max_message(this: &ChannelOptions) -> Option<u32>;
    #[wasm_bindgen(method, getter, js_name = receiveBuffer)]
    fn receive_buffer(this: &ChannelOptions) -> Option<u16>;
    #[wasm_bindgen(method, getter, js_name = messagesPerPacket)]
    fn messages_per_packet(this: &ChannelOptions) -> Option<u16>;
}

impl Options {
    pub(crate) fn target(&self) -> Result<Target, JsError> {
        let mut hashes = Vec::new();
        for hash in self.certificate_hashes() {
            let hash = Uint8Array::new(&hash).to_vec();
            hashes
                .push(hash.try_into().map_err(|_| JsError::new("a certificate hash has 32 bytes: SHA-256"))?);
        }
        let transports = match &*self.transport() {
            "any" => Transports::Any,
            "webtransport" => Transports::WebTransport,
            "websocket" => Transports::WebSocket,
            _ => return Err(JsError::new("transport is \"any\", \"webtransport\" or \"websocket\"")),
        };
        Ok(Target {
            certificate_hashes: hashes,
            websocket: self.websocket(),
            patience: millis("patience", self.patience())?,
            transports,
            ..Target::new(self.url())
        })
    }

    pub(crate) fn config(&self) -> Result<ClientConfig, JsError> {
        let session = SessionConfig::new(self.protocol_id(), self.channel_configs()?);
        let config = match (self.token(), self.secret(), self.insecure()) {
            (Some(token), None, false) => ClientConfig::token(session, &PublicToken::decode(&token)?),
            (None, Some(secret), false) => {
                let secret = <[u8; 32]>::try_from(secret).map_err(|_| JsError::new("secret has 32 bytes"))?;
                ClientConfig::secret(session, secret)
            }
            (None, None, true) => ClientConfig::insecure(session),
            _ => {
                return Err(JsError::new(
                    "give one of token, secret and insecure, whichever the server uses",
                ));
            }
        };
        let deadline = millis("deadline", self.deadline())?;
        Ok(ClientConfig { user: self.user(), ticket: self.ticket(), deadline, ..config })
    }

    fn channel_configs(&self) -> Result<Vec<ChannelConfig>, JsError> {
        let mut configs = Vec::new();
        for (number, channel) in (0..=u8::MAX).zip(self.channels()) {
            let channel = channel.unchecked_into::<ChannelOptions>();
            let kind = channel.kind();
            let known = KINDS.iter().find(|(name, _)| **name == kind).map(|(_, kind)| *kind);
            let known =
                known.ok_or_else(|| JsError::new(&format!("there are no channels of the kind {kind}")))?;
            let mut config = channel_of(number, known).config();
            match channel.carrier().as_deref() {
                None => {}
                Some("kcp") => config.carrier = Carrier::Kcp,
                Some("packets") => config.carrier = Carrier::Packets,
                Some(_) => return Err(JsError::new("carrier is \"kcp\" or \"packets\"")),
            }
            config.max_message = channel.max_message().unwrap_or(config.max_message);
            config.receive_buffer = channel.receive_buffer().unwrap_or(config.receive_buffer);
            config.messages_per_packet = channel.messages_per_packet().unwrap_or(config.messages_per_packet);
            configs.push(config);
        }
        Ok(configs)
    }
}

/// The channel of bytes with this number.
pub(crate) const fn channel_of(number: u8, kind: ChannelKind) -> Channel {
    match kind {
        ChannelKind::Ordered => Channel::ordered(number),
        ChannelKind::Unordered => Channel::unordered(number),
        ChannelKind::Sequenced => Channel::sequenced(number),
        ChannelKind::Unreliable => Channel::unreliable(number),
        ChannelKind::Stream => Channel::stream(number),
    }
}

fn millis(name: &str, ms: f64) -> Result<Duration, JsError> {
    Duration::try_from_secs_f64(ms / 1000.0).map_err(|_| JsError::new(&format!("{name} is not a time in ms")))
}
