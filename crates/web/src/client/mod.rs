//! The client of a browser.
