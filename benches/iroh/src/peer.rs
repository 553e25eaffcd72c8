//! What host and guest have in common.

use crate::Result;
use iroh::endpoint::{Connection, PortmapperConfig, presets};
use iroh::tls::CaTlsConfig;
use iroh::{Endpoint, EndpointAddr, RelayConfig, RelayMode, RelayUrl, TransportAddr};
use iroh_relay::RelayQuicConfig;
use n0_future::StreamExt;

pub(crate) const ALPN: &[u8] = b"iroh-peer";

/// An endpoint that is at the relay.
pub(crate) async fn online(relay: &str) -> Result<Endpoint> {
    let url: RelayUrl = relay.parse()?;
    let port = url.port().ok_or("the relay's URL has no port")?;
    let relay = RelayConfig::new(url, Some(RelayQuicConfig::new(port)));
    let endpoint = Endpoint::builder(presets::Minimal)
        .relay_mode(RelayMode::Custom(relay.into()))
        .ca_tls_config(CaTlsConfig::insecure_skip_verify())
        .portmapper_config(PortmapperConfig::Disabled)
        .alpns(vec![ALPN.to_vec()])
        .bind()
        .await?;
    endpoint.online().await;
    Ok(endpoint)
}

pub(crate) fn to_line(address: &EndpointAddr) -> String {
    let relays = address.relay_urls().map(ToString::to_string);
    let direct = address.ip_addrs().map(ToString::to_string);
    [address.id.to_string()].into_iter().chain(relays).chain(direct).collect::<Vec<_>>().join(" ")
}

pub(crate) fn from_line(line: &str) -> Result<EndpointAddr> {
    let mut words = line.split_whitespace();
    let id = words.next().ok_or("the host's line is empty")?.parse()?;
    let addresses = words.map(|word| match word.parse() {
        Ok(address) => Ok(TransportAddr::Ip(address)),
        Err(_) => word.parse().map(TransportAddr::Relay),
    });
    Ok(EndpointAddr::from_parts(id, addresses.collect::<std::result::Result<Vec<_>, _>>()?))
}

/// Waits until this end sends on a direct path.
pub(crate) async fn direct(connection: &Connection) -> Result<()> {
    let mut all = connection.paths_stream();
    while let Some(paths) = all.next().await {
        if paths.iter().any(|path| path.is_selected() && path.is_ip()) {
            return Ok(());
        }
    }
    Err("closed before there was a direct path".into())
}
