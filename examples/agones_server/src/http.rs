//! The subset of HTTP/1.1 (RFC 9112) that is needed: POST, one request per connection, bodies with a length.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Most bytes of a head, and of a body.
const HEAD_MAX: u64 = 4096;
const BODY_MAX: u64 = 4096;
/// How long either side may be silent.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

/// Posts a body and returns that of the answer.
///
/// # Errors
///
/// There is no answer, or one with a status other than 200.
pub(crate) fn post(to: SocketAddr, path: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    set_patience(&stream)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {to}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let (line, body) = read(&stream)?;
    match line.split(' ').nth(1) {
        Some("200") => Ok(body),
        status => Err(io::Error::other(format!("{path}: HTTP {}", status.unwrap_or("without a status")))),
    }
}

/// Reads the request of a connection.
pub(crate) fn receive(stream: &TcpStream) -> io::Result<Request> {
    set_patience(stream)?;
    let (line, body) = read(stream)?;
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["POST", path, "HTTP/1.1"] => Ok(Request { path: path.to_owned(), body }),
        _ => Err(malformed("no POST of HTTP/1.1")),
    }
}

/// Answers it: 200, or 404 without a body.
pub(crate) fn answer(mut stream: &TcpStream, body: Option<&[u8]>) -> io::Result<()> {
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let body = body.unwrap_or_default();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// The first line and the body of a message.
fn read(stream: impl Read) -> io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.take(HEAD_MAX + BODY_MAX));
    let first = line(&mut reader)?;
    let (mut length, mut head) = (0, first.len() as u64);
    loop {
        let field = line(&mut reader)?;
        head += field.len() as u64;
        let Some((name, value)) = field.split_once(':').filter(|_| head <= HEAD_MAX) else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| malformed("Content-Length"))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(malformed("a body without a length"));
        }
    }
    if head > HEAD_MAX || length > BODY_MAX {
        return Err(malformed("too long"));
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    if body.len() as u64 == length { Ok((first, body)) } else { Err(malformed("cut off")) }
}

/// A line without its line break.
fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let without_end = line.strip_suffix('\n').ok_or_else(|| malformed("cut off"))?;
    Ok(without_end.trim_end_matches('\r').to_owned())
}

fn set_patience(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_whole_or_refused() {
        let taken = read(&b"POST /play HTTP/1.1\r\ncontent-LENGTH: 3\r\nHost: x\r\n\r\nannX"[..]);
        assert_eq!(taken.ok(), Some(("POST /play HTTP/1.1".to_owned(), b"ann".to_vec())));
        let long = format!("POST / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(5000));
        for refused in [
            "",
            "POST / HTTP/1.1\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nan",
            "POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            &long,
        ] {
            assert!(read(refused.as_bytes()).is_err(), "{refused:.80}");
        }
    }
}
