//! Sessions behind threads, over real loopback sockets. No test depends on the speed of the machine.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::Digit;
use crate::common::sessions::{default_kcp, in_packets, on, ordered};
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::channel::{ChannelError, RecvError, SendError};
use whitewater::kcp::Config;
use whitewater::message::DEFAULT_MAX_LEN;
use whitewater::session::{Undelivered, code};
use whitewater::thread::{self as threads, ThreadConfig};
use whitewater::{
    Channel, ChannelConfig, Client, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId,
};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The channel of a default session.
const CHAT: Channel = on(0);

fn server(session: &SessionConfig, threads: &ThreadConfig) -> threads::Server {
    let config = ServerConfig::insecure(session.clone());
    threads::Server::bind("127.0.0.1:0", &config, threads).unwrap()
}

fn client(server: &threads::Server, session: &SessionConfig, threads: &ThreadConfig) -> threads::Client {
    let config = ClientConfig::insecure(session.clone());
    threads::Client::connect(server.local_addr(), &config, threads).unwrap()
}

/// A server and a connected client, each on its thread.
fn pair(session: &SessionConfig, threads: &ThreadConfig) -> (threads::Server, SessionId, threads::Client) {
    let mut server = server(session, threads);
    let mut client = client(&server, session, threads);
    assert_eq!(client_event(&mut client), Event::Connected);
    let (id, event) = server_event(&mut server);
    assert_eq!(event, Event::Connected);
    (server, id, client)
}

/// The next event, but for those that there is room.
fn server_event(server: &mut threads::Server) -> (SessionId, Event) {
    loop {
        assert!(server.poll(Some(PATIENCE)), "nothing has happened");
        if let Some((id, event)) = server.poll_event().filter(|(_, event)| *event != Event::Writable) {
            return (id, event);
        }
    }
}

fn client_event(client: &mut threads::Client) -> Event {
    loop {
        assert!(client.poll(Some(PATIENCE)), "nothing has happened");
        if let Some(event) = client.poll_event().filter(|event| *event != Event::Writable) {
            return event;
        }
    }
}

/// Looks until it is there.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_micros(100));
    }
}

/// The next message of a channel, whatever else happens.
fn heard(server: &mut threads::Server, id: SessionId, channel: Channel) -> Vec<u8> {
    until("no message", || {
        server.poll(Some(Duration::ZERO));
        server.recv(id, channel).map(Vec::from)
    })
}

/// How a session has ended, if that is what has happened.
fn closed(event: &Event) -> Option<(CloseReason, Undelivered)> {
    match event {
        Event::Closed { reason, undelivered } => Some((*reason, *undelivered)),
        _ => None,
    }
}

/// How it ends, whatever happens before.
fn end_of(mut event: impl FnMut() -> Event) -> (CloseReason, Undelivered) {
    loop {
        if let Some(end) = closed(&event()) {
            return end;
        }
    }
}

/// One of each kind that arrives, by KCP and in packets.
mod kinds {
    use super::*;

    const HITS: Channel = Channel::unordered(1);
    const ORDERS: Channel = on(2);
    const NAMES: Channel<String> = Channel::sequenced(3);
    const BYTES: Channel = Channel::stream(4);
    /// Too long for a packet, and cut on a channel that KCP carries.
    const LONG: usize = 20_000;

    #[derive(Debug, Default, PartialEq)]
    struct Heard {
        chat: Vec<Vec<u8>>,
        hits: Vec<Vec<u8>>,
        orders: Vec<Vec<u8>>,
        names: Vec<String>,
        bytes: Vec<u8>,
        datagrams: Vec<Vec<u8>>,
    }

    impl Heard {
        fn all(which: &str) -> Self {
            let (long, short) = (vec![5; LONG], which.as_bytes().to_vec());
            Self {
                chat: vec![long.clone(), short.clone()],
                hits: vec![short.clone(), long.clone()],
                orders: vec![short.clone(), long, short],
                names: vec![which.to_owned()],
                bytes: (0..3 * LONG).map(|at| at.to_le_bytes()[0]).collect(),
                datagrams: vec![format!("datagram {which}").into_bytes()],
            }
        }
    }

