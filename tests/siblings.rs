//! What can be called on a server, a client or a session has one name, whether it is driven by calls, on a thread, by tokio, without I/O, or
//! from C. A verb that one of them has the others have too, or it is listed here with the reason.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The ends of sessions, by what drives them, and the files that have their public methods.
const SERVERS: [(&str, &[&str]); 4] = [
    ("sync", &["src/net/server.rs", "src/net/verbs.rs", "src/net/driver.rs"]),
    ("thread", &["src/net/thread/threads.rs"]),
    ("tokio", &["src/net/tokio/server.rs", "src/net/tokio/session.rs", "src/net/tokio/request.rs"]),
    (
        "sans-IO",
        &[
            "src/session/server/mod.rs",
            "src/session/server/clients.rs",
            "src/session/server/opening.rs",
            "src/machine.rs",
            "src/session/connection/mod.rs",
            "src/session/connection/send.rs",
            "src/session/connection/life.rs",
            "src/session/connection/redirect.rs",
        ],
    ),
];
const CLIENTS: [(&str, &[&str]); 4] = [
    ("sync", &["src/net/client.rs", "src/net/verbs.rs", "src/net/driver.rs"]),
    ("thread", &["src/net/thread/threads.rs"]),
    ("tokio", &["src/net/tokio/client.rs", "src/net/tokio/session.rs"]),
    (
        "sans-IO",
        &[
            "src/session/client/mod.rs",
            "src/machine.rs",
            "src/session/connection/mod.rs",
            "src/session/connection/send.rs",
            "src/session/connection/life.rs",
        ],
    ),
];
/// The verbs of games, which every sibling has to have: those of both ends, of servers, of clients.
const OF_BOTH: [&str; 17] = [
    "close",
    "close_text",
    "close_with",
    "connection",
    "from_socket",
    "is_connected",
    "is_delivered",
    "kick",
    "local_addr",
    "peer_addr",
    "poll_event",
    "recv",
    "recv_datagram",
    "recv_datagram_into",
    "recv_into",
    "send",
    "send_datagram",
];
const OF_SERVERS: [&str; 9] =
    ["admit", "bind", "broadcast", "broadcast_except", "clients", "redirect", "reject", "shutdown", "user"];
const OF_CLIENTS: [&str; 3] = ["connect", "path_changed", "take_redirect"];
/// What one lacks, and why.
const LACKS: [(&str, &str, &str); 8] = [
    ("sans-IO", "bind", "it has no socket"),
    ("sans-IO", "from_socket", "it has no socket"),
    ("sans-IO", "local_addr", "it has no socket"),
    ("thread", "is_delivered", "only the thread knows: by `connection`"),
    ("thread", "take_redirect", "only the thread knows: by `run`"),
    ("C", "connection", "C has `stats` of it"),
    ("C", "from_socket", "C has no type for a socket"),
    ("C", "recv_into", "C's `recv` takes a buffer"),
];

/// A server or a client.
struct End {
    /// Its name in C, and the type beside it in some files.
    name: &'static str,
    other: &'static str,
    siblings: &'static [(&'static str, &'static [&'static str])],
    /// Its verbs beside those of both.
    own: &'static [&'static str],
}

const ENDS: [End; 2] = [
    End { name: "server", other: "Client", siblings: &SERVERS, own: &OF_SERVERS },
    End { name: "client", other: "Server", siblings: &CLIENTS, own: &OF_CLIENTS },
];

impl End {
    fn verbs(&self) -> impl Iterator<Item = &'static str> {
        OF_BOTH.iter().chain(self.own).copied()
    }
}

/// Names of public functions in files of this project, except for those of the type `other`.
fn verbs(files: &[&str], other: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let is_trait = *file == "src/machine.rs"; // whose methods are public without the word
        let mut is_theirs = false;
        for line in text.lines() {
            if let Some(of) = line.strip_prefix("impl").and_then(|line| line.strip_suffix(" {")) {
                is_theirs = of.split_whitespace().last() == Some(other);
            }
            is_theirs &= !line.starts_with('}');
            if is_theirs {
                continue;
            }
            let line = line.trim_start();
            let line = line.strip_prefix("pub ").or(is_trait.then_some(line));
            let words = line.unwrap_or_default().trim_start_matches("const ").trim_start_matches("async ");
            let Some(name) = words.strip_prefix("fn ") else { continue };
            found.insert(name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned());
        }
    }
    found
}

/// Both types of a file count for themselves.
#[test]
fn a_verb_of_one_type_in_a_file_is_no_verb_of_the_other() {
    let of = |other| verbs(&["src/net/thread/threads.rs"], other);
    let [servers, clients] = [of("Client"), of("Server")];
    assert!(servers.contains("admit") && clients.contains("connect"));
    assert!(!servers.contains("connect") && !clients.contains("admit"));
    assert!(servers.contains("send") && clients.contains("send"), "a macro makes it for both");
}

#[test]
fn every_sibling_of_an_end_has_its_verbs_by_the_same_names() {
    for end in ENDS {
        for (sibling, files) in end.siblings {
            let verbs = verbs(files, end.other);
            assert!(verbs.len() > 10, "{sibling}: {verbs:?}");
            for verb in end.verbs() {
                let is_excused = LACKS.iter().any(|(of, what, _)| of == sibling && *what == verb);
                assert_eq!(verbs.contains(verb), !is_excused, "the {sibling} {} and {verb}", end.name);
            }
        }
    }
}

/// A new verb of one is a verb of all of them, or has a reason here.
#[test]
fn a_verb_that_two_siblings_have_is_a_verb_of_all() {
    for end in ENDS {
        let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (sibling, files) in end.siblings.iter().filter(|(sibling, _)| *sibling != "sans-IO") {
            verbs(files, end.other)
                .into_iter()
                .for_each(|verb| owners.entry(verb).or_default().push(*sibling));
        }
        for (verb, of) in owners.into_iter().filter(|(_, of)| of.len() == 2) {
            let is_known = end.verbs().chain(OWN).any(|known| known == verb);
            assert!(is_known, "only the {}s {of:?} have {verb}", end.name);
        }
    }
}

/// Verbs that belong to two of them: sockets, one thread or several, waiting, what a client's handle shares with a server's. What is attached
/// to a server on a thread is attached before it is spawned, and a client on one gets its second network by `run`.
const OWN: [&str; 14] = [
    "attach",
    "bind_shards",
    "network",
    "pass",
    "path_changed",
    "poll",
    "remove_second_network",
    "run",
    "set_second_network",
    "socket_stats",
    "socket_traffic",
    "spawn",
    "stats",
    "shutdown",
];

#[test]
fn the_c_library_has_the_verbs_of_its_siblings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = fs::read_to_string(root.join("capi/include/whitewater.h")).unwrap();
    let expected = ENDS.iter().flat_map(|end| end.verbs().map(|verb| (end.name, verb)));
    let is_there = |end: &str, verb: &str| header.contains(&format!("ww_{end}_{verb}("));
    let in_c = |verb: &str| match verb {
        "recv_datagram_into" => "recv_datagram".to_owned(),
        verb => verb.to_owned(),
    };
    let lacking: Vec<_> = expected
        .filter(|(_, verb)| !LACKS.iter().any(|(of, what, _)| *of == "C" && what == verb))
        .filter(|(end, verb)| !is_there(end, &in_c(verb)))
        .collect();
    assert_eq!(lacking, Vec::new());
}
