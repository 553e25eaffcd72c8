//! Sessions behind threads, over real loopback sockets. No test depends on the speed of the machine.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use whitewater::kcp::Config;
use whitewater::message::channel::{ChannelConfig, Received};
use whitewater::net::{
    Client, ClientThread, Incoming, NotSent, Refused, Server, ServerThread, ThreadConfig, Way,
};
use whitewater::session::{
    Blob, ClientConfig, CloseReason, Event, SendError, ServerConfig, SessionConfig, SessionId,
};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const LANE: usize = 0;

fn server(session: &SessionConfig, threads: &ThreadConfig) -> ServerThread {
    let config = ServerConfig::insecure(session.clone());
    Server::bind("127.0.0.1:0", &config).unwrap().spawn(threads).unwrap()
}

fn client(server: &ServerThread, session: &SessionConfig, threads: &ThreadConfig) -> ClientThread {
    let config = ClientConfig::insecure(session.clone());
    Client::connect(server.local_addr(), &config).unwrap().spawn(threads).unwrap()
}

/// A server and a connected client, each on its thread.
fn pair(session: &SessionConfig, threads: &ThreadConfig) -> (ServerThread, SessionId, ClientThread) {
    let mut server = server(session, threads);
    let mut client = client(&server, session, threads);
    assert_eq!(client.recv(PATIENCE), Some(Incoming::Event(Event::Connected)));
    let (id, incoming) = server.recv(PATIENCE).unwrap();
    assert_eq!(incoming, Incoming::Event(Event::Connected));
    (server, id, client)
}

fn closed<M>(incoming: &Incoming<M>) -> Option<CloseReason> {
    match incoming {
        Incoming::Event(Event::Closed { reason, .. }) => Some(*reason),
        _ => None,
    }
}

#[test]
fn every_kind_of_data_goes_both_ways() {
    let channels = vec![ChannelConfig::reliable_unordered(), ChannelConfig::blocks()];
    let session = SessionConfig { channels, ..SessionConfig::default() };
    let (mut server, id, mut client) = pair(&session, &ThreadConfig::default());
    let (block, blob) = (vec![5; 50_000], Blob(vec![6; 30]));
    client.send(LANE, b"up").unwrap();
    client.send_datagram(b"datagram up").unwrap();
    client.send_message(0, blob.clone()).unwrap();
    client.send_block(1, &block).unwrap();
    server.send(id, LANE, b"down").unwrap();
    server.send_datagram(id, b"datagram down").unwrap();
    server.send_message(id, 0, blob.clone()).unwrap();
    server.send_block(id, 1, &block).unwrap();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    while up.len() < 4 {
        let (of, incoming) = server.recv(PATIENCE).unwrap();
        assert_eq!(of, id);
        up.push(incoming);
    }
    while down.len() < 4 {
        down.push(client.recv(PATIENCE).unwrap());
    }
    for (all, which) in [(up, "up"), (down, "down")] {
        let bytes = which.as_bytes().to_vec();
        assert!(all.contains(&Incoming::Message { lane: 0, bytes }), "{all:?}");
        assert!(all.contains(&Incoming::Datagram(format!("datagram {which}").into_bytes())));
        assert!(all.contains(&Incoming::Channel { channel: 0, received: Received::Message(blob.clone()) }));
        let is_block = |incoming: &_| match incoming {
            Incoming::Channel { channel: 1, received: Received::Block(bytes) } => bytes[..] == block[..],
            _ => false,
        };
        assert!(all.iter().any(is_block));
    }
}

