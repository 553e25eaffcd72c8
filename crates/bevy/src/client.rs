//! A client as a resource, which connects again by itself.

mod link;
mod reconnect;

use crate::event::{Received, SessionEvent};
use crate::{Reading, WhitewaterSystems};
use bevy::ecs::system::ScheduleSystem;
use bevy::platform::time::Instant;
use bevy::prelude::*;
use link::{ConnectError, Link, To};
pub use reconnect::Reconnect;
use reconnect::Retry;
use std::collections::VecDeque;
#[cfg(not(target_arch = "wasm32"))]
use std::{io, net::ToSocketAddrs};
#[cfg(not(target_arch = "wasm32"))]
use whitewater::SessionConfig;
use whitewater::message::Payload;
use whitewater::session::Connection;
use whitewater::session::token::PublicToken;
use whitewater::{Channel, ClientConfig, Event};

/// The client of the app: insert it to connect, remove it to leave. All methods of the client that it drives are there; the plugin pumps
/// it. That is [`whitewater::Client`], and in a browser `whitewater_web::Client`.
///
/// A client that the server sends to another one, with a [redirect](whitewater::Server::redirect), goes there; the app sees the events. In a browser it
/// does not, because the URL of the other server is not in the token.
#[derive(Debug, Deref, DerefMut, Resource)]
pub struct WhitewaterClient {
    #[deref]
    link: Link,
    to: To,
    config: ClientConfig,
    policy: Option<Reconnect>,
    retry: Option<Retry>,
    /// How many attempts have failed since the session was last up.
    failed: u32,
    /// Whether something has arrived in this frame.
    has_arrivals: bool,
}

impl WhitewaterClient {
    /// Starts to connect to a server, by its address; see [`whitewater::Client::connect`].
    ///
    /// # Errors
    ///
    /// Those of [`whitewater::Client::connect`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn connect(addr: impl ToSocketAddrs, config: &ClientConfig) -> io::Result<Self> {
        Self::to(addr.to_socket_addrs()?.collect(), config)
    }

    /// Starts to connect to a server, by its URL; see [`whitewater_web::Client::connect`].
    ///
    /// # Errors
    ///
    /// Those of [`whitewater_web::Client::connect`].
    #[cfg(target_arch = "wasm32")]
    pub fn connect(
        to: &whitewater_web::Target,
        config: &ClientConfig,
    ) -> Result<Self, whitewater_web::ConnectError> {
        Self::to(to.clone(), config)
    }

    /// Starts to connect with a connect token, which has the addresses of the server.
    ///
    /// # Errors
    ///
    /// The settings of the session do not suit the token, or there is no socket.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn with_token(token: &PublicToken, session: SessionConfig) -> io::Result<Self> {
        Self::to(token.addresses.clone(), &ClientConfig::token(session, token))
    }

    fn to(to: To, config: &ClientConfig) -> Result<Self, ConnectError> {
        let link = link::open(&to, config)?;
        Ok(Self {
            link,
            to,
            config: config.clone(),
            policy: None,
            retry: None,
            failed: 0,
            has_arrivals: false,
        })
    }

    /// Connects again when the session is lost.
    #[must_use]
    pub fn reconnecting(self, policy: Reconnect) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// Whether it will connect again, or is about to.
    #[must_use]
    pub const fn is_reconnecting(&self) -> bool {
        self.retry.is_some()
    }

    /// The session, if it has been up.
    pub(crate) fn with_connection(&mut self, f: impl FnOnce(Option<&mut Connection>)) {
        link::with_connection(&mut self.link, f);
    }

    /// Connects once more, with the next token if the server wants one. Returns whether there was one.
    fn connect_again(&mut self, tokens: &mut Tokens) -> bool {
        let mut config = ClientConfig { ticket: self.ticket().to_vec(), ..self.config.clone() };
        if config.token.is_some() {
            let Some(token) = tokens.0.pop_front() else { return false };
            config = ClientConfig { ticket: config.ticket, ..by_token(&self.config, &token) };
            #[cfg(not(target_arch = "wasm32"))] // a browser's client has the URL of its server
            self.to.clone_from(&token.addresses);
        }
        match link::open(&self.to, &config) {
            Ok(link) => (self.link, self.config, self.retry) = (link, config, None),
            Err(error) => {
                warn!("cannot connect again: {error}");
                self.lost(Instant::now());
            }
        }
        true
    }

    /// The session is lost, or an attempt has failed: when to try again.
    fn lost(&mut self, now: Instant) {
        self.retry =
            self.policy.and_then(|policy| policy.after(self.failed)).map(|wait| Retry::at(now + wait));
        self.failed += 1;
    }

    fn handle_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Connected => self.failed = 0,
            Event::Closed { reason, .. } if self.policy.is_some_and(|policy| policy.is_for(reason)) => {
                self.lost(now)
            }
            _ => {}
        }
    }
}

