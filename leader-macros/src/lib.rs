//! The attribute macros of `leader-core`.
//!
//! Parse (`options`, `item`) → check (`model`, `needs`) → expand (`expand`, `doc`, `words`): parsing puts out no tokens, expanding finds no
//! mistakes. Everything below this page works on `proc_macro2` tokens, and is tested without a compiler.

mod diagnostics;
mod doc;
mod expand;
mod item;
mod model;
mod needs;
mod options;
mod payload;
#[cfg(test)]
mod tests;
mod words;

use proc_macro::TokenStream;
use quote::quote;

// Documented where `leader_core` re-exports it, so that the examples are tests of that crate.
#[allow(missing_docs, reason = "documented at its re-export")]
#[proc_macro_attribute]
pub fn leader_only(options: TokenStream, item: TokenStream) -> TokenStream {
    expanded(options.into(), item.into()).into()
}

/// The item comes first, whatever its mistakes are: an editor that sees it keeps working on its body.
fn expanded(options: proc_macro2::TokenStream, item: proc_macro2::TokenStream) -> proc_macro2::TokenStream {
    let mut errors = diagnostics::Errors::default();
    let options = options::parse(options, &mut errors);
    let item = match syn::parse2::<item::Function>(item.clone()) {
        Ok(function) => match model::validate(&options, function, &mut errors) {
            model::Item::Gated(model) => expand::expand(&model),
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
