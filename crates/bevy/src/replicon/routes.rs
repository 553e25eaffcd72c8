//! Which channel of a session carries which channel of replicon.

use bevy_replicon::prelude::{Channel, RepliconChannels};
use bytes::{BufMut, Bytes, BytesMut};
use whitewater::channel::{CHANNELS_MAX, SendError};
use whitewater::session::Connection;
use whitewater::{ChannelConfig, SessionConfig};

/// A session with the channels that replicon wants.
pub trait RepliconSession {
    /// The settings of a session, the same at both ends: the default, with the channels of replicon. Call it after
    /// everything that is replicated has been registered.
    fn session(&self) -> SessionConfig;
}

impl RepliconSession for RepliconChannels {
    fn session(&self) -> SessionConfig {
        let config = |channel: Handle| ChannelConfig { max_message: MESSAGE_MAX, ..channel.config() };
        let channels = Routes::of(self).channels.into_iter().map(config).collect();
        SessionConfig { channels, ..SessionConfig::default() }
    }
}

type Handle = whitewater::Channel;

/// All routes of a session.
#[derive(Debug, Default)]
pub(super) struct Routes {
    channels: Vec<Handle>,
    pub(super) to_clients: Direction,
    pub(super) to_server: Direction,
}

/// The routes in one direction.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// By the numbers of replicon's channels.
    routes: Vec<Route>,
    /// That of messages that are too long to be unreliable.
    long: Option<Handle>,
    /// The channels whose messages begin with the number of replicon's, `long` among them.
    tagged: Vec<Handle>,
}

/// How the messages of one of replicon's channels travel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Route {
    channel: Handle,
    /// Whether several share the channel, so that messages begin with the number of replicon's.
    is_shared: bool,
}

/// The channels of a session that carry one kind.
struct Carriers {
    kind: Channel,
    own: Vec<Handle>,
    shared: Option<Handle>,
}

impl Routes {
    pub(super) fn of(channels: &RepliconChannels) -> Self {
        Self::between(channels.server_channels(), channels.client_channels())
    }

    /// The first of each direction, which are the most urgent, get channels of their own. The n-th of a kind has the same in both directions.
    fn between(to_clients: &[Channel], to_server: &[Channel]) -> Self {
        let mut channels = Vec::new();
        let mut carriers = KINDS.map(|kind| Carriers { kind, own: Vec::new(), shared: None });
        for place in 0..to_clients.len().max(to_server.len()) {
            for wanted in [to_clients, to_server] {
                let Some(kind) = wanted.get(place) else { continue };
                let count = wanted.iter().take(place + 1).filter(|other| *other == kind).count();
                let Some(carriers) = carriers.iter_mut().find(|carriers| carriers.kind == *kind) else {
                    continue;
                };
                if carriers.own.len() < count && channels.len() < CHANNELS_MAX - KINDS.len() {
                    carriers.own.push(open(&mut channels, *kind));
                }
            }
        }
        let has_unreliable = [to_clients, to_server].concat().contains(&Channel::Unreliable);
        for Carriers { kind, own, shared } in &mut carriers {
            let wanted =
                [to_clients, to_server].map(|wanted| wanted.iter().filter(|other| *other == kind).count());
            if wanted.iter().any(|wanted| *wanted > own.len())
                || (has_unreliable && *kind == Channel::Unordered)
            {
                *shared = Some(open(&mut channels, *kind));
            }
        }
        let [to_clients, to_server] = [to_clients, to_server].map(|wanted| Direction::new(wanted, &carriers));
        Self { channels, to_clients, to_server }
    }
}

fn open(channels: &mut Vec<Handle>, kind: Channel) -> Handle {
    let number = u8::try_from(channels.len()).unwrap_or(u8::MAX); // at most 32
    let channel = match kind {
        Channel::Ordered => Handle::ordered(number),
        Channel::Unordered => Handle::unordered(number),
        Channel::Unreliable => Handle::unreliable(number),
    };
    channels.push(channel);
    channel
}

