//! Expands a type to its implementation of `Message`.

use crate::bounds;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Fields, GenericArgument, Generics, Member, PathArguments, Result, Type,
    parse_quote,
};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let inside = quote!(::whitewater::inside::message);
    bounds::none(&input.attrs)?;
    let Body { shape, pack, unpack } = match &input.data {
        Data::Struct(data) => of_struct(&data.fields, &input.ident, &inside)?,
        Data::Enum(data) if data.variants.is_empty() => {
            return Err(Error::new_spanned(&input.ident, "an enum without variants has no value to send"));
        }
        Data::Enum(data) => {
            let mut variants = Vec::new();
            for variant in &data.variants {
                bounds::none(&variant.attrs)?;
                variants.push((&variant.ident, fields(&variant.fields, &input.ident, &inside)?));
            }
            of_enum(&variants, &inside)
        }
        Data::Union(data) => {
            return Err(Error::new_spanned(data.union_token, "a union does not say which field it has"));
        }
    };
    let name = &input.ident;
    let generics = bound(input.generics.clone(), &inside);
    let (of_impl, of_type, where_clause) = generics.split_for_impl();
    // Evaluates the bounds even if nothing is sent.
    let evaluated = input.generics.params.is_empty().then(|| {
        quote! { const _: u64 = <#name as #inside::Message>::SHAPE; }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #of_impl #inside::Message for #name #of_type #where_clause {
            const SHAPE: u64 = #shape;

            #[inline]
            fn pack(
                &self,
                to: &mut #inside::BitWriter,
            ) -> ::core::result::Result<(), #inside::BitsError> {
                #pack
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn unpack(
                from: &mut #inside::BitReader<'_>,
            ) -> ::core::result::Result<Self, #inside::BitsError> {
                ::core::result::Result::Ok(#unpack)
            }
        }
        #evaluated
    })
}

struct Body {
    shape: TokenStream,
    pack: TokenStream,
    unpack: TokenStream,
}

/// The fields of a struct or of a variant, in braces and separated by commas.
struct Parts {
    /// The hash of each field, with its name.
    shapes: TokenStream,
    /// Binds each field to a name.
    pattern: TokenStream,
    /// Packs each field by that name.
    pack: TokenStream,
    /// Unpacks each field.
    unpack: TokenStream,
}

