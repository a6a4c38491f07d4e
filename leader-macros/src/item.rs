//! The annotated function, with its body kept as the tokens it was written in.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt};
use syn::parse::ParseStream;
use syn::{Signature, Token, Visibility};

use crate::attribute::Attribute;

#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) attrs: Vec<syn::Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Body,
}

#[derive(Clone)]
pub(crate) enum Body {
    /// The braces with the statements. They are never opened: that would take the invisible brackets off what a
    /// `macro_rules!` variable has brought, and `$sum * 2` would come to mean another thing.
    Block(Group),
    /// A declaration.
    None(Token![;]),
}

impl Function {
    /// Reads the function that an attribute stands on.
    pub(crate) fn parse(attribute: Attribute, input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(syn::Attribute::parse_outer)?;
        let vis = input.parse()?;
        let starts_function = input.peek(Token![fn])
            || input.peek(Token![async])
            || input.peek(Token![const])
            || input.peek(Token![unsafe])
            || input.peek(Token![extern]);
        if !starts_function {
            return Err(input.error(format!("{attribute} stands on an `async fn`")));
        }
        let sig = input.parse()?;
        let body = if input.peek(Token![;]) {
            Body::None(input.parse()?)
        } else {
            match input.parse()? {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Body::Block(group),
                other => return Err(syn::Error::new_spanned(other, "expected the function's body")),
            }
        };
        Ok(Self { attrs, vis, sig, body })
    }
}

/// The function as it was written.
impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.append_all(&self.attrs);
        self.vis.to_tokens(tokens);
        self.sig.to_tokens(tokens);
        match &self.body {
            Body::Block(group) => group.to_tokens(tokens),
            Body::None(semicolon) => semicolon.to_tokens(tokens),
        }
    }
}
