//! What is between a player and the internet, by rules of nftables.
//!
//! Source: RFC 4787, which names how mappings and filters depend on the other end.

use std::net::Ipv4Addr;

/// Kinds of NATs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Nat {
    /// None: a public address.
    Open,
    /// One port for all destinations, and everybody may send to it.
    Cone,
    /// One port for all destinations, to which those may send that were sent to.
    Restricted,
    /// Two that are restricted, the provider's and the player's.
    Double,
    /// As restricted, but what strangers send is for the box itself, which then gives the player another port for them: a Linux that does nothing but masquerade.
    Bare,
    /// Another port for each destination, which alone may send to it.
    Symmetric,
}

pub(crate) const NATS: [Nat; 6] =
    [Nat::Open, Nat::Cone, Nat::Restricted, Nat::Double, Nat::Bare, Nat::Symmetric];

impl Nat {
    /// The rules of a box with the devices `out` and `lan`, and that player inside.
    pub(super) fn rules(self, player: Ipv4Addr) -> String {
        let ports = if self == Self::Symmetric { "fully-random" } else { "" };
        let cone = format!("iifname out meta l4proto udp dnat to {player}");
        let inward = if self == Self::Cone { &*cone } else { "" };
        // With an ICMP error, as from routers with OpenWrt.
        let own = if self == Self::Bare { "accept" } else { "reject" };
        format!(
            "table ip box {{
                chain outward {{ type nat hook postrouting priority srcnat; oifname out masquerade {ports}; }}
                chain inward {{ type nat hook prerouting priority dstnat; {inward}; }}
                chain own {{ type filter hook input priority filter; iifname out ct state new {own}; }}
            }}"
        )
    }
}

/// Rules by which others inside reach the player at the public address of their box.
pub(super) fn hairpin(public: Ipv4Addr, player: Ipv4Addr) -> String {
    format!(
        "table ip hairpin {{
            chain inward {{ type nat hook prerouting priority dstnat; iifname lan ip daddr {public} meta l4proto udp dnat to {player}; }}
            chain outward {{ type nat hook postrouting priority srcnat; oifname lan ct status dnat snat to {public}; }}
        }}"
    )
}
