//! What a client runs over: a UDP socket, and in a browser the transports of a page.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::{ConnectError, Link, To, open, pump, with_connection};
#[cfg(target_arch = "wasm32")]
pub(crate) use web::{ConnectError, Link, To, open, pump, with_connection};

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::io;
    use std::net::SocketAddr;
    use whitewater::session::Connection;
    use whitewater::{Client, ClientConfig};

    pub(crate) type Link = Client;
    pub(crate) type To = Vec<SocketAddr>;
    pub(crate) type ConnectError = io::Error;

    pub(crate) fn open(to: &To, config: &ClientConfig) -> Result<Link, ConnectError> {
        Client::connect(&**to, config)
    }

    pub(crate) fn pump(link: &mut Link) -> io::Result<()> {
        link.pump().map(drop)
    }

    pub(crate) fn with_connection(link: &mut Link, f: impl FnOnce(Option<&mut Connection>)) {
        f(link.connection_mut());
    }
}

#[cfg(target_arch = "wasm32")]
mod web {
    use send_wrapper::SendWrapper;
    use std::convert::Infallible;
    use whitewater::ClientConfig;
    use whitewater::session::Connection;
    use whitewater_web::Client;

    pub(crate) type Link = SendWrapper<Client>;
    pub(crate) type To = whitewater_web::Target;
    pub(crate) type ConnectError = whitewater_web::ConnectError;

    pub(crate) fn open(to: &To, config: &ClientConfig) -> Result<Link, ConnectError> {
        Client::connect(to, config).map(SendWrapper::new)
    }

    #[expect(clippy::unnecessary_wraps, reason = "a socket can fail")]
    pub(crate) fn pump(link: &mut Link) -> Result<(), Infallible> {
        link.pump();
        Ok(())
    }

    pub(crate) fn with_connection(link: &mut Link, f: impl FnOnce(Option<&mut Connection>)) {
        f(link.connection_mut().as_deref_mut());
    }
}
