//! What a handler has besides a job: the type of what its schedules carry.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};

use super::hidden;
use crate::diagnostics::at;
use crate::model::{Model, Trigger};
use crate::payload;

/// What makes a job one that schedules can be made for.
pub(super) fn handler(model: &Model, trigger: &Trigger, cfgs: &[&syn::Attribute]) -> Option<TokenStream> {
    if !matches!(trigger, Trigger::Handler) {
        return None;
    }
    let ident = &model.function.sig.ident;
    let span = at(ident.span());
    let private = hidden(model, span);
    let carried = payload::of(&model.arguments).map(ToTokens::to_token_stream);
    let payload = carried.unwrap_or_else(|| quote_spanned!(span=> ()));
    Some(quote_spanned! {span=>
        #(#cfgs)*
        #[allow(deprecated, reason = "a deprecated job runs until it is taken out")]
        impl #private::Handler for #ident {
            type Payload = #payload;
        }
    })
}
