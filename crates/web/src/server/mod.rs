//! The transport of browsers beside the socket of a server.