impl Direction {
    fn new(wanted: &[Channel], carriers: &[Carriers]) -> Self {
        let route = |(place, kind): (usize, &Channel)| {
            let count = wanted.iter().take(place).filter(|other| *other == kind).count();
            let carriers = carriers.iter().find(|carriers| carriers.kind == *kind)?;
            let own = carriers.own.get(count).map(|channel| Route { channel: *channel, is_shared: false });
            own.or_else(|| carriers.shared.map(|channel| Route { channel, is_shared: true }))
        };
        let long = carriers.iter().find(|carriers| carriers.kind == Channel::Unordered);
        Self {
            routes: wanted.iter().enumerate().filter_map(route).collect(),
            long: long.and_then(|carriers| carriers.shared),
            tagged: carriers.iter().filter_map(|carriers| carriers.shared).collect(),
        }
    }

    /// Whether the messages of one of replicon's channels all arrive.
    pub(super) fn is_reliable(&self, number: usize) -> bool {
        self.routes.get(number).is_some_and(|route| route.channel.kind().is_reliable())
    }

    /// The longest message of any unreliable channel that fits into a datagram, bytes.
    #[cfg(all(feature = "server", not(target_arch = "wasm32")))]
    pub(super) fn longest_unreliable(&self, connection: &mut Connection) -> usize {
        let longest = self.routes.iter().filter(|route| !route.channel.kind().is_reliable()).map(|route| {
            // A message that no datagram holds is refused, and the error names the limit.
            match connection.send(route.channel, &[0; 1 << 11]) {
                Err(SendError::TooLong { max, .. }) => max - if route.is_shared { TAG_LEN } else { 0 },
                _ => 0,
            }
        });
        longest.min().unwrap_or_default()
    }

    /// Queues a message of one of replicon's channels.
    pub(super) fn send(
        &self,
        connection: &mut Connection,
        number: usize,
        message: &[u8],
    ) -> Result<(), SendError> {
        let Some(Route { channel, is_shared }) = self.routes.get(number) else { return Ok(()) }; // replicon has none but these
        let sent = if *is_shared {
            connection.send(*channel, &tagged(number, message))
        } else {
            connection.send(*channel, message)
        };
        match (sent, self.long) {
            (Err(SendError::TooLong { .. }), Some(long)) if !channel.kind().is_reliable() => {
                connection.send(long, &tagged(number, message))
            }
            (sent, _) => sent,
        }
    }

    /// Passes on what has arrived, with the number of replicon's channel. Returns how many messages were of none of them.
    pub(super) fn receive(&self, connection: &mut Connection, mut deliver: impl FnMut(usize, Bytes)) -> u64 {
        let mut refused = 0;
        for (number, Route { channel, .. }) in
            self.routes.iter().enumerate().filter(|(_, route)| !route.is_shared)
        {
            while let Some(message) = connection.recv(*channel) {
                deliver(number, message);
            }
        }
        for channel in &self.tagged {
            while let Some(mut message) = connection.recv(*channel) {
                match self.untagged(*channel, &mut message) {
                    Some(number) => deliver(number, message),
                    None => refused += 1,
                }
            }
        }
        refused
    }

    /// Takes the number of replicon's channel off a message. `None`: its messages do not travel like this.
    fn untagged(&self, channel: Handle, message: &mut Bytes) -> Option<usize> {
        let (tag, _) = message.split_first_chunk()?;
        let number = usize::from(u16::from_le_bytes(*tag));
        let route = self.routes.get(number)?;
        let is_its_own = route.is_shared && route.channel == channel;
        let is_long = self.long == Some(channel) && !route.channel.kind().is_reliable();
        drop(message.split_to(TAG_LEN));
        (is_its_own || is_long).then_some(number)
    }
}

