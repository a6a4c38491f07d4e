//! What `#[scheduled]` makes of a function: nothing. Beside it stand its record and its handle.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::parse_quote;

use crate::diagnostics::at;
use crate::doc;
use crate::expand::hidden;
use crate::item::Function;
use crate::model::Model;

/// The function as it was written, and what goes to the link-time list.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let mut attrs = doc::with_ours(model);
    attrs.push(parse_quote!(#[allow(clippy::unused_async, reason = "a job is async, whatever it awaits")]));
    let function = Function {
        attrs,
        ..model.function.clone()
    };
    // A method has no place for an item beside it; it was refused.
    if model.faulty {
        return function.to_token_stream();
    }
    let job = &model.function.sig.ident;
    let span = at(job.span());
    let private = hidden(model, span);
    let cfgs = model.function.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let registered = quote_spanned! {span=>
        #(#cfgs)*
        const _: () = {
            #private::submit! { <#job as #private::Job>::RECORD }
        };
    };
    quote!(#function #registered)
}
