//! What a relay counts.

use std::fmt;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a relay has passed on, and why it dropped the rest.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// In the text format of Prometheus.
        impl fmt::Display for Counts {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, concat!("whitewater_relay_", stringify!($name), " {}"), self.$name)?;)*
                Ok(())
            }
        }
    };
}

counts! {
    /// Hosts that are there now.
    hosts,
    /// Links that are there now.
    links,
    /// Links that were opened.
    opened,
    /// Datagrams that went to hosts.
    passed_to_hosts,
    /// Bytes of them, as guests have sent them, without tickets.
    bytes_to_hosts,
    /// Datagrams that went to guests.
    passed_to_guests,
    /// Bytes of them.
    bytes_to_guests,
    /// Cookies that were sent.
    cookies,
    /// Datagrams that are too short for a ticket, or a frame that is cut off.
    malformed,
    /// A ticket that the key did not make, or a host without the secret of its ticket.
    forged,
    /// A ticket that has expired.
    expired,
    /// A guest of a host that is not there.
    no_host,
    /// A frame for a link that is not there, or is another host's.
    gone,
    /// A frame from an address where no host is.
    strangers,
    /// More bytes a second than the host was granted for a link.
    too_fast,
    /// A guest that has as many links as it can have, or whose host has as many as it was granted.
    crowded,
    /// No room for another host or link.
    full,
}
