//! `#[derive(Message)]` for whitewater, which exports it together with the trait. The trait's documentation explains
//! it.

mod bounds;
mod expand;

use proc_macro::TokenStream;

/// Implements [`Message`](https://docs.rs/whitewater/latest/whitewater/message/trait.Message.html) for a struct or an
/// enum: its fields one after another; for an enum, after the number of the variant.
///
/// | on a field | for | means |
/// |---|---|---|
/// | `#[bits(0..=63)]` | whole numbers up to 64 bits | a value in this range, in as few bits as it takes |
/// | `#[float(-512.0..=512.0, 0.01)]` | `f32` | the nearest of evenly spread values, at most 0.01 apart |
/// | `#[max_len(200)]` | `Vec`, `String` | at most 200 items, or bytes |
///
/// On a `Vec`, `bits` and `float` apply to its items. All three also apply inside `Option`, arrays and `Box`.
/// `max_len(10, 32)` is for a list of lists. Bounds may be constants.
#[proc_macro_derive(Message, attributes(bits, float, max_len))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let expanded = syn::parse(input).and_then(|input| expand::expand(&input));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
