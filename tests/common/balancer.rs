//! UDP load balancers that hash the client's address, run by the user that runs the tests.

#![allow(dead_code, reason = "each test binary uses its part")]

use super::daemon::{Daemon, Directory};
use super::{envoy, nginx};
use std::net::{SocketAddr, UdpSocket};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Nginx,
    Envoy,
}

/// Runs until it is dropped.
pub(crate) struct Balancer {
    kind: Kind,
    pub(crate) address: SocketAddr,
    forget: u8,
    pub(crate) daemon: Option<Daemon>,
    directory: Directory,
}

impl Balancer {
    /// Puts it before these servers, at the first one's address. `forget`: after how many seconds it drops a silent client. `None`: it is not installed.
    pub(crate) fn start(kind: Kind, servers: &[SocketAddr], forget: u8) -> Option<Self> {
        let is_there = match kind {
            Kind::Nginx => nginx::is_there(),
            Kind::Envoy => envoy::is_there(),
        };
        let address = UdpSocket::bind((servers[0].ip(), 0)).unwrap().local_addr().unwrap();
        let mut balancer = Self { kind, address, forget, daemon: None, directory: Directory::new() };
        is_there.then(|| {
            balancer.restart(servers);
            balancer
        })
    }

    /// Restarts it as after a crash, without any of its state, before these servers.
    pub(crate) fn restart(&mut self, servers: &[SocketAddr]) {
        self.daemon = None;
        let Self { directory, address, forget, .. } = self;
        let mut command = match self.kind {
            Kind::Nginx => nginx::command(directory, &nginx::balancer(*address, servers, *forget)),
            Kind::Envoy => envoy::command(directory, &envoy::balancer(*address, servers, *forget)),
        };
        self.daemon = Some(Daemon::start(&mut command, &self.directory));
    }
}

/// Whether it accepts a configuration. `None`: it is not installed.
pub(crate) fn takes(kind: Kind, config: &str) -> Option<bool> {
    match kind {
        Kind::Nginx => nginx::is_there().then(|| nginx::is_valid(config)),
        Kind::Envoy => envoy::is_there().then(|| envoy::is_valid(config)),
    }
}
