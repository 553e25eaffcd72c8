//! When the peer is reached by another path, a control block clears its measurements and loses nothing.

use crate::common;

use common::{Talk, clean, ms, pair, presets, rough};
use std::time::Duration;
use whitewater::kcp::{Config, Congestion};
use whitewater_sim::{LinkConfig, Loss};

#[test]
fn round_trips_and_windows_start_over_and_everything_arrives_once() {
    for (name, config) in presets() {
        for congestion in [config.congestion, Congestion::Delay, Congestion::Cubic] {
            for loss in [0.0, 0.2] {
                let link = LinkConfig { loss: Loss::Random(loss), ..rough() };
                let mut pair = pair(config, link, 7);
                pair.alice.kcp.configure(&Config { congestion, ..config }).unwrap();
                pair.alice.kcp.flush(pair.now()); // now a controller knows the length of a segment
                pair.send_numbered(60);
                pair.run_for(ms(3_000));
                pair.send_numbered(60);
                pair.run_for(ms(45));
                let (now, before) = (pair.now(), pair.alice.kcp.stats());
                assert!(before.srtt > Duration::ZERO, "{name}");
                pair.alice.kcp.path_changed(now);
                let after = pair.alice.kcp.stats();
                assert_eq!((after.srtt, after.min_rtt), (Duration::ZERO, None), "{name}");
                assert_eq!((after.in_flight, after.snd_una), (before.in_flight, before.snd_una), "{name}");
                if congestion == config.congestion {
                    assert_eq!(after.cwnd, 1, "{name}");
                }
                let is_idle = pair.run_until(Duration::from_secs(60), |pair| pair.is_idle());
                assert!(is_idle, "{name} with {congestion:?}");
                pair.assert_delivered();
                assert!(pair.alice.kcp.stats().srtt > Duration::ZERO, "{name}: it is measured again");
            }
        }
    }
}

/// Nothing was lost: segments in flight at the change are resent at most once.
#[test]
fn a_change_alone_costs_no_more_than_the_flight() {
    for (name, config) in presets() {
        let mut pair = pair(config, clean(), 7);
        pair.send_numbered(100);
        pair.run_for(ms(2_000));
        pair.send_numbered(20);
        pair.run_for(ms(5));
        let (now, stats) = (pair.now(), pair.alice.kcp.stats());
        let resends = pair.resends();
        pair.alice.kcp.path_changed(now);
        assert!(pair.run_until_idle(Duration::from_secs(20)), "{name}");
        pair.assert_delivered();
        assert!(pair.resends() - resends <= stats.in_flight, "{name}: {}", pair.resends() - resends);
    }
}
