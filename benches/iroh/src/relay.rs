use crate::Result;
use iroh_relay::server::{CertConfig, QuicConfig, RelayConfig, Server, ServerConfig, TlsConfig, testing};
use std::net::SocketAddr;

/// Relays until it is killed. An endpoint learns its address by QUIC, which needs TLS and so a certificate.
pub(crate) async fn run(address: &str) -> Result<()> {
    let address: SocketAddr = address.parse()?;
    let (_, server_config) = testing::self_signed_tls_certs_and_config();
    // Without TLS it only answers whether the internet is there, for which no endpoint asks here.
    let mut relay = RelayConfig::new((address.ip(), 0));
    relay.tls = Some(TlsConfig::new(address, CertConfig::Manual { server_config }));
    let mut config = ServerConfig::default();
    config.relay = Some(relay);
    config.quic = Some(QuicConfig::new(address));
    let mut server = Server::spawn(config).await?;
    println!("https://{address}");
    server.join().await??;
    Ok(())
}