/// The settings of a client with another token.
fn by_token(config: &ClientConfig, token: &PublicToken) -> ClientConfig {
    let mine = ClientConfig::token(config.session.clone(), token);
    ClientConfig { user: config.user.clone(), hello: config.hello, deadline: config.deadline, ..mine }
}

/// Connect tokens for a client that connects again: each serves once. Push what your matchmaker gives you; [`TokenWanted`] says when.
#[derive(Debug, Default, Deref, DerefMut, Resource)]
#[expect(clippy::exhaustive_structs, reason = "a queue with a name")]
pub struct Tokens(pub VecDeque<PublicToken>);

/// The client would connect again, and needs a token: push one to [`Tokens`].
#[derive(Clone, Copy, Debug, Message)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing else to say")]
pub struct TokenWanted;

/// Drives a [`WhitewaterClient`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plugin without settings")]
pub struct WhitewaterClientPlugin;

impl Plugin for WhitewaterClientPlugin {
    fn build(&self, app: &mut App) {
        app.add_message::<SessionEvent>()
            .add_message::<TokenWanted>()
            .init_resource::<Tokens>()
            .add_systems(
                PreUpdate,
                (reconnect, pump)
                    .chain()
                    .run_if(resource_exists::<WhitewaterClient>)
                    .in_set(WhitewaterSystems::Receive),
            )
            .add_systems(
                PostUpdate,
                send.run_if(resource_exists::<WhitewaterClient>).in_set(WhitewaterSystems::Send),
            );
        #[cfg(not(target_arch = "wasm32"))]
        app.add_systems(
            PreUpdate,
            follow
                .run_if(resource_exists::<WhitewaterClient>)
                .after(pump)
                .after(Reading)
                .in_set(WhitewaterSystems::Receive),
        );
    }
}

fn reconnect(
    mut client: ResMut<'_, WhitewaterClient>,
    mut tokens: ResMut<'_, Tokens>,
    mut wanted: MessageWriter<'_, TokenWanted>,
) {
    let Some(mut retry) = client.retry else { return };
    if retry.is_due(Instant::now()) && !client.connect_again(&mut tokens) {
        if !retry.has_asked {
            wanted.write(TokenWanted);
        }
        retry.has_asked = true;
        client.retry = Some(retry);
    }
}

fn pump(mut client: ResMut<'_, WhitewaterClient>, mut happened: MessageWriter<'_, SessionEvent>) {
    if let Err(error) = link::pump(&mut client.link) {
        error_once!("the client's socket fails: {error}"); // what is due was done anyway
    }
    client.has_arrivals = false;
    while let Some(event) = client.poll_event() {
        client.handle_event(event, Instant::now());
        client.has_arrivals |= matches!(event, Event::Readable | Event::Redirected | Event::Closed { .. });
        let mut text = String::new();
        if let Event::Closed { .. } = event {
            client.with_connection(|connection| text.extend(connection.map(|ended| ended.close_text())));
        }
        if event != Event::Readable {
            happened.write(SessionEvent { client: None, event, text });
        }
        #[cfg(not(target_arch = "wasm32"))]
        if event == Event::Redirected {
            break; // we are about to go, once what has arrived is read
        }
    }
}

/// Has the messages of a channel written once they are there.
pub(crate) fn receive<P>(app: &mut App, channel: Channel<P>)
where
    P: Payload<Received: Send + Sync> + ?Sized + 'static,
{
    let read = move |mut client: ResMut<'_, WhitewaterClient>,
                     mut received: MessageWriter<'_, Received<P>>| {
        client.with_connection(|connection| {
            let Some(connection) = connection else { return };
            while let Some(message) = connection.recv(channel) {
                received.write(Received { client: None, channel: channel.number(), message });
            }
        });
    };
    add_reader(app, read);
}

/// Adds a system that reads from the session.
pub(crate) fn add_reader<M>(app: &mut App, read: impl IntoScheduleConfigs<ScheduleSystem, M>) {
    let has_arrivals =
        |client: Option<Res<'_, WhitewaterClient>>| client.is_some_and(|client| client.has_arrivals);
    app.add_systems(
        PreUpdate,
        read.run_if(has_arrivals).after(pump).in_set(Reading).in_set(WhitewaterSystems::Receive),
    );
}

/// Goes to the server that this one sends us to.
#[cfg(not(target_arch = "wasm32"))]
fn follow(mut client: ResMut<'_, WhitewaterClient>) {
    let Some(token) = client.take_redirect() else { return };
    let gone = PublicToken::decode(&token).map_err(io::Error::other).and_then(|token| {
        let config = by_token(&client.config, &token);
        Ok((link::open(&token.addresses, &config)?, config, token.addresses))
    });
    match gone {
        Ok((link, config, to)) => {
            (client.link, client.config, client.to) = (link, config, to);
            (client.retry, client.failed) = (None, 0);
        }
        Err(error) => warn!("cannot go where the server sends us: {error}"),
    }
}

fn send(mut client: ResMut<'_, WhitewaterClient>) {
    client.flush();
}
