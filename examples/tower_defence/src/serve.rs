//! The page for browsers: its files, and how they join.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use tiny_http::{Header, Response, Server};
use tower_defence::play::{Hosting, Key, state_dir};
use whitewater_web::{Web, WebConfig, listen};
use whitewater_web_build::{Options, build};

/// The key of a server that was given none: kept in a file, so that players are known after a restart.
pub(crate) fn own_key() -> Result<(Key, Option<PathBuf>), String> {
    let path =
        state_dir().ok_or("there is no folder for a key: give one with --token FILE")?.join("serve.key");
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if !path.exists() {
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| wrong(&error))?;
        Key::create(&path).map_err(|error| wrong(&error))?;
    }
    Ok((Key::of_file(&path).map_err(|error| wrong(&error))?, Some(path)))
}

/// Builds the page, lets browsers play, and prints where.
pub(crate) fn start(
    hosting: &mut Hosting,
    key: &Key,
    page: SocketAddr,
    web: SocketAddr,
) -> Result<(), Box<dyn std::error::Error>> {
    println!("building the page, which takes a minute for the first time");
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("page").join("static");
    let built =
        build("tower-defence-page", &PathBuf::from("target/tower-defence-page"), &Options::default())?;
    println!("the page: {} kB of wasm, {} kB compressed", built.wasm / 1000, built.gzipped / 1000);
    let mut config = WebConfig::self_signed(["localhost", "127.0.0.1", "::1"]);
    config.addr = web;
    config.reset_key = Some(key.reset()); // and their connections end as well
    let (web, browsers) = listen(&config)?;
    hosting.attach(browsers)?;
    let server = Server::http(page).map_err(|error| io::Error::other(error.to_string()))?;
    let join = join(&web, key);
    let at = server.server_addr();
    thread::Builder::new().name("page".to_owned()).spawn(move || {
        for request in server.incoming_requests() {
            let path = request.url().split('?').next().unwrap_or_default().to_owned();
            let answered = match file(&path, &files, &built.js, &built.wasm_file, &join) {
                Some((kind, bytes)) => {
                    let kind = Header::from_bytes("Content-Type", kind).ok();
                    let fresh = Header::from_bytes("Cache-Control", "no-store").ok(); // it may be built anew
                    let response = Response::from_data(bytes);
                    request.respond(kind.into_iter().chain(fresh).fold(response, Response::with_header))
                }
                None => request.respond(Response::from_string("there is no such file").with_status_code(404)),
            };
            drop(answered); // whoever has left needs no answer
        }
        let _ = writeln!(io::stderr(), "tower-defence: the page is served no longer; the game goes on");
    })?;
    println!("play in a browser:  http://{at}/");
    Ok(())
}

/// A file of the page by its path, with its type.
fn file(path: &str, files: &Path, js: &Path, wasm: &Path, join: &str) -> Option<(&'static str, Vec<u8>)> {
    let script = "text/javascript; charset=utf-8";
    let (kind, path) = match path {
        "/" | "/index.html" => ("text/html; charset=utf-8", files.join("index.html")),
        "/style.css" => ("text/css; charset=utf-8", files.join("style.css")),
        "/main.js" => (script, files.join("main.js")),
        "/pkg/tower_defence_page.js" => (script, js.to_owned()),
        "/pkg/tower_defence_page_bg.wasm" => ("application/wasm", wasm.to_owned()),
        "/config.json" => return Some(("application/json", join.as_bytes().to_vec())),
        _ => return None,
    };
    Some((kind, fs::read(path).ok()?))
}

/// How a page joins. Whoever can load it may play.
fn join(web: &Web, key: &Key) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (at, hash, secret) = (web.local_addr(), hex(&web.certificate_hash()), hex(&key.bytes()));
    let url = web.url(&at.ip().to_string());
    format!(
        r#"{{"url":"{url}","websocket":"ws://{at}/","certificate_hashes":["{hash}"],"secret":"{secret}"}}"#
    )
}
