//! Keys that leak or are stolen, and peers that ask for new ones all the time.

use crate::common::machine::Whole as _;
use crate::common::rogue::{Rogue, open_server};
use crate::common::sessions::{SUITE, World, client_config, on, random, server_address, server_config};
use crate::common::{self, ms};
use rand::{Rng as _, TryCryptoRng, TryRng};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::inside::session::wire::{Frame, RekeyFrame};
use whitewater::machine::Machine as _;
use whitewater::packet::Seq16;
use whitewater::session::{Cipher, Client};
use whitewater::{ClientConfig, CloseReason, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, SimRng};

/// The random bytes of a client. From the theft on, the thief has others.
struct Stolen {
    rng: SimRng,
    is_over: Arc<AtomicBool>,
}

impl TryRng for Stolen {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.rng.next_u32() ^ u32::from(self.is_over.load(Relaxed)))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.rng.next_u64() ^ u64::from(self.is_over.load(Relaxed)))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.rng.fill_bytes(bytes);
        let change = u8::from(self.is_over.load(Relaxed));
        bytes.iter_mut().for_each(|byte| *byte ^= change);
        Ok(())
    }
}

impl TryCryptoRng for Stolen {}

/// The thief has the whole state of the client at one moment, and hears everything that the server sends it.
#[test]
fn whoever_steals_the_keys_of_a_session_reads_for_two_minutes_at_most() {
    let path = LinkConfig::with_rtt(ms(40));
    let session = SessionConfig::default();
    for seed in 1..=2 {
        let mut world = World::new(seed, &server_config(&session, SUITE));
        world.taps = true;
        let is_over = Arc::new(AtomicBool::new(false));
        let config = ClientConfig { session: session.clone(), ..client_config(SUITE) };
        let rng = Stolen { rng: random(seed, 2000), is_over: is_over.clone() };
        let mut thief = Client::new(&config, rng).unwrap();
        thief.connect(world.now, &[server_address()]).unwrap();
        thief.silence(world.now);
        world.add(&path, &path, &session, client_config(SUITE));
        let (start, mut heard, mut read) = (world.now, 0, Vec::new());
        for tenth in 0..1500_u32 {
            if tenth == 300 {
                is_over.store(true, Relaxed);
            }
            if world.is_up() {
                world.session().send_datagram(&tenth.to_le_bytes()).unwrap();
            }
            for _ in 0..20 {
                world.run(5);
                let now = world.now;
                while let Some((left, from, _, bytes)) = world.tap.get(heard)
                    && *left + ms(20) <= now
                {
                    if *from == server_address() {
                        thief.give(now, server_address(), bytes);
                    }
                    heard += 1;
                }
                thief.silence(now);
                while thief.poll_event().is_some() {}
                if let Some(stolen) = thief.connection_mut() {
                    while let Some(datagram) = stolen.recv_datagram() {
                        read.push(u32::from_le_bytes(datagram[..].try_into().unwrap()));
                    }
                }
            }
        }
        assert!(world.now.since(start) >= ms(149_000) && world.client().stats().key_updates == 1);
        let before = read.iter().filter(|tenth| (300..1100).contains(*tenth)).count();
        assert!(before >= 799, "the thief has the keys: {before}");
        let last = read.last().unwrap();
        assert!(*last < 1215, "seed {seed}: the thief read what was sent after {last} tenths of a second");
    }
}

/// What a thief must do with its machine's datagrams: nothing.
trait Silent {
    fn silence(&mut self, now: Time);
}

impl Silent for Client {
    fn silence(&mut self, now: Time) {
        self.handle_timeout(now);
        let mut buf = Vec::new();
        while self.poll_transmit(now, &mut buf).is_some() {
            buf.clear();
        }
    }
}

/// Whatever a peer without keys sends, it is counted, and nothing is computed or kept for it.
#[test]
fn halves_of_keys_that_nobody_asked_for_are_counted() {
    let mut world = open_server(ServerConfig::insecure(SessionConfig::default()));
    let mut rogue = Rogue::connect(&mut world, 1).unwrap();
    let memory = world.session().memory();
    for phase in 0..1000 {
        rogue.send(&mut world, &[Frame::Rekey(RekeyFrame { phase: Seq16(phase), half: [9; 32] })]);
    }
    let stats = world.session().stats();
    assert_eq!(stats.rekeys_refused, 1000);
    assert!(stats.memory <= memory + 300 && world.session().is_connected());
}

