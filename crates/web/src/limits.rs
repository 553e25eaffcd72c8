//! What a session may send where QUIC carries it.

use std::time::Duration;
use whitewater::ClientConfig;

/// The settings of a session whose datagrams are at most that long, and which has this long to connect. With datagrams below 1200 bytes, a
/// session does not try longer ones.
pub(crate) fn within(config: &ClientConfig, longest: u16, deadline: Duration) -> ClientConfig {
    let mut config = config.clone();
    config.session.max_datagram = config.session.max_datagram.min(longest);
    config.hello = config.hello.min(longest);
    config.routing_token.clear(); // a proxy that routes UDP does not see what a page sends
    config.deadline = config.deadline.min(deadline).max(DEADLINE_MIN);
    config
}

/// The longest datagram of a session, bytes: as much as QUIC carries in its shortest packets, those of 1200 bytes.
pub(crate) const LONGEST: u16 = 1150;
/// The least that a transport must carry, which is the least for sessions.
pub(crate) const LEAST: u16 = 576;
/// The shortest time to connect in.
const DEADLINE_MIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use whitewater::SessionConfig;

    #[test]
    fn a_session_fits_into_every_transport_that_is_taken() {
        let config = ClientConfig::secret(SessionConfig::default(), [7; 32]);
        for longest in [LEAST, 1000, LONGEST] {
            let within = within(&config, longest, Duration::MAX);
            assert_eq!((within.session.max_datagram, within.hello), (longest, longest));
            assert_eq!((within.check(), within.deadline), (Ok(()), config.deadline));
        }
        assert_eq!(within(&config, LONGEST, Duration::from_secs(3)).deadline, Duration::from_secs(3));
        assert!(within(&config, LONGEST, Duration::ZERO).check().is_ok());
    }

    #[test]
    fn what_routes_udp_is_not_sent_by_a_page() {
        let routed =
            ClientConfig { routing_token: vec![7; 8], ..ClientConfig::insecure(SessionConfig::default()) };
        assert!(within(&routed, LONGEST, Duration::MAX).routing_token.is_empty());
    }

    #[test]
    fn a_session_that_has_shorter_datagrams_keeps_them() {
        let session = SessionConfig { max_datagram: 600, ..SessionConfig::default() };
        let config = ClientConfig { hello: 590, ..ClientConfig::insecure(session) };
        assert_eq!(within(&config, LONGEST, Duration::MAX), config);
    }
}
