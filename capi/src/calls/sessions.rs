//! Calls of the functions of sessions, over loopback.

use super::{Program, any_size, memory, number, one_of, u8};
use crate::error::{WW_PANIC, ww_error_text};
use crate::session::client::*;
use crate::session::connection::ww_stats;
use crate::session::event::ww_event;
use crate::session::options::*;
use crate::session::server::*;
#[cfg(feature = "crypto")]
use crate::session::token::*;
use std::ffi::c_char;
use std::ptr::{null, null_mut};

/// One call. None that waits: `.._shutdown`, or `.._poll` without a limit.
///
/// # Safety
///
/// The program lives, and nobody else uses it now.
pub(super) unsafe fn call(program: *mut Program) {
    // SAFETY: as the caller says.
    unsafe {
        match u8(program) % 8 {
            0 => make(program),
            1 | 2 => pump(program),
            3 | 4 => of_a_client(program),
            _ => of_a_server(program),
        }
    }
}

/// A script that brings a session up and sends a message each way.
#[cfg(test)]
pub(super) fn up() -> Vec<u8> {
    let bind = [1, 0, 0, 0, 1, 0, 0];
    let connect = [1, 0, 1, 0, 1, 0, 0];
    let pump = [1, 1, 255].repeat(12);
    let send = [1, 3, 0, 0, 0, 20, 7, 1, 5, 0, 0, 0, 0, 20, 7];
    [&bind[..], &connect, &pump, &send, &pump, &send, &pump].concat()
}

const KEY: [u8; 32] = [7; 32];
const ZEROS: [u8; 32] = [0; 32];

/// A pointer to a key, or to zeros, or null.
unsafe fn key(program: *mut Program) -> *const u8 {
    // SAFETY: as the caller says.
    match unsafe { u8(program) } % 8 {
        0 => null(),
        1 => ZEROS.as_ptr(),
        _ => KEY.as_ptr(),
    }
}

/// Frees an object and makes another in its place.
unsafe fn make(program: *mut Program) {
    // SAFETY: as the caller says.
    unsafe {
        let (is_client, which) = (!u8(program).is_multiple_of(2), usize::from(u8(program)));
        let is_plain = !u8(program).is_multiple_of(4);
        let (user, token) = (memory(program), memory(program));
        let channels: Vec<ww_channel> = (0..u8(program) % 40).map(|_| channel(program)).collect();
        let mut options: ww_options = std::mem::zeroed();
        options.suite = match u8(program) % 8 {
            0 => 0,
            1 => u16::from_le_bytes([u8(program), u8(program)]),
            2 | 3 => WW_SUITE_PSK,
            4 => WW_SUITE_KEY,
            5 => WW_SUITE_HYBRID_PSK,
            _ => WW_SUITE_CHECKED,
        };
        (options.psk, options.server_key) = (key(program), key(program));
        if is_plain {
            options.suite = WW_SUITE_CHECKED;
            (options.psk, options.server_key) = (null(), null());
        } else {
            options.protocol_id = number(program).into();
            options.max_sessions = u16::from_le_bytes([u8(program), u8(program)]) % 64;
            options.sessions_per_address = options.max_sessions / 2;
            (options.timeout_ms, options.keepalive_ms) = (number(program), number(program));
            (options.channels, options.channel_count) = (channels.as_ptr(), channels.len());
            (options.user, options.user_len) = (user.as_ptr(), user.len());
            (options.ticket, options.ticket_len) = (token.as_ptr(), token.len());
            (options.ask, options.repairs) = (u8(program) % 2, u8(program));
            options.repairs_within_ms = u16::from(options.repairs % 8 == 7) * 80;
            if u8(program).is_multiple_of(4) {
                (options.token, options.token_len) = (token.as_ptr(), token.len());
            }
            if u8(program).is_multiple_of(4) {
                (options.token_key, options.server_id) = (key(program), number(program).into());
            }
            if u8(program).is_multiple_of(16) {
                (options.channels, options.channel_count) = (null(), any_size(program));
            }
            if u8(program).is_multiple_of(16) {
                (options.user, options.user_len) = (null(), any_size(program));
            }
        }
        let options = if u8(program) == 255 { null() } else { &raw const options };
        let mut error = 0;
        let was_made = if is_client {
            let Some(place) = (*program).clients.get_mut(which % 3) else { return };
            ww_client_free(*place);
            let mut address = [0_u8; 64];
            let server = (*program).servers.into_iter().find(|server| !server.is_null());
            let len = server.map_or(0, |server| ww_server_local_addr(server, address.as_mut_ptr(), 64));
            let address = if len > 0 { address.as_ptr().cast() } else { text(program) };
            *place = ww_client_connect(address, options, &raw mut error);
            !place.is_null()
        } else {
            let Some(place) = (*program).servers.get_mut(which % 2) else { return };
            ww_server_free(*place);
            *place = ww_server_bind(c"127.0.0.1:0".as_ptr(), options, &raw mut error);
            !place.is_null()
        };
        assert!(was_made == (error == 0) && error != WW_PANIC, "{error}");
        let mut why = [0; 512];
        let len = ww_error_text(why.as_mut_ptr(), why.len());
        assert!(len > 0 || was_made && len == 0);
    }
}