    macro_rules! say {
        ($all:expr, $end:ident $(, $id:ident)?) => {{
            let all = $all;
            $end.send_datagram($($id,)? &all.datagrams[0]).unwrap();
            all.hits.iter().rev().for_each(|hit| $end.send($($id,)? HITS, hit).unwrap());
            all.chat.iter().for_each(|line| $end.send($($id,)? CHAT, line).unwrap());
            all.orders.iter().for_each(|order| $end.send($($id,)? ORDERS, order).unwrap());
            $end.send($($id,)? NAMES, &all.names[0]).unwrap();
            $end.send($($id,)? BYTES, &all.bytes).unwrap();
        }};
    }

    macro_rules! hear {
        ($heard:expr, $end:ident $(, $id:ident)?) => {{
            let heard = &mut $heard;
            $end.poll(Some(Duration::ZERO));
            heard.chat.extend($end.recv($($id,)? CHAT).map(Vec::from));
            heard.hits.extend($end.recv($($id,)? HITS).map(Vec::from));
            heard.hits.sort_unstable_by_key(Vec::len);
            heard.orders.extend($end.recv($($id,)? ORDERS).map(Vec::from));
            heard.names.extend($end.recv($($id,)? NAMES));
            heard.bytes.extend($end.recv($($id,)? BYTES).unwrap_or_default());
            heard.datagrams.extend($end.recv_datagram($($id)?).map(Vec::from));
        }};
    }

