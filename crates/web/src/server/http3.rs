//! As much of HTTP/3 as a session of WebTransport needs: settings, one request and its answer, datagrams.
//!
//! What a peer opens beyond that stays unread, within the small windows of streams. No task and no handle of a connection is left behind, so
//! whoever closes it or drops it ends it. Sources: RFC 9114, RFC 9297, draft-ietf-webtrans-http3-02, which browsers speak.

use std::borrow::Cow;
use wtransport::proto::datagram::Datagram;
use wtransport::proto::error::ErrorCode;
use wtransport::proto::frame::Frame;
use wtransport::proto::headers::Headers;
use wtransport::proto::ids::{QStreamId, SessionId, StreamId};
use wtransport::proto::session::{SessionRequest, SessionResponse};
use wtransport::proto::settings::Settings;
use wtransport::proto::stream_header::StreamHeader;
use wtransport::proto::varint::VarInt;
use wtransport::quinn::{self, Connection, RecvStream, SendDatagramError, SendStream};

/// A client that asks for a session.
pub(super) struct Asking<'a> {
    connection: &'a Connection,
    request: SessionRequest,
    streams: Streams,
}

/// What has to stay open: our control stream, and the request.
#[derive(Debug)]
pub(super) struct Streams {
    _control: SendStream,
    answer: SendStream,
    request: RecvStream,
}

/// Carries the datagrams of a session.
#[derive(Clone, Debug)]
pub(super) struct Datagrams {
    connection: Connection,
    session: QStreamId,
}

/// Says what this end can do, and waits for a request. `None`: there will be none.
pub(super) async fn asking(connection: &Connection) -> Option<Asking<'_>> {
    let mut control = connection.open_uni().await.ok()?;
    control.write_all(&greeting()).await.ok()?;
    let (answer, mut request) = connection.accept_bi().await.ok()?;
    for _ in 0..FRAMES {
        let kind = number(&mut request).await?;
        let payload = payload(connection, &mut request).await?;
        if kind != HEADERS {
            continue; // others have no meaning before the first one
        }
        let asked = Headers::with_frame(&Frame::new_headers(Cow::Owned(payload))).ok();
        let Some(asked) = asked.and_then(|headers| SessionRequest::try_from(headers).ok()) else {
            close(connection, ErrorCode::Message);
            return None;
        };
        let streams = Streams { _control: control, answer, request };
        return Some(Asking { connection, request: asked, streams });
    }
    close(connection, ErrorCode::ExcessiveLoad);
    None
}

impl Asking<'_> {
    pub(super) fn path(&self) -> &str {
        self.request.path()
    }

    pub(super) fn origin(&self) -> Option<&str> {
        self.request.origin()
    }

    pub(super) async fn accept(mut self) -> Option<(Datagrams, Streams)> {
        let id = VarInt::try_from(u64::from(self.streams.answer.id())).ok()?;
        let session = SessionId::try_from_session_stream(StreamId::new(id)).ok()?;
        self.answer(&SessionResponse::ok()).await?;
        let datagrams =
            Datagrams { connection: self.connection.clone(), session: QStreamId::from_session_id(session) };
        Some((datagrams, self.streams))
    }

    /// Says no, and waits until the client has heard it.
    pub(super) async fn refuse(mut self, response: &SessionResponse) {
        if self.answer(response).await.is_some() && self.streams.answer.finish().is_ok() {
            let _ = self.streams.answer.stopped().await; // either way it is over
        }
    }

    async fn answer(&mut self, response: &SessionResponse) -> Option<()> {
        let mut bytes = Vec::new();
        response.headers().generate_frame().write(&mut bytes).ok()?;
        self.streams.answer.write_all(&bytes).await.ok()
    }
}

impl Streams {
    /// Waits until the client has ended the session. What it says meanwhile means nothing here.
    pub(super) async fn ended(&mut self) {
        while let Ok(Some(_)) = self.request.read_chunk(usize::MAX, true).await {}
    }
}

impl Datagrams {
    pub(super) fn send(&self, payload: &[u8]) -> Result<(), SendDatagramError> {
        let datagram = Datagram::new(self.session, payload);
        let mut bytes = vec![0; datagram.write_size()];
        datagram.write(&mut bytes).map_err(|_| SendDatagramError::TooLarge)?;
        self.connection.send_datagram(bytes.into())
    }

    /// The next datagram of the session. `None`: the connection is over.
    pub(super) async fn receive(&self) -> Option<Vec<u8>> {
        loop {
            let bytes = self.connection.read_datagram().await.ok()?;
            match Datagram::read(&bytes) {
                Ok(datagram) if datagram.qstream_id() == self.session => {
                    return Some(datagram.payload().to_vec());
                }
                Ok(_) => {} // of no session that is up
                Err(error) => {
                    close(&self.connection, error);
                    return None;
                }
            }
        }
    }
}

/// The control stream: its type, and settings.
fn greeting() -> Vec<u8> {
    let settings = Settings::builder()
        .qpack_max_table_capacity(VarInt::from_u32(0))
        .qpack_blocked_streams(VarInt::from_u32(0))
        .enable_connect_protocol()
        .enable_webtransport()
        .enable_h3_datagrams()
        .webtransport_max_sessions(VarInt::from_u32(1))
        .build();
    let mut bytes = Vec::new();
    let _ = StreamHeader::new_control().write(&mut bytes); // a vector has room
    let _ = settings.generate_frame().write(&mut bytes);
    bytes
}

/// A number of QUIC (RFC 9000, 16), in as many bytes as the first says.
async fn number(stream: &mut RecvStream) -> Option<u64> {
    let mut bytes = [0; 8];
    let (first, rest) = bytes.split_first_mut()?;
    stream.read_exact(std::slice::from_mut(first)).await.ok()?;
    let len = 1_usize << (*first >> 6);
    *first &= 0x3f;
    stream.read_exact(rest.get_mut(..len - 1)?).await.ok()?;
    Some(u64::from_be_bytes(bytes) >> (8 * (8 - len)))
}

/// The rest of a frame, which has a limit.
async fn payload(connection: &Connection, stream: &mut RecvStream) -> Option<Vec<u8>> {
    let len = number(stream).await?;
    let Some(len) = usize::try_from(len).ok().filter(|len| *len <= FRAME_MAX) else {
        close(connection, ErrorCode::ExcessiveLoad);
        return None;
    };
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).await.ok()?;
    Some(payload)
}

fn close(connection: &Connection, error: ErrorCode) {
    let code = quinn::VarInt::from_u64(error.to_code().into_inner()).unwrap_or_default();
    connection.close(code, b"");
}

/// The type of a frame with headers (RFC 9114, 7.2.2).
const HEADERS: u64 = 1;
/// Longest frame: headers of a browser take some hundred bytes.
const FRAME_MAX: usize = 4096;
/// Most frames until the headers have come. Browsers send up to one, to keep servers used to unknown ones.
const FRAMES: usize = 8;
