//! The attributes of fields.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::{Attribute, Error, Result, Token};

/// The rule that encodes a field, as a type. `None`: the field's own type decides. The library's names are in `inside`.
pub(crate) fn rule(attributes: &[Attribute], inside: &TokenStream) -> Result<Option<TokenStream>> {
    let (mut item, mut lengths) = (None, None);
    for attribute in attributes {
        let path = attribute.path();
        if path.is_ident("bits") || path.is_ident("float") {
            let by = if path.is_ident("bits") {
                let (min, max) = attribute.meta.require_list()?.parse_args_with(int_range)?;
                quote!(#inside::Bits<{ (#min) as i128 }, { (#max) as i128 }>)
            } else {
                let (min, max, resolution) = attribute.meta.require_list()?.parse_args_with(float_range)?;
                let bits = |value| quote!({ f32::to_bits(#value) });
                let (min, max, resolution) = (bits(min), bits(max), bits(resolution));
                quote!(#inside::Float<#min, #max, #resolution>)
            };
            once(&mut item, quote!(#inside::By<#by>), attribute, "one `#[bits]` or `#[float]` a field")?;
        } else if path.is_ident("max_len") {
            let found = attribute.meta.require_list()?.parse_args_with(max_lens)?;
            once(
                &mut lengths,
                found,
                attribute,
                "one `#[max_len]` a field; `max_len(10, 32)` is about lists in a list",
            )?;
        }
    }
    let Some(lengths) = lengths else { return Ok(item) };
    let item = item.unwrap_or_else(|| quote!(#inside::Plain));
    Ok(Some(
        lengths.into_iter().rfold(item, |item, len| quote!(#inside::By<#inside::MaxLen<{ #len }, #item>>)),
    ))
}

/// Refuses field attributes in other places.
pub(crate) fn none(attributes: &[Attribute]) -> Result<()> {
    let ours = |attribute: &&Attribute| {
        ["bits", "float", "max_len"].iter().any(|name| attribute.path().is_ident(name))
    };
    attributes.iter().find(ours).map_or(Ok(()), |attribute| {
        let name = attribute.path().to_token_stream();
        Err(Error::new_spanned(attribute, format!("`#[{name}]` belongs to a field")))
    })
}

fn once<T>(to: &mut Option<T>, value: T, attribute: &Attribute, rule: &str) -> Result<()> {
    match to.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new_spanned(attribute, rule)),
    }
}

fn int_range(input: ParseStream<'_>) -> Result<(TokenStream, TokenStream)> {
    let (min, max) = range(input, "a range, as in `#[bits(0..=63)]`")?;
    end(input)?;
    // A cast would round the number.
    let fraction =
        |token: &TokenTree| token.to_string().contains('.') && matches!(token, TokenTree::Literal(_));
    match min.clone().into_iter().chain(max.clone()).find(fraction) {
        Some(token) => {
            Err(Error::new_spanned(token, "`#[bits]` is for whole numbers; `#[float]` is for others"))
        }
        None => Ok((min, max)),
    }
}

fn float_range(input: ParseStream<'_>) -> Result<(TokenStream, TokenStream, TokenStream)> {
    let expected = "a range and a resolution, as in `#[float(-512.0..=512.0, 0.01)]`";
    let (min, max) = range(input, expected)?;
    input.parse::<Token![,]>().map_err(|error| Error::new(error.span(), format!("expected {expected}")))?;
    let resolution = value(input, expected)?;
    end(input)?;
    Ok((min, max, resolution))
}

fn max_lens(input: ParseStream<'_>) -> Result<Vec<TokenStream>> {
    let mut lens = Vec::new();
    while !input.is_empty() || lens.is_empty() {
        lens.push(value(input, "a length, as in `#[max_len(200)]`")?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(lens)
}

fn range(input: ParseStream<'_>, expected: &str) -> Result<(TokenStream, TokenStream)> {
    let min = value(input, expected)?;
    if !input.peek(Token![..=]) {
        let error = if input.peek(Token![..]) {
            "write `..=`: the range contains both of its ends".to_owned()
        } else {
            format!("expected {expected}")
        };
        return Err(input.error(error));
    }
    input.parse::<Token![..=]>()?;
    Ok((min, value(input, expected)?))
}

/// The tokens up to a comma or a range, which form a constant expression.
fn value(input: ParseStream<'_>, expected: &str) -> Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !(input.is_empty() || input.peek(Token![,]) || input.peek(Token![..])) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    if tokens.is_empty() { Err(input.error(format!("expected {expected}"))) } else { Ok(tokens) }
}

fn end(input: ParseStream<'_>) -> Result<()> {
    input.parse::<Option<Token![,]>>()?;
    if input.is_empty() { Ok(()) } else { Err(input.error("nothing else belongs here")) }
}

/// [`rule`] for a list of attributes, for tests.
#[cfg(test)]
pub(crate) fn rule_of(attributes: &str) -> Result<Option<TokenStream>> {
    let attributes = syn::parse::Parser::parse_str(Attribute::parse_outer, attributes)?;
    rule(&attributes, &quote!(i))
}
