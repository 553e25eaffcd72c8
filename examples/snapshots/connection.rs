//! One end of the packet exchange: a socket and an endpoint. Both server and client have one.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::packet::{Endpoint, PacketConfig, PacketSendError, PacketStats, Seq16};

pub(crate) struct Connection {
    socket: UdpSocket,
    endpoint: Endpoint<DatagramQueue>,
    buf: [u8; 2048],
}

impl Connection {
    /// Only exchanges packets with `peer`.
    pub(crate) fn new(socket: UdpSocket, peer: SocketAddr) -> io::Result<Self> {
        socket.connect(peer)?;
        socket.set_nonblocking(true)?;
        // Both ends have the same id: choose your own. Datagrams of other programs are refused.
        let config = PacketConfig { protocol_id: 0x736e_6170, ..PacketConfig::default() };
        let endpoint = Endpoint::new(&config, DatagramQueue::new()).map_err(io::Error::other)?;
        Ok(Self { socket, endpoint, buf: [0; 2048] })
    }

    /// Reads everything that has arrived. A packet whose payload `take` refuses is not acknowledged.
    pub(crate) fn receive(&mut self, now: Time, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        loop {
            match self.socket.recv(&mut self.buf) {
                // Damaged, late and duplicate datagrams change nothing and are counted in `PacketStats::rejected`.
                Ok(len) => {
                    let _ = self.endpoint.receive_if(now, self.buf.get(..len).unwrap_or_default(), &mut take);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {} // the peer is not there yet, or no longer
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a packet and returns its number. [`pop_acked`](Self::pop_acked) returns the number when it has arrived.
    pub(crate) fn send(&mut self, now: Time, payload: &[u8]) -> Result<Seq16, PacketSendError> {
        let sequence = self.endpoint.send(now, payload)?;
        self.flush();
        Ok(sequence)
    }

    /// Lets time pass. If nothing is sent, a keepalive acknowledges what has arrived.
    pub(crate) fn update(&mut self, now: Time) {
        self.endpoint.update(now);
        self.flush();
    }

    /// Returns the number of a packet that has arrived at the peer.
    pub(crate) fn pop_acked(&mut self) -> Option<Seq16> {
        self.endpoint.pop_acked()
    }

    pub(crate) fn stats(&self) -> PacketStats {
        self.endpoint.stats()
    }

    fn flush(&mut self) {
        while let Some(datagram) = self.endpoint.output_mut().pop() {
            let _ = self.socket.send(datagram); // a datagram that cannot be sent is lost
        }
    }
}
