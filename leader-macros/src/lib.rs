//! The attribute macros of `leader-core`.
//!
//! Parse (`options`, `item`) → check (`model`, `needs`, `free`) → expand (`expand`, `doc`, `words`): parsing puts out no tokens, expanding finds no
//! mistakes. Everything below this page works on `proc_macro2` tokens, and is tested without a compiler.

mod attribute;
mod diagnostics;
mod doc;
mod expand;
mod free;
mod item;
mod model;
mod needs;
mod options;
mod payload;
mod scheduled;
mod task;
#[cfg(test)]
mod tests;
mod words;

use attribute::Attribute;
use proc_macro::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};

// Documented where `leader_core` re-exports it, so that the examples are tests of that crate.
#[allow(missing_docs, reason = "documented at its re-export")]
#[proc_macro_attribute]
pub fn leader_only(options: TokenStream, item: TokenStream) -> TokenStream {
    expanded(Attribute::LeaderOnly, options.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented at its re-export")]
#[proc_macro_attribute]
pub fn scheduled(options: TokenStream, item: TokenStream) -> TokenStream {
    expanded(Attribute::Scheduled, options.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented at its re-export")]
#[proc_macro_attribute]
pub fn task(options: TokenStream, item: TokenStream) -> TokenStream {
    expanded(Attribute::Task, options.into(), item.into()).into()
}

/// The item comes first, whatever its mistakes are: an editor that sees it keeps working on its body.
fn expanded(
    attribute: Attribute,
    options: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let mut errors = diagnostics::Errors::default();
    let options = options::parse(attribute, options, &mut errors);
    let parser = |input: ParseStream<'_>| item::Function::parse(attribute, input);
    let item = match parser.parse2(item.clone()) {
        Ok(function) => match model::validate(attribute, &options, function, &mut errors) {
            model::Item::Checked(model) => expand::expand(&model),
            model::Item::AsWritten(function) => quote!(#function),
        },
        Err(error) => {
            errors.add(error);
            item
        }
    };
    let errors = errors.into_compile_errors();
    quote!(#item #errors)
}