unsafe fn channel(program: *mut Program) -> ww_channel {
    // SAFETY: as the caller says.
    unsafe { ww_channel { kind: u8(program) % 6, carrier: u8(program) % 4, max_message: number(program) } }
}

unsafe fn text(program: *mut Program) -> *const c_char {
    let texts = [c"127.0.0.1:9", c"", c"127.0.0.1", c"\xff\xfe", c"a\nb", c"well played"];
    // SAFETY: as the caller says.
    let which = usize::from(unsafe { u8(program) });
    texts.get(which % 8).map_or(null(), |text| text.as_ptr())
}

/// Lets all ends exchange what is due.
unsafe fn pump(program: *mut Program) {
    // SAFETY: as the caller says.
    unsafe {
        let mut next = 0;
        for _ in 0..=u8(program) % 4 {
            for client in (*program).clients {
                assert!(client.is_null() || ww_client_pump(client, &raw mut next) != WW_PANIC);
                assert!(client.is_null() || ww_client_poll(client, 0) != WW_PANIC);
            }
            for server in (*program).servers {
                assert!(server.is_null() || ww_server_pump(server, null_mut()) != WW_PANIC);
                assert!(server.is_null() || ww_server_poll(server, 0) != WW_PANIC);
                let mut event = ww_event::default();
                while !server.is_null() && ww_server_poll_event(server, &raw mut event) == 1 {
                    (*program).sessions.push_front(event.session);
                    (*program).sessions.truncate(8);
                }
            }
        }
    }
}

/// Memory for an answer, or null with any size.
unsafe fn room(program: *mut Program) -> (Vec<u8>, *mut u8, usize) {
    // SAFETY: as the caller says.
    unsafe {
        if u8(program).is_multiple_of(16) {
            return (Vec::new(), null_mut(), any_size(program));
        }
        let mut memory = memory(program);
        let (start, size) = (memory.as_mut_ptr(), memory.len());
        (memory, start, size)
    }
}

