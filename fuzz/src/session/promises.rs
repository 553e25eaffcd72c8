//! What a session promises, whatever arrives.

use super::flow::Flow;
use super::world::{CLIENT, SERVER, World, session_config};
use std::collections::VecDeque;
use std::net::SocketAddr;
use whitewater::session::{ClientState, Connection};
use whitewater::{CloseReason, Event};

impl World {
    /// Checks the logs of both ends.
    pub(super) fn check_logs(&mut self) {
        let Some(mut books) = self.books.take() else { return };
        for (end, book) in books.iter_mut().enumerate() {
            if let Some(connection) = self.connection(end) {
                book.check(connection);
            }
        }
        self.books = Some(books);
    }

    /// An unproven address never gets more bytes than it sent.
    pub(super) fn check_sent(&mut self, to: SocketAddr, len: usize) {
        self.proven.extend(self.session.and_then(|id| Some(self.server.connection(id)?.peer_addr())));
        if !self.proven.contains(&to) {
            let (received, sent) = self.account.entry(to).or_default();
            *sent += len;
            assert!(*sent <= *received, "{sent} bytes to {to}, which sent {received}");
        }
    }

    /// Notes which ends have received something.
    pub(super) fn listen(&mut self) {
        let received = |connection: &Connection| connection.stats().received + 1;
        let client = self.client.connection().map_or(0, received);
        let server = self.session.and_then(|id| self.server.connection(id)).map_or(0, received);
        for (heard, count) in self.heard.iter_mut().zip([client, server]) {
            if heard.1 < count {
                *heard = (self.now, count);
            }
        }
    }

    pub(super) fn take_events(&mut self) {
        while let Some((id, event)) = self.server.poll_event() {
            if event == Event::Connected {
                assert!(self.session.replace(id).is_none(), "it connects once");
                self.listen();
            }
            assert_eq!(self.session, Some(id), "an event of a session that is not up");
            self.check_event(SERVER, event);
        }
        while let Some(event) = self.client.poll_event() {
            self.check_event(CLIENT, event);
        }
    }

    pub(super) fn check_event(&mut self, end: usize, event: Event) {
        assert!(!self.closed[end], "{event:?} after the end");
        if let Event::Closed { reason, .. } = event {
            self.closed[end] = true;
            if reason == CloseReason::ServerForgot {
                let is_there = self.session.is_some_and(|id| self.server.connection(id).is_some());
                return assert!(end == CLIENT && !is_there, "a server does not reset a session that it has");
            }
            let silent = self.now.since(self.heard[end].0) >= session_config(0).timeout;
            self.licences[end].check(reason, &self.licences[1 - end], silent, self.now);
        }
    }

    pub(super) fn check_memory(&self) {
        let held = (self.live)().saturating_sub(self.baseline);
        assert!(held <= MEMORY, "{held} bytes");
    }

    /// Lets the path be honest, and then dead: everything sent arrives, and then both ends close.
    pub(super) fn finish(mut self) {
        let is_up = |world: &Self| {
            let server = world
                .session
                .and_then(|id| world.server.connection(id))
                .is_some_and(Connection::is_connected);
            server && world.client.state() == ClientState::Up
        };
        if !self.meddled && !self.stuck && is_up(&self) {
            for _ in 0..300 {
                self.good(100);
                self.take(CLIENT);
                self.take(SERVER);
                if self.flows.iter().all(Flow::is_through) {
                    break;
                }
            }
            let through = self.flows.iter().all(Flow::is_through);
            assert!(through || !is_up(&self), "not delivered: {:?}", self.flows);
        }
        for _ in 0..25 {
            self.under_way.iter_mut().for_each(VecDeque::clear);
            self.wait(1000);
        }
        assert_eq!(self.client.state(), ClientState::Closed);
        assert!(self.server.is_empty(), "the server has a session");
        assert_eq!(self.closed, [true, self.session.is_some()]);
        self.check_memory();
    }
}

/// Bytes that both ends may hold, including everything passed to them and the harness.
const MEMORY: usize = 4 << 20;
