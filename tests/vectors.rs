//! Compares `Kcp` with `Recovery::Classic` to ikcp.c 2.1.1, call by call: return values, received data, every
//! datagram byte for byte, every state field. The recordings and their format are described in
//! `vectors/kcp/README.md`; intended differences are in `docs/DEVIATIONS.md`, whose table this test reads.
//! `WHITEWATER_VECTORS` names another folder of recordings in the same format.

#[cfg(test)]
mod vectors_support;

use vectors_support::deviations::{Deviations, Kind, Rule};
use vectors_support::suite;

/// One test for each family, which is the part of a trace's name before its first `-`.
macro_rules! families {
    ($($family:ident)*) => {
        const FAMILIES: &[&str] = &[$(stringify!($family)),*];
        $(
            #[test]
            fn $family() {
                suite::report(stringify!($family)).assert_as_recorded();
            }
        )*
    };
}

families! {
    ack bad basic cc check clock dead echo flush game loss mtu quirk rto stream walk win wrap
}

#[test]
fn families_without_a_test_of_their_own() {
    for family in suite::families().iter().filter(|family| !FAMILIES.contains(&family.as_str())) {
        suite::report(family).assert_as_recorded();
    }
}

#[test]
fn no_trace_is_left_out() {
    let replayed: Vec<_> = suite::reports().flat_map(|report| report.names()).collect();
    assert!(!replayed.is_empty(), "no trace in {}", suite::folder().display());
    let missing: Vec<_> = suite::index().into_iter().filter(|name| !replayed.contains(name)).collect();
    assert!(missing.is_empty(), "in INDEX.tsv but not replayed: {missing:?}");
    println!("{}", suite::summary());
}

#[test]
fn every_deviation_listed_is_seen() {
    let unseen = suite::unseen_deviations();
    assert!(unseen.is_empty(), "listed in docs/DEVIATIONS.md, but not seen:\n{}", unseen.join("\n"));
}

/// A row about datagrams excuses a recording by its content.
#[test]
fn the_name_of_a_recording_excuses_no_datagram() {
    for name in ["rto-samples-min10", "rto-samples-iv500", "basic-una"] {
        let [named, other] = [name, "another-name"].map(|other| suite::replay_as(name, other));
        let fires_by_datagram = named.fired().any(|rule| matches!(rule.id(), "D1" | "D4" | "D8"));
        assert!(fires_by_datagram && named.fired().eq(other.fired()), "{name}");
        assert_eq!(named.compared, other.compared, "{name}");
    }
}

#[test]
fn every_recorded_field_is_compared() {
    let unread = suite::unread_fields();
    assert!(unread.is_empty(), "recorded, but never readable: {unread:?}");
}

#[test]
fn every_rule_has_a_row_and_every_row_of_a_kind_a_rule() {
    let table = Deviations::load();
    for rule in Rule::ALL {
        assert!(table.kind(*rule).is_some(), "{rule:?}: no row {} with a kind", rule.id());
    }
    for row in table.rows().iter().filter(|row| row.kind != Kind::Untraced) {
        assert!(Rule::ALL.iter().any(|rule| rule.id() == row.id), "{}: no rule of that id", row.id);
    }
}

#[test]
fn every_trap_of_the_reference_is_decided() {
    let decided = Deviations::load().traps();
    let traps = (1..=30).map(|n| format!("T{n}"));
    let undefined = (1..=3).map(|n| format!("U{n}"));
    let quirks = (1..=37).map(|n| format!("Q{n}"));
    let open: Vec<_> = traps.chain(undefined).chain(quirks).filter(|trap| !decided.contains(trap)).collect();
    assert!(open.is_empty(), "in neither table of docs/DEVIATIONS.md: {open:?}");
}

#[test]
fn every_test_and_trace_named_in_the_tables_exists() {
    let missing = Deviations::load().missing_references();
    assert!(missing.is_empty(), "named in docs/DEVIATIONS.md: {missing:#?}");
}