#[test]
fn a_program_that_does_not_read_slows_the_peer_and_loses_nothing() {
    let lane = Config { snd_wnd: 32, rcv_wnd: 128, snd_queue: 64, ..SessionConfig::default().lanes[0] };
    let slow_peer = Duration::from_secs(600);
    let session = SessionConfig { lanes: vec![lane], slow_peer, ..SessionConfig::default() };
    let small = ThreadConfig { outgoing: 64 << 10, incoming: 64 << 10 };
    let (mut server, id, mut client) = pair(&session, &small);
    let message = |number: u32| [&number.to_le_bytes()[..], &[0; 996]].concat();
    // Until everything between the two programs is full, which happens because it is bounded.
    let (mut sent, start) = (0, Instant::now());
    let mut full_since = None;
    loop {
        match client.send(LANE, &message(sent)) {
            Ok(()) => (sent, full_since) = (sent + 1, None),
            Err(NotSent::Full) => {
                let since = *full_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= Duration::from_millis(500) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(NotSent::Gone) => panic!("the session is gone"),
            Err(other) => panic!("{other:?}"),
        }
        assert!(start.elapsed() < PATIENCE && sent < 5000, "{sent} messages disappeared");
    }
    let room = client.room(Way::Lane(LANE));
    assert!(room < 1000, "{room}");
    for expected in 0..sent {
        match server.recv(PATIENCE) {
            Some((of, Incoming::Message { lane: LANE, bytes })) if of == id => {
                assert_eq!(bytes, message(expected));
            }
            other => panic!("{other:?} instead of message {expected} of {sent}"),
        }
    }
    client.send(LANE, b"goes on").unwrap();
    assert!(
        matches!(server.recv(PATIENCE), Some((_, Incoming::Message { bytes, .. })) if bytes == b"goes on")
    );
}

#[test]
fn a_full_lane_holds_up_no_other_lane_and_no_other_session() {
    let slow = Config { snd_wnd: 4, snd_queue: 4, ..SessionConfig::default().lanes[0] };
    let session = SessionConfig { lanes: vec![slow, slow], ..SessionConfig::default() };
    let (mut server, _, mut first) = pair(&session, &ThreadConfig::default());
    let mut second = client(&server, &session, &ThreadConfig::default());
    assert_eq!(second.recv(PATIENCE), Some(Incoming::Event(Event::Connected)));
    (0..200u8).for_each(|number| first.send(0, &[number; 1000]).unwrap());
    first.send(1, b"past it").unwrap();
    second.send(0, b"beside it").unwrap();
    let mut counts = BTreeMap::<_, usize>::new();
    while counts.values().sum::<usize>() < 202 {
        match server.recv(PATIENCE) {
            Some((id, Incoming::Message { lane, bytes })) => {
                let count = counts.entry((id, lane)).or_default();
                assert!(lane == 1 || bytes.len() < 1000 || bytes[0] == u8::try_from(*count).unwrap());
                *count += 1;
            }
            Some((_, Incoming::Event(Event::Connected))) => {}
            other => panic!("{other:?} after {counts:?}"),
        }
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 200]);
}

#[test]
fn busy_lanes_leave_every_other_its_room() {
    let lane = SessionConfig::default().lanes[0];
    let session = SessionConfig {
        lanes: vec![lane; 3],
        channels: vec![ChannelConfig::reliable_ordered()],
        ..SessionConfig::default()
    };
    let (mut server, id, mut client) = pair(&session, &ThreadConfig::default());
    let fill = |client: &mut ClientThread| {
        while client.send(1, &[9; 1000]).is_ok() {}
        while client.send(2, &[9; 1000]).is_ok() {}
        while client.send_datagram(&[9; 1000]).is_ok() {}
    };
    let (mut sent, mut got, start) = (0u32, 0u32, Instant::now());
    while got < 600 {
        assert!(start.elapsed() < PATIENCE, "{sent} sent, {got} have come");
        fill(&mut client);
        if sent < 600 {
            // None of it waits for long, so there is always room, whatever the others have.
            client.send(LANE, &sent.to_le_bytes()).unwrap();
            client.send_message(0, Blob(sent.to_le_bytes().to_vec())).unwrap();
            assert!(client.room(Way::Channel(0)) > 0);
            sent += 1;
        }
        while got < sent {
            match server.recv(PATIENCE) {
                Some((of, Incoming::Message { lane: LANE, bytes })) if of == id => {
                    assert_eq!(bytes, got.to_le_bytes());
                    got += 1;
                }
                Some(_) => {}
                None => panic!("{sent} sent, {got} have come"),
            }
        }
    }
}