unsafe fn of_a_client(program: *mut Program) {
    // SAFETY: as the caller says.
    let answer = unsafe {
        let client = one_of(program, (*program).clients);
        let (what, which) = (u8(program) % 25, u32::from(u8(program)) % 34);
        let (_memory, start, size) = room(program);
        let mut stats = ww_stats::default();
        let mut event = ww_event::default();
        match what {
            0..4 => ww_client_send(client, which, start, size),
            4..6 => ww_client_recv(client, which, start, size),
            6 => ww_client_send_datagram(client, start, size),
            7 => ww_client_recv_datagram(client, start, size),
            8 => ww_client_is_delivered(client, which),
            9 => ww_client_stats(client, if size > 9 { &raw mut stats } else { null_mut() }),
            10 => ww_client_poll_event(client, if size > 9 { &raw mut event } else { null_mut() }),
            11 => ww_client_close(client, u16::from_le_bytes([u8(program), u8(program)])),
            12 => ww_client_close_with(client, 7, text(program)),
            13 => ww_client_kick(client, 7, text(program)),
            14 => ww_client_is_connected(client),
            15 => ww_client_peer_addr(client, start, size),
            16 => ww_client_local_addr(client, start, size),
            17 => ww_client_close_reason(client, start, size),
            18 => ww_client_close_text(client, start, size),
            19 => ww_client_rejection(client, start, size),
            20 => ww_client_take_redirect(client, start, size),
            21 => ww_client_path_changed(client),
            22 => ww_client_ticket(client, start, size),
            23 => ww_client_user(client, start, size),
            _ => ww_error_text(start, size),
        }
    };
    assert_ne!(answer, WW_PANIC);
}

unsafe fn of_a_server(program: *mut Program) {
    // SAFETY: as the caller says.
    let answer = unsafe {
        let server = one_of(program, (*program).servers);
        let (what, which) = (u8(program) % 32, u32::from(u8(program)) % 34);
        let known = (*program).sessions.get(usize::from(u8(program) % 8)).copied();
        let session = known.unwrap_or_else(|| number(program));
        let (_memory, start, size) = room(program);
        let mut stats = ww_stats::default();
        let mut event = ww_event::default();
        let mut sessions = vec![0; size % 64];
        let mut pass: ww_pass = std::mem::zeroed();
        let code = u16::from(u8(program)) << 8;
        match what {
            0..3 => ww_server_send(server, session, which, start, size),
            3..5 => ww_server_recv(server, session, which, start, size),
            5 => ww_server_send_datagram(server, session, start, size),
            6 => ww_server_recv_datagram(server, session, start, size),
            7 => ww_server_is_delivered(server, session, which),
            8 => ww_server_stats(server, session, if size > 9 { &raw mut stats } else { null_mut() }),
            9 => ww_server_poll_event(server, if size > 9 { &raw mut event } else { null_mut() }),
            10 => ww_server_close(server, session, code),
            11 => ww_server_close_with(server, session, code, text(program)),
            12 => ww_server_kick(server, session, code, text(program)),
            13..15 => ww_server_broadcast(server, which, start, size),
            15 => ww_server_broadcast_except(server, session, which, start, size),
            16 => ww_server_clients(server, sessions.as_mut_ptr(), sessions.len()),
            17 => ww_server_is_connected(server, session),
            18 => ww_server_peer_addr(server, session, start, size),
            19 => ww_server_local_addr(server, start, size),
            20 => ww_server_close_reason(server, start, size),
            21 => ww_server_close_text(server, session, start, size),
            22 => ww_server_redirect(server, session, start, size),
            23..25 => ww_server_admit(server, session, start, size),
            25 => ww_server_reject(server, session, code, start, size),
            26 => ww_server_user(server, session, start, size),
            28 => ww_server_pass(server, session, if size > 9 { &raw mut pass } else { null_mut() }),
            #[cfg(feature = "crypto")]
            29 => {
                let mut order: ww_order = std::mem::zeroed();
                (order.server_id, order.suite, order.life_s) =
                    (number(program).into(), WW_SUITE_PSK, number(program));
                order.token_key = key(program);
                (order.addresses, order.user, order.user_len) = (text(program), start, size);
                ww_token_mint(if which == 33 { null() } else { &raw const order }, start, size)
            }
            #[cfg(feature = "crypto")]
            27 => ww_public_key(key(program), if size >= 32 { start } else { null_mut() }),
            _ => ww_error_text(start, size),
        }
    };
    assert_ne!(answer, WW_PANIC);
}
