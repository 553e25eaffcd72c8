//! Imports only point down, only `net` knows a clock or a socket, and no file gets too long.

use std::fs;
use std::path::Path;

/// The top-level modules, lowest layer first. A module uses its own layer and those below.
const LAYERS: [&[&str]; 8] = [
    &["seq", "time", "ring", "config", "counters", "hash", "events"],
    &["wire", "code", "pace", "rate", "machine"],
    &["kcp", "packet"],
    &["message"],
    &["channel"],
    &["session"],
    &["net"],
    &["thread", "tokio", "metrics", "inside"],
];
/// Modules of one layer that must not use each other.
const SIBLINGS: [&str; 2] = ["kcp", "packet"];
/// Re-exports all of bare KCP, whichever layer it is in. A re-export is not a use.
const FRONT: &str = "kcp/mod.rs";
/// The only module that may name [`OUTSIDE`].
const DRIVER: &str = "net";
/// Anything by which one seed could give different bytes.
const OUTSIDE: [&str; 6] = [
    "std::net",
    "core::net",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::UNIX_EPOCH",
];
/// Parts of [`OUTSIDE`] that are mere values. Any layer may name them.
const VALUES: [&str; 5] = [
    "std::net::SocketAddr",
    "std::net::SocketAddrV4",
    "std::net::SocketAddrV6",
    "std::net::IpAddr",
    "std::net::Ipv6Addr",
];
/// Most lines of a file, excluding its tests.
const MOST_LINES: usize = 450;

