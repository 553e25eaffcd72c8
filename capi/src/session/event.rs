//! What has happened.

use ww::{CloseReason, Event, SessionId};

/// Something that has happened to a session.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ww_event {
    /// One of `WW_EVENT_..`.
    pub kind: i32,
    /// At a server: the session.
    pub session: u32,
    /// With `WW_EVENT_CLOSED`: one of `WW_CLOSED_..`; `ww_client_close_reason` and `ww_server_close_reason` have it in words.
    pub reason: i32,
    /// With `WW_EVENT_CLOSED`: the code that the session was closed or rejected with.
    pub code: u16,
    /// With `WW_EVENT_CLOSED`: whether something was sent that is not known to have arrived.
    pub is_undelivered: bool,
}

/// A client asks to join: `ww_server_admit` or `ww_server_reject` it within 10 s.
pub const WW_EVENT_REQUESTED: i32 = 1;
/// The session is up.
pub const WW_EVENT_CONNECTED: i32 = 2;
/// There is something to read: read until nothing is left.
pub const WW_EVENT_READABLE: i32 = 3;
/// A channel that was full has room again.
pub const WW_EVENT_WRITABLE: i32 = 4;
/// The server sends the client to another one: `ww_client_take_redirect`.
pub const WW_EVENT_REDIRECTED: i32 = 5;
/// The peer has another address.
pub const WW_EVENT_MOVED: i32 = 6;
/// The session is over.
pub const WW_EVENT_CLOSED: i32 = 7;
/// An event that this version of the header does not know.
pub const WW_EVENT_OTHER: i32 = 100;

/// This end closed it, with `code`.
pub const WW_CLOSED_LOCAL: i32 = 1;
/// The peer closed it, with `code`.
pub const WW_CLOSED_PEER: i32 = 2;
/// The server's application rejected the client, with `code`; see `ww_client_rejection`.
pub const WW_CLOSED_REJECTED: i32 = 3;
/// The server refused the client: it is busy, or the version, the secret or the channels differ. `ww_client_close_reason` says which.
pub const WW_CLOSED_DENIED: i32 = 4;
/// The peer fell silent, or never answered.
pub const WW_CLOSED_TIMEOUT: i32 = 5;
/// Any other reason: `ww_client_close_reason` and `ww_server_close_reason` say which.
pub const WW_CLOSED_OTHER: i32 = 100;

impl ww_event {
    pub(super) fn of(id: Option<SessionId>, event: Event) -> Self {
        let session = id.map_or(0, SessionId::to_bits);
        let plain = |kind| Self { kind, session, ..Self::default() };
        match event {
            Event::Requested => plain(WW_EVENT_REQUESTED),
            Event::Connected => plain(WW_EVENT_CONNECTED),
            Event::Readable => plain(WW_EVENT_READABLE),
            Event::Writable => plain(WW_EVENT_WRITABLE),
            Event::Redirected => plain(WW_EVENT_REDIRECTED),
            Event::Moved { .. } => plain(WW_EVENT_MOVED),
            Event::Closed { reason, undelivered } => {
                let (reason, code) = closed(reason);
                let is_undelivered = !undelivered.is_empty();
                Self { kind: WW_EVENT_CLOSED, session, reason, code, is_undelivered }
            }
            _ => plain(WW_EVENT_OTHER),
        }
    }
}

const fn closed(reason: CloseReason) -> (i32, u16) {
    match reason {
        CloseReason::Local(code) => (WW_CLOSED_LOCAL, code),
        CloseReason::Peer(code) => (WW_CLOSED_PEER, code),
        CloseReason::Rejected(code) => (WW_CLOSED_REJECTED, code),
        CloseReason::Denied(_) => (WW_CLOSED_DENIED, 0),
        CloseReason::Timeout | CloseReason::ConnectTimeout => (WW_CLOSED_TIMEOUT, 0),
        _ => (WW_CLOSED_OTHER, 0),
    }
}