#[test]
fn refused_messages_are_reported() {
    let (mut server, id, mut client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    client.send(9, b"no such lane").unwrap();
    client.send_datagram(&[0; 5000]).unwrap();
    client.send_message(3, Blob::default()).unwrap();
    let refused: Vec<_> = (0..3).map(|_| client.recv(PATIENCE).unwrap()).collect();
    assert!(refused.iter().all(|incoming| matches!(incoming, Incoming::Refused(_))), "{refused:?}");
    let no_lane = Refused::Lane(SendError::NoLane { lane: 9, count: 1 });
    assert!(refused.contains(&Incoming::Refused(no_lane)), "{refused:?}");
    server.close(id, 3);
    assert_eq!(server.send(id, LANE, b"too late"), Err(NotSent::Gone));
    assert_eq!(closed(&client.recv(PATIENCE).unwrap()), Some(CloseReason::Peer(3)));
    assert_eq!(client.send(LANE, b"too late"), Err(NotSent::Gone));
    assert_eq!(closed(&server.recv(PATIENCE).unwrap().1), Some(CloseReason::Local(3)));
}

#[test]
fn a_dropped_handle_delivers_what_was_sent_says_goodbye_and_joins_its_thread() {
    let (mut server, id, mut client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    for number in 0..150u8 {
        client.send(LANE, &[number; 900]).unwrap();
    }
    drop(client);
    for number in 0..150u8 {
        let incoming = server.recv(PATIENCE);
        assert_eq!(incoming, Some((id, Incoming::Message { lane: LANE, bytes: vec![number; 900] })));
    }
    assert_eq!(closed(&server.recv(PATIENCE).unwrap().1), Some(CloseReason::Peer(0)));
    server.shutdown(0).unwrap();
}

#[test]
fn a_shutdown_closes_connected_and_connecting_sessions() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = silent.local_addr().unwrap();
    let connecting: Client =
        Client::connect(nobody, &ClientConfig::insecure(SessionConfig::default())).unwrap();
    let mut connecting = connecting.spawn(&ThreadConfig::default()).unwrap();
    assert_eq!(connecting.send(LANE, b"too early"), Err(NotSent::Gone));
    connecting.close(6);
    assert_eq!(connecting.recv(PATIENCE).as_ref().and_then(closed), Some(CloseReason::Local(6)));
    connecting.shutdown(0).unwrap();

    let (server, _, mut client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    server.shutdown(5).unwrap();
    assert_eq!(closed(&client.recv(PATIENCE).unwrap()), Some(CloseReason::Peer(5)));
    assert!(!client.is_finished());
}

#[test]
fn the_thread_runs_closures_for_what_has_no_command() {
    let (mut server, id, client) = pair(&SessionConfig::default(), &ThreadConfig::default());
    let (tell, told) = channel();
    server.run(move |server| tell.send(server.session(id).map(|session| session.peer())).unwrap()).unwrap();
    let peer = told.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(peer.port(), client.local_addr().port());
    // And a thread that was woken for nothing has counted no garbage.
    let (tell, told) = channel();
    server.run(move |server| tell.send(server.stats()).unwrap()).unwrap();
    let stats = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!((stats.accepted, stats.rejected.malformed), (1, 0));
    server.run(|_| panic!("in a test")).unwrap();
    let start = Instant::now();
    while !server.is_finished() {
        assert!(start.elapsed() < PATIENCE, "the thread goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(server.run(|_| ()), Err(NotSent::Gone));
    assert!(server.shutdown(0).is_err());
}