#[test]
fn imports_point_down_and_only_net_looks_outside() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&src, "");
    for module in LAYERS.into_iter().flatten() {
        assert!(
            files.iter().any(|(file, _)| top_module(file) == *module),
            "no file of layer module {module}"
        );
    }
    let found: Vec<_> = files.iter().flat_map(|(file, text)| violations(file, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_kind_of_violation_is_seen() {
    for (file, text, expected) in [
        ("wire/segment.rs", "use crate::kcp::Kcp;", "kcp"),
        ("wire/mod.rs", "use crate::{seq::Sn, kcp::{Kcp}};", "kcp"),
        ("seq.rs", "fn f() -> crate::wire::Segment { }", "wire"),
        ("code/decoder.rs", "use crate::kcp::Kcp;", "kcp"),
        ("kcp/congestion/mod.rs", "use super::super::net::Driver;", "net"),
        ("kcp/mod.rs", "pub(crate) use super::net;", "net"),
        ("wire/mod.rs", "use crate::Kcp;", "re-export"),
        ("wire/mod.rs", "use crate::*;", "re-export"),
        ("bits.rs", "", "layer"),
        ("packet/mod.rs", "use crate::kcp::Kcp;", "must not use kcp"),
        ("kcp/mod.rs", "use crate::packet::Endpoint;", "must not use packet"),
        ("kcp/rtt.rs", "use std::{fmt, time::{Duration, Instant}};", "std::time::Instant"),
        ("kcp/rtt.rs", "use std::time;\nfn f() { time::Instant::now(); }", "std::time::Instant"),
        ("kcp/rtt.rs", "let now = std::time::SystemTime::now();", "std::time::SystemTime"),
        ("wire/output.rs", "use std::net::UdpSocket;", "std::net"),
        ("session/cookie.rs", "use std::net::{SocketAddr, ToSocketAddrs};", "std::net"),
        ("session/mod.rs", "use crate::net::Driver;", "net"),
        ("kcp/mod.rs", "\npub use crate::session::peers::Peers;\nuse crate::net::Driver;", "net"),
        ("kcp/send.rs", "\npub use crate::session::peers::Peers;", "session"),
        ("ring.rs", &"\n".repeat(MOST_LINES + 1), "lines"),
    ] {
        let found = violations(file, text);
        assert!(found.len() == 1, "{file}: {text:?}: {found:?}");
        assert!(found.iter().all(|line| line.starts_with(file) && line.contains(expected)), "{found:?}");
    }
}

/// The picture of the layers shows each module in its layer, and names only types that exist.
#[test]
fn the_picture_shows_the_layers_as_they_are() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let root = fs::read_to_string(src.join("lib.rs")).unwrap();
    let lines: Vec<&str> = root.lines().filter_map(|line| line.strip_prefix("//!")).collect();
    let picture = lines.join("\n").split("```").nth(1).expect("a picture in lib.rs").to_string();
    let mut bands: Vec<&str> = picture
        .split(&"─".repeat(10))
        .filter(|band| !band.trim_matches(['─', '\n', ' ']).is_empty())
        .collect();
    let game = bands.remove(0);
    assert!(game.contains("your game"), "the picture does not begin with the user: {game}");
    bands.reverse();
    assert_eq!(bands.len(), LAYERS.len(), "one band per layer");
    for (band, modules) in bands.iter().zip(LAYERS) {
        for module in modules.iter().filter(|module| **module != "inside") {
            assert!(tokens(band).contains(module), "{module} is not in its band:{band}");
        }
    }
    let code: String = sources(&src, "").into_iter().map(|(_, text)| text).collect();
    let declared = |name: &str| {
        let by_keyword =
            ["struct", "enum", "trait", "type"].iter().any(|kind| code.contains(&format!("{kind} {name}")));
        by_keyword || code.contains(&format!("\n    {name}: u")) // by the macro of seq.rs
    };
    let is_type = |word: &&str| {
        word.len() > 2 && word.starts_with(char::is_uppercase) && word[1..].contains(char::is_lowercase)
    };
    for word in picture.split(|c: char| !c.is_alphanumeric()).filter(is_type) {
        assert!(declared(word), "the picture names {word}, which is not a type");
    }
}

/// A file that is not part of any test program is never run.
#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let programs: Vec<&str> =
        manifest.lines().filter_map(|line| line.strip_prefix("path = \"tests/")?.strip_suffix('"')).collect();
    let parts: String =
        programs.iter().map(|path| fs::read_to_string(root.join("tests").join(path)).unwrap()).collect();
    for entry in fs::read_dir(root.join("tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(module) = name.strip_suffix(".rs") else { continue };
        let is_part = parts.lines().any(|line| line == format!("mod {module};"));
        assert!(
            programs.contains(&name.as_str()) || is_part,
            "tests/{name} is not in any test program: add it to Cargo.toml or to one of the programs there"
        );
    }
}

#[test]
fn allowed_imports_pass() {
    for (file, text) in [
        ("lib.rs", "pub use crate::kcp::Kcp; pub use net::Driver;"),
        (
            "kcp/mod.rs",
            "\npub use crate::{session::peers::Peers};\n#[cfg(feature = \"net\")]\npub use crate::net::Socket;",
        ),
        (
            "kcp/mod.rs",
            "use crate::{seq::Sn, wire::{self, Output}}; use super::time::Time; use std::time::Duration;",
        ),
        ("ring.rs", "use crate::seq::Sn; use super::seq; fn f() { crate::time::Time::ZERO; }"),
        (
            "kcp/congestion/mod.rs",
            "use super::rtt::Rtt; use super::super::seq::Sn; pub(in crate::kcp) fn f() {}",
        ),
        ("wire/mod.rs", "//! Used by [`crate::kcp`].\n// crate::net\n"),
        ("wire/mod.rs", "use crate::seq::Sn;\n#[cfg(test)]\nmod tests { use crate::kcp::Kcp; }"),
        (
            "session/cookie.rs",
            "use std::net::SocketAddr; fn f() { SocketAddr::V4(a); std::net::SocketAddr::V6(b); }",
        ),
        ("net/clock.rs", "use std::time::Instant; use std::net::UdpSocket; use crate::kcp::Kcp;"),
    ] {
        assert_eq!(violations(file, text), Vec::<String>::new(), "{file}: {text:?}");
    }
}

/// Everything wrong with the file `file`, a path relative to `src/`.
fn violations(file: &str, text: &str) -> Vec<String> {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = text.lines().count();
    let mut found = Vec::new();
    if lines > MOST_LINES {
        found.push(format!("{file} has {lines} lines, more than {MOST_LINES}"));
    }
    if file == "lib.rs" {
        return found;
    }
    let own = top_module(file);
    let Some(own_layer) = layer(own) else {
        found.push(format!("{file}: the module {own} has no layer"));
        return found;
    };
    let code: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mut code = code.join("\n");
    if file == FRONT {
        code = code.split_inclusive(';').filter(|statement| !statement.contains("\npub use ")).collect();
    }
    let mut std_modules = Vec::new();
    for path in paths(&tokens(&code)) {
        if let Some(target) = in_crate(file, &path) {
            match layer(target) {
                Some(_) if target != own && SIBLINGS.contains(&own) && SIBLINGS.contains(&target) => {
                    found.push(format!("{file}: {own} must not use {target}"));
                }
                Some(layer) if layer <= own_layer => {}
                Some(_) => found.push(format!("{file}: {} points up, to {target}", path.join("::"))),
                None => {
                    found.push(format!("{file}: {} is a re-export: name the module instead", path.join("::")))
                }
            }
        }
        let mut full = path.join("::");
        if let [root @ ("std" | "core"), module] = path.as_slice() {
            std_modules.push((*module, *root));
        } else if let Some((module, root)) =
            std_modules.iter().find(|(module, _)| path.first() == Some(module))
        {
            full = format!("{root}::{module}::{}", path.get(1..).unwrap_or_default().join("::"));
        }
        let names = |outside: &str| full == outside || full.starts_with(&format!("{outside}::"));
        if let Some(outside) = OUTSIDE.into_iter().find(|outside| names(outside)).filter(|_| own != DRIVER)
            && !VALUES.into_iter().any(&names)
        {
            found.push(format!("{file}: only {DRIVER} may use {outside}"));
        }
    }
    found
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

fn top_module(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

/// The top-level module that `path` in `file` refers to; `None` if it stays below that or leaves the crate.
fn in_crate<'a>(file: &str, path: &[&'a str]) -> Option<&'a str> {
    let supers = path.iter().take_while(|part| **part == "super").count();
    let depth = file.trim_end_matches("/mod.rs").split('/').count();
    let skip = match path {
        ["crate", ..] => 1,
        ["super", ..] if supers == depth => supers,
        _ => return None,
    };
    path.get(skip).copied()
}

