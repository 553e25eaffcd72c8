//! A QUIC stream by quinn between two namespaces.

use super::PORT;
use super::spaces::SERVER;
use crate::runtime::quic::{Quic, configs};
use quinn::congestion::BbrConfig;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Of both ends, which know each other.
pub(super) struct Configs(ServerConfig, ClientConfig);

impl Configs {
    /// As by default, or with BBR.
    pub(super) fn new(bbr: bool) -> Self {
        let mut transport = TransportConfig::default();
        if bbr {
            transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        let (server, client) = configs(&Arc::new(transport));
        Self(server, client)
    }
}

pub(super) async fn connect(Configs(_, config): &Configs) -> Quic {
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).expect("a port");
    let connecting = endpoint.connect_with(config.clone(), (SERVER, PORT).into(), "localhost");
    let connection = connecting.expect("a config").await.expect("a server");
    let (send, receive) = connection.open_bi().await.expect("a stream");
    Quic::new(send, receive, connection, endpoint)
}

pub(super) async fn accept(Configs(config, _): &Configs, ready: impl FnOnce()) -> Quic {
    let endpoint = Endpoint::server(config.clone(), (SERVER, PORT).into()).expect("a port");
    ready();
    let connection = endpoint.accept().await.expect("a client").await.expect("a connection");
    let (send, receive) = connection.accept_bi().await.expect("a stream");
    Quic::new(send, receive, connection, endpoint)
}