/// A client may update its key alone as often as it likes, but that earns it no more exchanges.
#[test]
fn a_server_computes_one_half_a_second_at_most() {
    let cipher = Cipher::ChaChaPoly;
    let ends = [Keys::of_client(cipher, [1; 32], [2; 32]), Keys::of_server(cipher, [1; 32], [2; 32])];
    let [mut client, mut server] = ends.map(|keys| Seal::new(Time::ZERO, keys));
    let pass = |from: &mut Seal, sealed_at, to: &mut Seal, now| {
        let mut datagram = Vec::new();
        Seal::begin(&mut datagram);
        from.seal(sealed_at, 1, &mut datagram, 0).unwrap();
        to.open(now, &mut datagram).unwrap();
    };
    let mut computed = 0;
    for ms in (1000..11_000).step_by(10) {
        let now = Time::from_millis(ms);
        client.draw(Time::ZERO, &[3; 32]);
        server.on_half(now, &client.half().unwrap());
        if server.wants_random() {
            server.draw(now, &[4; 32]);
            computed += 1;
        }
        pass(&mut client, Time::from_millis(100_000), &mut server, now); // it hears no answer
        pass(&mut server, now, &mut client, now);
    }
    assert_eq!((client.updates().0, computed), (1000, 10));
}

/// A session whose server is not heard sends only a ping every 500 ms, so the half would be late if it rode on every second one.
#[test]
fn an_unanswered_half_rides_on_every_packet_of_a_session_that_rests() {
    let path = LinkConfig::with_rtt(ms(40));
    let mut world = World::pair(1, &path, &SessionConfig::default(), SUITE);
    world.connect();
    world.run(119_000);
    world.set_links(0, &path, &LinkConfig { loss: whitewater_sim::Loss::Random(1.0), ..path.clone() });
    world.taps = true;
    world.run(11_000);
    let lens = world.tap.iter().filter(|(_, _, to, _)| *to == server_address()).map(|(.., sent)| sent.len());
    let lens: Vec<_> = lens.skip_while(|len| *len < 60).collect();
    println!("{lens:?}");
    assert!(lens.len() >= 15 && lens.iter().all(|len| *len >= 60), "{lens:?}");
}

/// All clients stood still for a while, and speak in the same moment. A server computes 100 halves at once.
#[test]
fn clients_that_want_new_keys_at_once_get_them_one_after_the_other() {
    let session = SessionConfig { keepalive: ms(10_000), timeout: ms(40_000), ..SessionConfig::default() };
    let config =
        ServerConfig { accepts_per_second: 1000, accept_burst: 1000, ..server_config(&session, SUITE) };
    let mut world = World::new(1, &config);
    let path = LinkConfig::with_rtt(ms(40));
    for _ in 0..250 {
        world.add(&path, &path, &session, client_config(SUITE));
    }
    world.run(94_000);
    assert_eq!(world.sessions.len(), 250);
    world.clients.iter_mut().for_each(|client| client.frozen = true);
    world.run(30_000);
    world.clients.iter_mut().for_each(|client| client.frozen = false);
    let mut renewed = Vec::new();
    for _ in 0..45 {
        for client in &mut world.clients {
            client.session.connection_mut().unwrap().send(on(0), &[1]).unwrap();
        }
        world.run(1000);
        let clients = world.clients.iter().map(|client| client.session.connection().unwrap());
        renewed.push(clients.filter(|client| client.stats().key_updates > 0).count());
    }
    assert_eq!(renewed.last(), Some(&250), "{renewed:?}");
    let at_once = renewed.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!((100..=160).contains(&at_once.unwrap()), "{renewed:?}");
}