fn of_struct(of: &Fields, name: &Ident, inside: &TokenStream) -> Result<Body> {
    let Parts { shapes, pattern, pack, unpack } = fields(of, name, inside)?;
    Ok(Body {
        shape: quote!(#inside::shape("struct", &[#shapes])),
        pack: quote!(let Self { #pattern } = self; #pack),
        unpack: quote!(Self { #unpack }),
    })
}

fn of_enum(variants: &[(&Ident, Parts)], inside: &TokenStream) -> Body {
    let count = u32::try_from(variants.len()).unwrap_or(u32::MAX);
    let (mut shapes, mut packs, mut unpacks) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for (kind, (variant, Parts { shapes: parts, pattern, pack, unpack })) in (0u32..).zip(variants) {
        let name = plain(variant);
        shapes.extend(quote!(#inside::shape(#name, &[#parts]),));
        packs.extend(quote!(Self::#variant { #pattern } => { to.kind(#kind, #count)?; #pack }));
        unpacks.extend(quote!(#kind => Self::#variant { #unpack },));
    }
    Body {
        shape: quote!(#inside::shape("enum", &[#shapes])),
        pack: quote!(match self { #packs }),
        unpack: quote! {
            match from.kind(#count)? {
                #unpacks
                kind => return ::core::result::Result::Err(#inside::BitsError::Kind { kind }),
            }
        },
    }
}

fn fields(of: &Fields, name: &Ident, inside: &TokenStream) -> Result<Parts> {
    let mut parts = Parts {
        shapes: TokenStream::new(),
        pattern: TokenStream::new(),
        pack: TokenStream::new(),
        unpack: TokenStream::new(),
    };
    for (index, field) in (0u32..).zip(of) {
        let member = field.ident.clone().map_or_else(|| Member::from(index as usize), Member::from);
        let (ty, bound) = (&field.ty, format_ident!("field_{index}"));
        let by = bounds::rule(&field.attrs, inside)?
            .map_or_else(|| quote!(#inside::Message), |rule| quote!(#inside::Field<#rule>));
        let label = match &member {
            Member::Named(ident) => plain(ident),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let known = without(ty.clone(), name, inside);
        // Errors point at the type; names are resolved at this expansion.
        let span = ty.span().resolved_at(Span::call_site());
        parts.shapes.extend(quote_spanned!(span=> #inside::shape(#label, &[<#known as #by>::SHAPE]),));
        parts.pattern.extend(quote!(#member: #bound,));
        parts.pack.extend(quote_spanned!(span=> <#ty as #by>::pack(#bound, to)?;));
        parts.unpack.extend(quote_spanned!(span=> #member: <#ty as #by>::unpack(from)?,));
    }
    Ok(parts)
}

/// A name without the `r#` of keywords.
fn plain(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

/// Type parameters must be messages, too.
fn bound(mut generics: Generics, inside: &TokenStream) -> Generics {
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#inside::Message));
    }
    generics
}

/// Replaces the derived type by a stand-in, because its own hash is not known while it is computed.
fn without(mut ty: Type, name: &Ident, inside: &TokenStream) -> Type {
    replace(&mut ty, name, inside);
    ty
}

fn replace(ty: &mut Type, name: &Ident, inside: &TokenStream) {
    match ty {
        Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last();
            if path.path.segments.len() == 1
                && last.is_some_and(|last| last.ident == *name || last.ident == "Self")
            {
                *ty = parse_quote!(#inside::Itself);
                return;
            }
            for segment in &mut path.path.segments {
                let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
                for argument in &mut arguments.args {
                    if let GenericArgument::Type(ty) = argument {
                        replace(ty, name, inside);
                    }
                }
            }
        }
        Type::Array(array) => replace(&mut array.elem, name, inside),
        Type::Group(group) => replace(&mut group.elem, name, inside),
        Type::Paren(paren) => replace(&mut paren.elem, name, inside),
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(|ty| replace(ty, name, inside)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::rule_of;

    fn refused(item: &str) -> String {
        expand(&syn::parse_str(item).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn what_has_no_bits_is_refused_with_the_reason() {
        for (item, reason) in [
            ("enum Never {}", "an enum without variants has no value to send"),
            ("union Either { a: u8, b: u8 }", "a union does not say which field it has"),
            ("#[bits(0..=3)] struct A(u8);", "`#[bits]` belongs to a field"),
            ("enum A { #[max_len(3)] B(String) }", "`#[max_len]` belongs to a field"),
            ("struct A(#[bits(0..3)] u8);", "write `..=`: the range contains both of its ends"),
            ("struct A(#[bits(3)] u8);", "expected a range, as in `#[bits(0..=63)]`"),
            ("struct A(#[bits(0..=3, 1)] u8);", "nothing else belongs here"),
            ("struct A(#[bits(0..=1.5)] u8);", "`#[bits]` is for whole numbers; `#[float]` is for others"),
            ("struct A(#[bits(0..=3)] #[bits(0..=4)] u8);", "one `#[bits]` or `#[float]` a field"),
            ("struct A(#[max_len()] String);", "expected a length, as in `#[max_len(200)]`"),
        ] {
            let found = refused(item);
            assert!(found.ends_with(reason), "{item}: {found}");
        }
        let resolution = refused("struct A(#[float(0.0..=1.0)] f32);");
        assert!(resolution.contains("as in `#[float(-512.0..=512.0, 0.01)]`"), "{resolution}");
        assert!(refused("struct A(#[bits] u8);").contains("expected attribute arguments in parentheses"));
    }

    #[test]
    fn bounds_are_constant_expressions() {
        let rule = |attributes| rule_of(attributes).unwrap().unwrap().to_string().replace(' ', "");
        assert_eq!(rule("#[bits(-1..=MAX - 1)]"), "i::By<i::Bits<{(-1)asi128},{(MAX-1)asi128}>>");
        assert_eq!(
            rule("#[max_len(limits::NAMES, 9)] #[bits(0..=1)]"),
            "i::By<i::MaxLen<{limits::NAMES},i::By<i::MaxLen<{9},i::By<i::Bits<{(0)asi128},{(1)asi128}>>>>>>"
        );
        assert!(rule_of("#[serde(default)]").unwrap().is_none(), "what others have is theirs");
    }
}
