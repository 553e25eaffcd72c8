//! kcptun as the peer of our tokio streams.

use interop::exchange::CONV;
use interop::kcptun::{self, Case};
use interop::{PATIENCE, cases, smux, tcp};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use whitewater::kcp::Conv;
use whitewater::tokio::{KcpListener, KcpStream};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[test]
fn tcp_through_their_client_is_echoed_by_our_stream() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&["salsa20"]), |case| {
        let runtime = runtime();
        let listener = runtime.block_on(async { KcpListener::bind(ANY, &case.limits()).unwrap() });
        let relay = case.relay(listener.local_addr());
        runtime.spawn(async move {
            let (mut from, mut to) = listener.accept().await.unwrap().0.into_split();
            tokio::io::copy(&mut from, &mut to).await
        });
        let (mut client, address) = kcptun::client(relay.address, case);
        let sent = case.random();
        assert!(tcp::ask(address, &sent) == sent, "something else came back");
        format!("theirs {}", case.theirs(&mut client))
    });
}

#[test]
fn a_stream_of_smux_from_our_stream_is_echoed_through_their_server() {
    if !kcptun::is_there() {
        return;
    }
    cases::run(&Case::all(&["salsa20"]), |case| {
        let target = tcp::Echo::start();
        let (mut server, address) = kcptun::server(target.address, case);
        let (relay, sent) = (case.relay(address), case.random());
        let back = runtime().block_on(async { timeout(PATIENCE, ask(case, relay.address, &sent)).await });
        assert!(back.expect("in time") == sent, "something else came back");
        format!("theirs {}", case.theirs(&mut server))
    });
}

async fn ask(case: &Case, server: SocketAddr, sent: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind(ANY).unwrap();
    socket.connect(server).unwrap();
    let (mut from, mut to) = KcpStream::from_socket(socket, Conv(CONV), &case.limits()).unwrap().into_split();
    let write = async {
        to.write_all(&smux::syn()).await.unwrap();
        for piece in sent.chunks(4000) {
            to.write_all(&smux::psh(piece)).await.unwrap();
        }
    };
    let read = async {
        let (mut reader, mut buf) = (smux::Reader::default(), vec![0; 1 << 16]);
        while reader.payload.len() < sent.len() {
            let len = from.read(&mut buf).await.unwrap();
            reader.take(&buf[..len]);
        }
        reader.payload
    };
    let back = tokio::join!(write, read).1;
    to.write_all(&smux::fin()).await.unwrap();
    to.shutdown().await.unwrap(); // waits until everything is acknowledged
    back
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}
