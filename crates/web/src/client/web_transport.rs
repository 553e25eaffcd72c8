//! Datagrams by WebTransport.

use super::js::{self, Read, Reader, WebTransport, Writer};
use super::link::Sent;
use super::shared::{LinkId, Shared};
use js_sys::Uint8Array;
use std::cell::{Cell, OnceCell};
use std::rc::{Rc, Weak};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};

/// A WebTransport session, perhaps not ready yet.
pub(super) struct Line {
    transport: WebTransport,
    writer: OnceCell<Writer>,
    /// Datagrams that the browser has not passed on yet.
    waiting: Rc<Cell<u32>>,
}

impl Line {
    /// Starts to open it. What happens is told to `shared`.
    pub(super) fn open(
        url: &str,
        hashes: &[[u8; 32]],
        id: LinkId,
        shared: &Weak<Shared>,
    ) -> Result<Rc<Self>, JsValue> {
        let transport = WebTransport::new(url, &js::web_transport_options(hashes)?)?;
        let line = Rc::new(Self { transport, writer: OnceCell::new(), waiting: Rc::default() });
        spawn_local(watch(line.transport.clone(), id, shared.clone()));
        spawn_local(run(Rc::clone(&line), id, shared.clone()));
        Ok(line)
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.get() >= WAITING_MAX
    }

    pub(super) fn send(&self, datagram: &[u8]) -> Sent {
        let Some(writer) = self.writer.get() else { return Sent::Full };
        if datagram.len() > longest(&self.transport) {
            return Sent::TooLong;
        }
        self.waiting.set(self.waiting.get() + 1);
        let (written, waiting) = (writer.write(&Uint8Array::from(datagram)), Rc::clone(&self.waiting));
        spawn_local(async move {
            let _ = JsFuture::from(written).await; // if it failed, so does what reads
            waiting.set(waiting.get().saturating_sub(1));
        });
        Sent::Away
    }

    /// Ends it, after what was sent has left.
    pub(super) fn close(self: Rc<Self>) {
        spawn_local(async move {
            if let Some(writer) = self.writer.get() {
                let _ = JsFuture::from(writer.finish()).await;
            }
            let _ = self.transport.close(); // it may be closed already
        });
    }
}

/// Opens it and reads until its end.
async fn run(line: Rc<Line>, id: LinkId, shared: Weak<Shared>) {
    let reader = match start(&line).await {
        Ok(reader) => reader,
        Err(error) => return lost(&shared, id, &error),
    };
    let Some(it) = shared.upgrade() else { return line.close() };
    it.is_ready(id, Some(longest(&line.transport)));
    drop((it, line)); // who sends has it
    loop {
        let read = match JsFuture::from(reader.read()).await {
            Ok(read) => read.unchecked_into::<Read>(),
            Err(error) => return lost(&shared, id, &error),
        };
        let Some(shared) = shared.upgrade() else { return };
        if read.done() {
            return shared.is_lost(id, "WebTransport has ended");
        }
        shared.has_arrived(id, &mut Uint8Array::new(&read.value()).to_vec());
    }
}

async fn start(line: &Line) -> Result<Reader, JsValue> {
    JsFuture::from(line.transport.ready()).await?;
    let datagrams = line.transport.datagrams();
    // The attribute is the older way, and the one that Chromium has.
    let writable = datagrams.create_writable().unwrap_or_else(|_| datagrams.writable());
    let _ = line.writer.set(writable.get_writer()?);
    datagrams.readable().get_reader()
}

/// Waits for its end, of which the datagrams need not tell.
async fn watch(transport: WebTransport, id: LinkId, shared: Weak<Shared>) {
    match JsFuture::from(transport.closed()).await {
        Ok(_) => lost(&shared, id, &"the server has closed WebTransport".into()),
        Err(error) => lost(&shared, id, &error),
    }
}

fn lost(shared: &Weak<Shared>, id: LinkId, error: &JsValue) {
    if let Some(shared) = shared.upgrade() {
        shared.is_lost(id, &error.as_string().unwrap_or_else(|| js::text(error)));
    }
}

/// The longest datagram that it carries now, bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand bytes")]
fn longest(transport: &WebTransport) -> usize {
    transport.datagrams().max_datagram_size() as usize
}

/// Full datagrams of 64 KiB.
const WAITING_MAX: u32 = 57;
