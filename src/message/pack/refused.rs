//! What must not compile. Each block differs in one place from one that compiles.
//!
//! ```
//! use whitewater::Message;
//! const MAX: u16 = 300;
//! #[derive(Message)]
//! struct A { #[bits(0..=MAX)] a: u16, #[bits(0..=5)] b: Vec<u8>, #[float(0.0..=1.0, 0.1)] c: f32, #[max_len(3)] d: String, e: () }
//! ```
//! A range beyond the type, and an empty range:
//! ```compile_fail,E0080
//! use whitewater::Message;
//! const MAX: u16 = 300;
//! #[derive(Message)]
//! struct A { #[bits(0..=MAX)] a: u8 }
//! ```
//! ```compile_fail,E0080
//! use whitewater::Message;
//! #[derive(Message)]
//! struct A { #[bits(5..=0)] b: Vec<u8> }
//! ```
//! No usable resolution:
//! ```compile_fail,E0080
//! use whitewater::Message;
//! #[derive(Message)]
//! struct A { #[float(0.0..=1.0, 0.0)] c: f32 }
//! ```
//! ```compile_fail,E0080
//! use whitewater::Message;
//! #[derive(Message)]
//! struct A { #[float(0.0..=1.0, f32::INFINITY)] c: f32 }
//! ```
//! Bounds for other types:
//! ```compile_fail,E0277
//! use whitewater::Message;
//! #[derive(Message)]
//! struct A { #[max_len(3)] d: u8 }
//! ```
//! ```compile_fail,E0277
//! use whitewater::Message;
//! #[derive(Message)]
//! struct A { #[bits(0..=5)] d: String }
//! ```
//! A field that is not a message:
//! ```compile_fail,E0277
//! use whitewater::Message;
//! #[derive(Message)]
//! struct A { e: std::time::Instant }
//! ```