/// A message with the number of replicon's channel before it.
fn tagged(number: usize, message: &[u8]) -> Bytes {
    let mut tagged = BytesMut::with_capacity(TAG_LEN + message.len());
    tagged.put_u16_le(u16::try_from(number).unwrap_or(u16::MAX)); // which nobody has
    tagged.extend_from_slice(message);
    tagged.freeze()
}

const KINDS: [Channel; 3] = [Channel::Ordered, Channel::Unordered, Channel::Unreliable];
const TAG_LEN: usize = size_of::<u16>();
/// The first message has all that a client sees of the world.
const MESSAGE_MAX: u32 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use Channel::{Ordered, Unordered, Unreliable};

    #[test]
    fn each_has_a_channel_of_its_own_and_both_directions_share_it() {
        let routes = Routes::between(&[Ordered, Unreliable, Unordered], &[Ordered, Unordered, Ordered]);
        let numbers = |direction: &Direction| {
            direction.routes.iter().map(|route| (route.channel.number(), route.is_shared)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&routes.to_clients), [(0, false), (1, false), (2, false)]);
        assert_eq!(numbers(&routes.to_server), [(0, false), (2, false), (3, false)]);
        let kinds: Vec<_> = routes.channels.iter().map(|channel| channel.kind().to_string()).collect();
        assert_eq!(
            kinds,
            ["ordered", "unreliable", "unordered", "ordered", "unordered"],
            "the last takes what is too long"
        );
        assert_eq!(routes.to_clients.long.map(Handle::number), Some(4));
    }

    #[test]
    fn any_number_of_channels_fits_into_a_session() {
        for count in [0, 1, 10, 31, 32, 33, 100, 1000] {
            let wanted: Vec<_> = KINDS.into_iter().cycle().take(count).collect();
            let routes = Routes::between(&wanted, &wanted[..count / 2]);
            assert!(routes.channels.len() <= CHANNELS_MAX, "{count}");
            assert_eq!((routes.to_clients.routes.len(), routes.to_server.routes.len()), (count, count / 2));
            for (route, kind) in routes.to_clients.routes.iter().zip(&wanted) {
                assert_eq!(open(&mut Vec::new(), *kind).kind(), route.channel.kind(), "{count}");
            }
        }
    }

    #[test]
    fn a_tag_is_taken_only_on_the_channel_that_its_messages_travel_on() {
        let wanted: Vec<_> = KINDS.into_iter().cycle().take(100).collect();
        let Routes { to_clients, .. } = Routes::between(&wanted, &[]);
        let shared = |kind: Channel| {
            let number = wanted.iter().rposition(|wanted| *wanted == kind).unwrap();
            (number, to_clients.routes[number].channel)
        };
        let untagged = |channel, number| {
            let mut message = tagged(number, b"data");
            let taken = to_clients.untagged(channel, &mut message);
            assert!(taken.is_none() || &*message == b"data");
            taken
        };
        let ((ordered, on_ordered), (_, on_unordered), (unreliable, _)) =
            (shared(Ordered), shared(Unordered), shared(Unreliable));
        assert_eq!(untagged(on_ordered, ordered), Some(ordered));
        assert_eq!(untagged(on_unordered, unreliable), Some(unreliable), "too long for a datagram");
        assert_eq!(untagged(on_unordered, 2), Some(2), "the same, with a channel of its own");
        for (channel, number) in [
            (on_unordered, ordered),
            (on_ordered, unreliable),
            (on_ordered, 0),
            (on_ordered, 100),
            (on_ordered, 70_000),
        ] {
            assert_eq!(untagged(channel, number), None, "{number} on {channel:?}");
        }
        for (channel, number) in
            to_clients.tagged.iter().flat_map(|channel| (0..=65_535).map(move |n| (*channel, n)))
        {
            assert!(untagged(channel, number).is_none_or(|taken| taken == number && taken < 100), "{number}");
        }
        for len in 0..TAG_LEN {
            assert_eq!(to_clients.untagged(on_ordered, &mut Bytes::from(vec![0; len])), None);
        }
    }
}
