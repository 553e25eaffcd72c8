//! docs/TUNING.md names every session setting whose default is worth a thought, with the default of the code.

use crate::common::sessions::{default_kcp, on, ordered};
use std::fmt::Display;
use std::time::Duration;
use whitewater::channel::Carrier;
use whitewater::{Channel, ChannelConfig, Repairs, ServerConfig, SessionConfig};

const CARRIER: &str = "carrier";
const DOCUMENT: &str = include_str!("../docs/TUNING.md");

/// Whether the document contains `knob` followed by that default.
fn says(knob: &str, default: impl Display) -> bool {
    DOCUMENT.contains(&format!("`{knob}`, {default}"))
}

fn ms(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

fn kib(bytes: u32) -> String {
    format!("{} KiB", bytes >> 10)
}

#[test]
fn the_document_has_the_defaults_of_sessions_and_servers() {
    let SessionConfig {
        protocol_id: _, // these two are the application's protocol
        channels: _,
        max_datagram,
        path_mtu,
        ecn,
        datagrams_out,
        datagrams_in,
        send_memory,
        receive_memory,
        unacked,
        max_rate,
        repairs,
        ack_delay,
        keepalive,
        timeout,
        drain,
        slow_peer,
        mask_headers,
        key_update,
    } = SessionConfig::default(); // a new field does not compile until the document has it
    assert!(says("path_mtu", format!("{} bytes", path_mtu.unwrap())));
    assert!(says("max_rate", "none") && max_rate.is_none());
    assert!(says("ecn", "off") && !ecn);
    assert!(says("mask_headers", "on") && mask_headers);
    assert!(says("repairs", format!("`Repairs::{repairs:?}`")));
    let server = ServerConfig::insecure(SessionConfig::default());
    for (knob, default) in [
        ("max_datagram", max_datagram.to_string()),
        ("datagrams_out", kib(datagrams_out)),
        ("datagrams_in", kib(datagrams_in)),
        ("send_memory", kib(send_memory)),
        ("receive_memory", kib(receive_memory)),
        ("unacked", unacked.to_string()),
        ("ack_delay", ms(ack_delay)),
        ("keepalive", ms(keepalive)),
        ("timeout", ms(timeout)),
        ("drain", ms(drain)),
        ("slow_peer", ms(slow_peer)),
        ("key_update", key_update.to_string()),
        ("max_sessions", server.max_sessions.to_string()),
        ("half_open", server.half_open.to_string()),
        ("memory", format!("{} MiB", server.memory >> 20)),
        ("sessions_per_address", server.sessions_per_address.to_string()),
        ("half_open_per_address", server.half_open_per_address.to_string()),
        ("accepts_per_second", server.accepts_per_second.to_string()),
        ("accept_burst", server.accept_burst.to_string()),
    ] {
        assert!(says(knob, &default), "docs/TUNING.md: `{knob}`, {default}");
    }
}

#[test]
fn a_session_config_out_of_range_names_its_field() {
    let default = SessionConfig::default();
    assert_eq!(default.check(), Ok(()));
    let second = Duration::from_secs(1);
    let repairs = |repairs| SessionConfig { repairs, ..SessionConfig::default() };
    let channel = |channel| SessionConfig { channels: vec![channel], ..SessionConfig::default() };
    let fine_channel = on(0).config();
    for (config, field) in [
        (SessionConfig { max_datagram: 575, ..default.clone() }, "max_datagram"),
        (SessionConfig { max_datagram: 1201, ..default.clone() }, "max_datagram"),
        (SessionConfig { path_mtu: Some(1199), ..default.clone() }, "path_mtu"),
        (SessionConfig { path_mtu: Some(9001), ..default.clone() }, "path_mtu"),
        (SessionConfig { ecn: true, ..default.clone() }, "ecn"),
        (SessionConfig { path_mtu: Some(9000), ..default.clone() }, "receive_memory"),
        (SessionConfig { channels: ordered([default_kcp(); 33]), ..default.clone() }, "channels"),
        (SessionConfig { channels: vec![on(1).into()], ..default.clone() }, "channels"),
        (channel(ChannelConfig { max_message: 0, ..fine_channel }), "max_message"),
        (channel(ChannelConfig { max_message: (64 << 20) + 1, ..fine_channel }), "max_message"),
        (channel(ChannelConfig { send_buffer: 0, ..fine_channel }), "send_buffer"),
        (channel(ChannelConfig { receive_buffer: 16_385, ..fine_channel }), "receive_buffer"),
        (channel(ChannelConfig { carrier: Carrier::Kcp, ..Channel::<[u8]>::unordered(0).config() }), CARRIER),
        (channel(ChannelConfig { carrier: Carrier::Packets, ..Channel::stream(0).config() }), CARRIER),
        (SessionConfig { datagrams_out: 1499, ..default.clone() }, "datagrams_out"),
        (SessionConfig { datagrams_in: 0, ..default.clone() }, "datagrams_in"),
        (SessionConfig { send_memory: 1499, ..default.clone() }, "send_memory"),
        (SessionConfig { receive_memory: 199_999, ..default.clone() }, "receive_memory"),
        (SessionConfig { unacked: 63, ..default.clone() }, "unacked"),
        (repairs(Repairs::Budget(201)), "repairs"),
        (repairs(Repairs::Deadline(0)), "repairs"),
        (repairs(Repairs::Deadline(10_001)), "repairs"),
        (SessionConfig { ack_delay: second, ..default.clone() }, "ack_delay"),
        (SessionConfig { keepalive: Duration::ZERO, ..default.clone() }, "keepalive"),
        (SessionConfig { timeout: second, ..default.clone() }, "timeout"),
        (SessionConfig { keepalive: 2 * second, timeout: 3 * second, ..default.clone() }, "timeout"),
        (SessionConfig { drain: 61 * second, ..default.clone() }, "drain"),
        (SessionConfig { slow_peer: Duration::ZERO, ..default.clone() }, "slow_peer"),
        (SessionConfig { key_update: 63, ..default }, "key_update"),
    ] {
        assert_eq!(config.check().map_err(|error| error.field), Err(field));
    }
}
