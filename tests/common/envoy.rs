//! Envoy as a UDP load balancer. It is the `envoy` that `ENVOY` names, that of the interpreter that `WHITEWATER_PYTHON` names, or the one in the path.
//! tests/common/requirements.txt has a package of it.

#![allow(dead_code, reason = "each test binary uses its part")]

use super::daemon::{self, Directory};
use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn is_there() -> bool {
    daemon::is_there(&program(), "--version")
}

fn program() -> PathBuf {
    let beside_python = || {
        let python = PathBuf::from(env::var_os("WHITEWATER_PYTHON")?);
        Some(python.with_file_name("envoy")).filter(|file| file.exists())
    };
    env::var_os("ENVOY").map(PathBuf::from).or_else(beside_python).unwrap_or_else(|| "envoy".into())
}

pub(crate) fn is_valid(config: &str) -> bool {
    let directory = Directory::new();
    let output = command(&directory, config).args(["--mode", "validate"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// It has one thread for datagrams.
pub(crate) fn command(directory: &Directory, config: &str) -> Command {
    let mut command = Command::new(program());
    command.arg("-c").arg(directory.write("envoy.yaml", config));
    command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]);
    command
}

/// `forget` is its `idle_timeout`, in seconds. A server is there as long as TCP connects to its port.
pub(crate) fn balancer(address: SocketAddr, servers: &[SocketAddr], forget: u8) -> String {
    let address = format!("address: {}, port_value: {}", address.ip(), address.port());
    let server = |server: &SocketAddr| {
        format!(
            "
        - endpoint: {{ address: {{ socket_address: {{ protocol: UDP, address: {}, port_value: {} }} }} }}",
            server.ip(),
            server.port()
        )
    };
    let servers: String = servers.iter().map(server).collect();
    format!(
        "static_resources:
  listeners:
  - name: game
    address: {{ socket_address: {{ protocol: UDP, {address} }} }}
    listener_filters:
    - name: envoy.filters.udp_listener.udp_proxy
      typed_config:
        '@type': type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig
        stat_prefix: game
        idle_timeout: {forget}s
        hash_policies: [{{ source_ip: true }}]
        matcher:
          on_no_match:
            action:
              name: route
              typed_config:
                '@type': type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route
                cluster: servers
  clusters:
  - name: servers
    type: STATIC
    lb_policy: MAGLEV
    common_lb_config: {{ healthy_panic_threshold: {{ value: 0 }} }}
    health_checks:
    - {{ timeout: 1s, interval: 0.5s, no_traffic_interval: 0.5s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {{}} }}
    load_assignment:
      cluster_name: servers
      endpoints:
      - lb_endpoints:{servers}
"
    )
}