/// With new keys each second: no packet is later than the path, without loss.
#[test]
fn new_keys_delay_no_message() {
    let session = SessionConfig { key_update: 64, ..SessionConfig::default() };
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(60)), &session, SUITE);
    world.connect();
    let mut latest = [0, 0];
    for _ in 0..1000 {
        let sent = world.now;
        let stamp = sent.as_millis().to_le_bytes();
        world.client().send_datagram(&stamp).unwrap();
        world.session().send_datagram(&stamp).unwrap();
        world.client().send(on(0), &[1; 1100]).unwrap(); // a frame that leaves no room for a half
        for _ in 0..16 {
            world.run(1);
            let now = world.now.as_millis();
            let came = [world.session().recv_datagram(), world.client().recv_datagram()];
            for (latest, came) in latest.iter_mut().zip(came) {
                let sent = came.map(|came| u64::from_le_bytes(came[..].try_into().unwrap()));
                *latest = sent.map_or(*latest, |sent| (now - sent).max(*latest));
            }
            while world.session().recv(on(0)).is_some() {}
        }
    }
    let updates = [world.client().stats().key_updates, world.session().stats().key_updates];
    assert!(updates.iter().all(|updates| *updates >= 12), "{updates:?}");
    assert!(latest.iter().all(|latest| (30..=32).contains(latest)), "{latest:?}");
    let refused = [world.client().stats(), world.session().stats()]
        .map(|stats| stats.refused().map(|(_, count)| count).sum::<u64>());
    assert_eq!(refused, [0, 0]);
}

/// On a bad path, while the client changes its address, and with a close at any point of an exchange. Messages take as
/// long as without exchanges.
#[test]
fn new_keys_survive_loss_reordering_a_move_and_a_close() {
    let mut latest = [0, 0];
    for seed in 1..=12 {
        let (with, mut world) = on_a_bad_path(seed, 64);
        latest = [latest[0] + with, latest[1] + on_a_bad_path(seed, 1 << 20).0];
        let [client, server] = [world.client().stats(), world.session().stats()];
        assert!(
            client.key_updates >= 2 && server.key_updates + 1 >= client.key_updates,
            "seed {seed}: {} {}",
            client.key_updates,
            server.key_updates
        );
        assert_eq!(client.rejected.forged + server.rejected.forged, 0, "seed {seed}");
        assert_eq!(client.rekeys_refused + server.rekeys_refused, 0, "seed {seed}");
        world.run(40 * seed);
        let now = world.now;
        world.clients[0].session.close(now, 7);
        world.run(8000);
        assert_eq!(world.clients[0].closed(), Some(CloseReason::Local(7)), "seed {seed}");
        assert_eq!(world.closed(), Some(CloseReason::Peer(7)), "seed {seed}");
    }
    let [with, without] = latest.map(|sum| sum / 12);
    assert!(
        with <= without + without / 10,
        "the latest message takes {with} ms, {without} without exchanges"
    );
}

/// How long the latest of 200 messages took, ms, with an exchange after so many packets.
#[expect(clippy::unwrap_used, reason = "a test that panics has found something")]
fn on_a_bad_path(seed: u64, key_update: u32) -> (u64, World) {
    let session = SessionConfig { key_update, ..SessionConfig::default() };
    let bad = LinkConfig {
        loss: whitewater_sim::Loss::Random(0.2),
        jitter: ms(100),
        in_order: false,
        ..LinkConfig::with_rtt(ms(300))
    };
    let mut world = World::pair(seed, &bad, &session, SUITE);
    world.connect();
    let (mut came, mut latest) = (0, 0);
    let mut hear = |world: &mut World| {
        while let Some(stamp) = world.session().recv(on(0)) {
            let sent = u64::from_le_bytes(stamp[..].try_into().unwrap());
            latest = latest.max(world.now.as_millis() - sent);
            came += 1;
        }
        came == 200
    };
    for number in 0..200 {
        let stamp = world.now.as_millis().to_le_bytes();
        world.client().send(on(0), &stamp).unwrap();
        world.session().send_datagram(&stamp).unwrap();
        if number == 50 + seed {
            world.rebind(0, common::sessions::client_address(1, 2000));
        }
        world.run(33);
        hear(&mut world);
        while world.client().recv_datagram().is_some() {}
    }
    assert!(world.run_until(10_000, hear), "seed {seed}");
    (latest, world)
}