/// Every path in the tokens, with groups expanded: `a::{b, c::d}` gives `a::b` and `a::c::d`.
fn paths<'a>(tokens: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut rest = tokens;
    let mut found = Vec::new();
    while !rest.is_empty() {
        rest = take_path(rest, Vec::new(), &mut found);
    }
    found
}

/// Reads one path with all its groups, or one token that begins no path. Returns the rest.
fn take_path<'t, 'a>(
    tokens: &'t [&'a str],
    mut path: Vec<&'a str>,
    found: &mut Vec<Vec<&'a str>>,
) -> &'t [&'a str] {
    match tokens {
        [name, "::", rest @ ..] if is_name(name) => {
            path.push(name);
            let ["{", ..] = rest else {
                return take_path(rest, path, found);
            };
            let mut rest = rest.get(1..).unwrap_or_default();
            while !matches!(rest, [] | ["}", ..]) {
                rest = take_path(rest, path.clone(), found);
            }
            rest.get(1..).unwrap_or_default()
        }
        [name, rest @ ..] => {
            if is_name(name) || (*name == "*" && !path.is_empty()) {
                path.push(name);
                found.push(path);
            }
            rest
        }
        [] => tokens,
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first == '_' || first.is_alphabetic())
}

fn tokens(code: &str) -> Vec<&str> {
    let mut rest = code.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let end = if rest.starts_with("::") {
            2
        } else if is_name(rest) {
            rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// The path, relative to `src/`, and the text of every file below `dir`, except for test modules.
fn sources(dir: &Path, prefix: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().display());
        if entry.path().is_dir() {
            found.extend(sources(&entry.path(), &format!("{name}/")));
        } else if name.ends_with(".rs") && !name.ends_with("/tests.rs") {
            found.extend(fs::read_to_string(entry.path()).map(|text| (name, text)));
        }
    }
    found
}