    #[test]
    fn every_kind_of_data_goes_both_ways() {
        let channels = vec![CHAT.into(), HITS.into(), in_packets(ORDERS), NAMES.into(), BYTES.into()];
        let session = SessionConfig { channels, ..SessionConfig::default() };
        let (mut server, id, mut client) = pair(&session, &ThreadConfig::default());
        say!(Heard::all("up"), client);
        say!(Heard::all("down"), server, id);
        let (mut up, mut down, start) = (Heard::default(), Heard::default(), Instant::now());
        while up != Heard::all("up") || down != Heard::all("down") {
            assert!(start.elapsed() < PATIENCE, "{up:?} {down:?}");
            hear!(up, server, id);
            hear!(down, client);
            thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn a_program_that_takes_nothing_stops_the_peer_and_loses_nothing() {
    let kcp = Config { snd_wnd: 32, rcv_wnd: 128, snd_queue: 64, ..default_kcp() };
    let slow_peer = Duration::from_secs(600);
    let session = SessionConfig { channels: ordered([kcp]), slow_peer, ..SessionConfig::default() };
    let small = ThreadConfig { outgoing: 64 << 10, incoming: 64 << 10 };
    let (mut server, id, mut client) = pair(&session, &small);
    let message = |number: u32| [&number.to_le_bytes()[..], &[0; 996]].concat();
    // Until everything between the two programs is full, which happens because it is bounded.
    let (mut sent, start) = (0, Instant::now());
    let mut full_since = None;
    loop {
        match client.send(CHAT, &message(sent)) {
            Ok(()) => (sent, full_since) = (sent + 1, None),
            Err(SendError::Full { channel: 0 }) => {
                let since = *full_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= Duration::from_millis(500) {
                    break;
                }
                while server.poll_event().is_some() {}
                thread::sleep(Duration::from_millis(1));
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(start.elapsed() < PATIENCE && sent < 5000, "{sent} messages disappeared");
    }
    for expected in 0..sent {
        assert_eq!(heard(&mut server, id, CHAT), message(expected), "message {expected} of {sent}");
    }
    client.send(CHAT, b"goes on").unwrap();
    assert_eq!(heard(&mut server, id, CHAT), b"goes on");
}

#[test]
fn that_there_is_room_again_is_told_to_who_found_none() {
    let small = ThreadConfig { outgoing: 8 << 10, ..ThreadConfig::default() };
    let (mut server, id, mut client) = pair(&SessionConfig::default(), &small);
    for _ in 0..5 {
        // The session has room for all of it: only the thread is too slow.
        let (goes_on, waits) = channel::<()>();
        assert!(client.run(move |_| assert!(waits.recv().is_err())));
        let sent = (0..100).take_while(|_| client.send(CHAT, &[7; 1000]).is_ok()).count();
        assert!((1..10).contains(&sent), "{sent}");
        assert_eq!(client.send(CHAT, &[7; 1000]), Err(SendError::Full { channel: 0 }));
        drop(goes_on);
        assert!(client.poll(Some(PATIENCE)));
        assert_eq!(client.poll_event(), Some(Event::Writable));
        client.send(CHAT, b"the last").unwrap();
        assert_eq!(
            until("no room", || Some(heard(&mut server, id, CHAT)).filter(|heard| *heard == b"the last"))
                .len(),
            8
        );
    }
}

#[test]
fn a_full_channel_holds_up_no_other_and_no_other_session() {
    let slow = Config { snd_wnd: 4, snd_queue: 4, ..default_kcp() };
    let session = SessionConfig { channels: ordered([slow, slow]), ..SessionConfig::default() };
    let (mut server, _, mut first) = pair(&session, &ThreadConfig::default());
    let mut second = client(&server, &session, &ThreadConfig::default());
    assert_eq!(client_event(&mut second), Event::Connected);
    (0..200u8).for_each(|number| first.send(on(0), &[number; 1000]).unwrap());
    first.send(on(1), b"past it").unwrap();
    second.send(on(0), b"beside it").unwrap();
    let mut counts = BTreeMap::<_, usize>::new();
    while counts.values().sum::<usize>() < 202 {
        let (id, event) = server_event(&mut server);
        assert!(matches!(event, Event::Readable | Event::Connected), "{event:?} after {counts:?}");
        for channel in 0..2 {
            while let Some(bytes) = server.recv(id, on(channel)) {
                let count = counts.entry((id, channel)).or_default();
                assert!(channel == 1 || bytes.len() < 1000 || bytes[0] == u8::try_from(*count).unwrap());
                *count += 1;
            }
        }
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 200]);
}

#[test]
fn what_a_program_never_reads_holds_up_no_other_channel_and_no_other_session() {
    let session = SessionConfig { channels: ordered([default_kcp(); 2]), ..SessionConfig::default() };
    let small = ThreadConfig { incoming: 64 << 10, ..ThreadConfig::default() };
    let (mut server, honest, mut client) = pair(&session, &small);
    // More of them than what may wait for the program is shared out among.
    let mut hostile = Vec::new();
    for _ in 0..12 {
        let mut client = self::client(&server, &session, &ThreadConfig::default());
        assert_eq!(client_event(&mut client), Event::Connected);
        for _ in 0..100 {
            client.send(on(1), &[9; 1000]).unwrap();
            client.send_datagram(&[9; 1000]).unwrap();
        }
        client.send(CHAT, b"read").unwrap();
        let id = until("not connected", || {
            server.poll(Some(Duration::ZERO));
            server.clients().find(|id| *id != honest && !hostile.iter().any(|(_, other)| other == id))
        });
        hostile.push((client, id));
    }
    for (_, id) in &hostile {
        assert_eq!(heard(&mut server, *id, CHAT), b"read");
    }
    // If the thread was not woken for each, it would take longer than anybody waits.
    let start = Instant::now();
    for number in 0..400u32 {
        client.send(CHAT, &number.to_le_bytes()).unwrap();
        assert_eq!(heard(&mut server, honest, CHAT), number.to_le_bytes());
        assert!(start.elapsed() < PATIENCE, "{number}");
    }
    // And it goes on when it is read.
    let (_, id) = hostile.pop().unwrap();
    for _ in 0..100 {
        assert_eq!(heard(&mut server, id, on(1)), [9; 1000]);
    }
}

#[test]
fn a_program_that_takes_one_event_a_poll_hears_everything_however_little_may_wait() {
    let tiny = ThreadConfig { incoming: 1, ..ThreadConfig::default() };
    let session = SessionConfig::default();
    let mut server = server(&session, &tiny);
    let clients = [(); 4].map(|()| {
        let mut client = client(&server, &session, &tiny);
        assert_eq!(client_event(&mut client), Event::Connected);
        (0..50u32).for_each(|number| client.send(CHAT, &number.to_le_bytes()).unwrap());
        client.close(3);
        client
    });
    let (mut counts, mut ended, start) = (BTreeMap::<_, u32>::new(), 0, Instant::now());
    while ended < clients.len() {
        assert!(start.elapsed() < PATIENCE, "{counts:?}, {ended} ended");
        assert!(server.poll(Some(PATIENCE)), "{counts:?}, {ended} ended");
        let Some((id, event)) = server.poll_event() else { continue };
        ended += usize::from(closed(&event).is_some());
        let next = counts.entry(id).or_default();
        while let Some(message) = server.recv(id, CHAT) {
            assert_eq!(message, next.to_le_bytes()[..]);
            *next += 1;
        }
    }
    assert!(counts.len() == 4 && counts.values().all(|count| *count == 50), "{counts:?}");
}

#[test]
fn channels_that_always_have_more_to_send_leave_every_other_its_room() {
    const PACKED: Channel = on(3);
    let channels = [ordered([default_kcp(); 3]), vec![in_packets(PACKED)]].concat();
    let session = SessionConfig { channels, ..SessionConfig::default() };
    let (mut server, id, mut client) = pair(&session, &ThreadConfig::default());
    let fill = |client: &mut threads::Client| {
        while client.send(on(1), &[9; 1000]).is_ok() {}
        while client.send(on(2), &[9; 1000]).is_ok() {}
        while client.send_datagram(&[9; 1000]).is_ok() {}
    };
    let (mut sent, mut got, start) = (0u32, [0u32; 2], Instant::now());
    while got != [600; 2] {
        assert!(start.elapsed() < PATIENCE, "{sent} sent, {got:?} have come");
        fill(&mut client);
        if sent < 600 {
            // Nothing of it waits for long, so there always is room, whatever the others have.
            client.send(CHAT, &sent.to_le_bytes()).unwrap();
            client.send(PACKED, &sent.to_le_bytes()).unwrap();
            sent += 1;
        }
        while got.into_iter().any(|got| got < sent) {
            let (of, event) = server_event(&mut server);
            assert_eq!((of, event), (id, Event::Readable), "{sent} sent, {got:?} have come");
            for (channel, got) in [CHAT, PACKED].into_iter().zip(&mut got) {
                while let Some(bytes) = server.recv(id, channel) {
                    assert_eq!(bytes[..], got.to_le_bytes());
                    *got += 1;
                }
            }
            while server.recv(id, on(1)).is_some() || server.recv(id, on(2)).is_some() {}
            while server.recv_datagram(id).is_some() {}
        }
    }
}

#[test]
fn what_no_session_would_take_is_refused_at_once() {
    const NAMES: Channel<String> = Channel::unordered(1);
    let channels = vec![ChannelConfig { max_message: 1000, ..CHAT.config() }, NAMES.into()];
    let session = SessionConfig { channels, ..SessionConfig::default() };
    let (mut server, id, mut client) = pair(&session, &ThreadConfig::default());
    let missing = ChannelError::Missing { number: 9, count: 2 };
    assert_eq!(client.send(on(9), b"no such channel"), Err(missing.into()));
    let wrong = |handle: whitewater::channel::AnyChannel, there| {
        SendError::from(ChannelError::Wrong { handle, there })
    };
    let (stream, bytes) = (Channel::stream(0), on(1));
    assert_eq!(client.send(stream, b"no stream"), Err(wrong(stream.into(), CHAT.into())));
    assert_eq!(client.send(bytes, b"no bytes"), Err(wrong(bytes.into(), NAMES.into())));
    assert_eq!(client.recv(bytes), None);
    assert_eq!(client.recv_into(on(9), &mut [0; 10]), Err(RecvError::Channel(missing)));
    let cure = "raise its `max_message`";
    assert_eq!(
        client.send(CHAT, &[0; 1001]),
        Err(SendError::TooLong { channel: 0, len: 1001, max: 1000, cure })
    );
    assert_eq!(
        client.send_datagram(&[0; 5000]).unwrap_err().to_string(),
        "a message of 5000 bytes, where the queue of datagrams takes 1163: send it on a reliable channel"
    );
    let name = "x".repeat(DEFAULT_MAX_LEN + 1);
    assert!(matches!(client.send(NAMES, &name), Err(SendError::Bits(_))));
    server.close(id, 3);
    assert_eq!(server.send(id, CHAT, b"too late"), Err(SendError::Closed));
    let nothing = Undelivered::default();
    assert_eq!(end_of(|| client_event(&mut client)), (CloseReason::Peer(3), nothing), "none of it was sent");
    assert_eq!(client.send(CHAT, b"too late"), Err(SendError::Closed));
    assert_eq!(end_of(|| server_event(&mut server).1), (CloseReason::Local(3), nothing));
    while server.poll(Some(Duration::ZERO)) {
        server.poll_event();
    }
    assert_eq!(server.send(id, CHAT, b"too late"), Err(SendError::Closed));
    assert_eq!(server.recv(id, CHAT), None);
}

#[test]
fn what_a_session_does_not_take_is_told_with_its_end() {
    const EFFECTS: Channel = Channel::unreliable(1);
    let session = SessionConfig { channels: vec![CHAT.into(), EFFECTS.into()], ..SessionConfig::default() };
    let (mut server, id, mut client) = pair(&session, &ThreadConfig::default());
    // Only the session knows that no packet has room for it.
    client.send(EFFECTS, &[7; 5000]).unwrap();
    client.send(EFFECTS, b"short").unwrap();
    assert_eq!(heard(&mut server, id, EFFECTS), b"short");
    server.close(id, 3);
    assert_eq!(end_of(|| server_event(&mut server).1).0, CloseReason::Local(3));
    // It is over, and the program does not know it yet.
    for _ in 0..5 {
        client.send(CHAT, b"to nobody").unwrap();
        client.send_datagram(b"to nobody").unwrap();
    }
    let (reason, Undelivered { segments, messages, datagrams, .. }) = end_of(|| client_event(&mut client));
    assert_eq!((reason, segments + messages, datagrams), (CloseReason::Peer(3), 1 + 5, 5));
}

#[test]
fn a_message_that_is_none_of_its_type_ends_the_session() {
    const SENT: Channel<Digit<255>> = Channel::ordered(0);
    const TAKEN: Channel<Digit<9>> = Channel::ordered(0);
    let session = SessionConfig { channels: vec![TAKEN.into()], ..SessionConfig::default() };
    let mut server = server(&session, &ThreadConfig::default());
    let session = SessionConfig { channels: vec![SENT.into()], ..SessionConfig::default() };
    let mut client = client(&server, &session, &ThreadConfig::default());
    assert_eq!(client_event(&mut client), Event::Connected);
    let (id, _) = server_event(&mut server);
    client.send(SENT, &Digit(7)).unwrap();
    client.send(SENT, &Digit(10)).unwrap();
    assert_eq!(
        until("no digit", || {
            server.poll(Some(Duration::ZERO));
            server.recv(id, TAKEN)
        })
        .0,
        7
    );
    let end = until("it has not ended", || {
        assert!(server.recv(id, TAKEN).is_none());
        server.poll(Some(Duration::ZERO));
        server.poll_event().and_then(|(_, event)| closed(&event))
    });
    assert_eq!(end.0, CloseReason::Protocol);
    assert_eq!(end_of(|| client_event(&mut client)).0, CloseReason::Peer(code::PROTOCOL));
}

#[test]
fn that_there_is_something_to_read_is_told_once_a_channel_until_all_of_it_is_read() {
    const HITS: Channel = Channel::unordered(1);
    let session = SessionConfig { channels: vec![CHAT.into(), HITS.into()], ..SessionConfig::default() };
    let (mut server, id, mut client) = pair(&session, &ThreadConfig::default());
    for round in 0..3u8 {
        client.send(CHAT, &[round]).unwrap();
        assert_eq!(server_event(&mut server), (id, Event::Readable), "again, when all was read");
        assert_eq!(server.recv(id, CHAT).unwrap(), [round][..]);
        assert_eq!(server.recv(id, CHAT), None);
    }
    // Who reads and does not ask for events has one of them to hear.
    for number in 0..50u8 {
        client.send(CHAT, &[number]).unwrap();
        assert_eq!(heard(&mut server, id, CHAT), [number]);
    }
    assert_eq!(server.poll_event(), Some((id, Event::Readable)));
    assert_eq!(server.poll_event(), None);
    // Now not all is read: of what comes on that channel nothing is told, of others it is.
    client.send(CHAT, b"stays").unwrap();
    assert_eq!(server_event(&mut server), (id, Event::Readable));
    client.send(HITS, b"goes").unwrap();
    assert_eq!(heard(&mut server, id, HITS), b"goes");
    client.send(CHAT, b"stays as well").unwrap();
    client.send(HITS, b"stays too").unwrap();
    client.send_datagram(b"and so does it").unwrap();
    client.close(4);
    // And the end comes behind all that.
    let mut told = 0;
    let end = loop {
        match server_event(&mut server).1 {
            Event::Readable => told += 1,
            end => break end,
        }
    };
    assert!((1..=3).contains(&told), "{told} times of two channels and datagrams");
    assert_eq!(closed(&end).unwrap().0, CloseReason::Peer(4));
    let mut buf = [0; 100];
    let too_small = RecvError::BufferTooSmall { have: 4, need: 5 };
    assert_eq!(server.recv_into(id, CHAT, &mut buf[..4]), Err(too_small), "and it stays");
    assert_eq!(server.recv_into(id, CHAT, &mut buf), Ok(5));
    assert_eq!(&buf[..5], b"stays");
    assert_eq!(server.recv(id, CHAT).unwrap(), "stays as well");
    assert_eq!(server.recv_into(id, CHAT, &mut buf), Err(RecvError::Empty));
    assert_eq!(server.recv(id, HITS).unwrap(), "stays too");
    assert_eq!(server.recv_datagram_into(id, &mut buf), Ok(14));
    assert_eq!((server.recv_datagram(id), server.clients().count()), (None, 0));
}

#[test]
fn what_came_before_the_end_is_read_by_who_asks_for_all_events_first() {
    let (mut server, id, mut client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    server.send(id, CHAT, b"the last word").unwrap();
    server.close(id, 5);
    assert_eq!(end_of(|| client_event(&mut client)).0, CloseReason::Peer(5));
    assert_eq!(client.poll_event(), None);
    assert_eq!(client.recv(CHAT).unwrap(), "the last word");
}

#[test]
fn what_a_client_says_of_itself_and_why_it_was_kicked_is_known_without_asking_the_thread() {
    let threads = ThreadConfig::default();
    let mut server = server(&SessionConfig::default(), &threads);
    let config = ClientConfig { user: b"Ada".to_vec(), ..ClientConfig::insecure(SessionConfig::default()) };
    let mut client = threads::Client::connect(server.local_addr(), &config, &threads).unwrap();
    let (id, event) = server_event(&mut server);
    assert_eq!((event, server.user(id), client.close_text()), (Event::Connected, &b"Ada"[..], ""));
    server.kick(id, 7, "no cheating").unwrap();
    let (reason, _) = end_of(|| client_event(&mut client));
    assert_eq!((reason, client.close_text()), (CloseReason::Peer(7), "no cheating"));
}

#[test]
fn a_dropped_handle_delivers_what_was_sent_says_goodbye_and_joins_its_thread() {
    let (mut server, id, mut client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    for number in 0..150u8 {
        client.send(CHAT, &[number; 900]).unwrap();
    }
    drop(client);
    for number in 0..150u8 {
        assert_eq!(heard(&mut server, id, CHAT), vec![number; 900]);
    }
    assert_eq!(end_of(|| server_event(&mut server).1).0, CloseReason::Peer(0));
    server.shutdown(0).unwrap();
}

#[test]
fn a_shutdown_closes_connected_and_connecting_sessions() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = silent.local_addr().unwrap();
    let connecting = Client::connect(target, &ClientConfig::insecure(SessionConfig::default())).unwrap();
    let mut connecting = threads::Client::spawn(connecting, &ThreadConfig::default()).unwrap();
    assert_eq!(connecting.send(CHAT, b"too early"), Err(SendError::NotConnected));
    connecting.close(6);
    assert_eq!(end_of(|| client_event(&mut connecting)).0, CloseReason::Local(6));
    connecting.shutdown(0).unwrap();

    let (server, _, mut client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    server.shutdown(5).unwrap();
    assert_eq!(end_of(|| client_event(&mut client)).0, CloseReason::Peer(5));
    assert!(!client.is_finished());
}

#[test]
fn the_thread_runs_closures_for_what_has_no_command() {
    let (mut server, id, client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    let (tell, told) = channel();
    assert!(server.connection(id, move |connection| tell.send(connection.peer_addr()).unwrap()));
    let peer = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(server.peer_addr(id), Some(peer));
    assert_eq!(peer.port(), client.local_addr().port());
    // And a thread that was woken for nothing has counted no garbage.
    let (tell, told) = channel();
    assert!(server.run(0, move |server| tell.send(server.stats()).unwrap()));
    let stats = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!((stats.accepted, stats.rejected.malformed), (1, 0));
    assert!(server.run(0, |_| panic!("in a test")));
    until("the thread goes on", || server.is_finished().then_some(()));
    assert!(!server.run(0, |_| ()));
    assert!(!server.poll(None), "and nothing is waited for that cannot come");
    assert!(server.shutdown(0).is_err());
}
