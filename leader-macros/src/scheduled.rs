//! What `#[scheduled]` makes of a function: nothing. Beside it stand its record and its handle.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{ReturnType, Safety, parse_quote};

use crate::diagnostics::{Errors, at};
use crate::doc;
use crate::expand::hidden;
use crate::item::{Body, Function};
use crate::model::{Model, is_future};

/// Whether the function can be a job at all; tells why not.
pub(crate) fn can_be(function: &Function, errors: &mut Errors) -> bool {
    let sig = &function.sig;
    let mut refused = false;
    let mut refuse = |tokens: &dyn ToTokens, message: &str| {
        refused = true;
        errors.on(tokens, message);
    };
    if let Body::None(semicolon) = &function.body {
        refuse(
            semicolon,
            "a declaration has no body to schedule: a job is a free function",
        );
    }
    match (&sig.asyncness, &sig.output) {
        (Some(_), _) => {}
        (None, ReturnType::Type(_, ty)) if is_future(ty) => refuse(
            ty,
            "only an `async fn` can be scheduled: write `async fn … -> R` instead of the future",
        ),
        (None, _) => refuse(&sig.fn_token, "only an `async fn` can be scheduled: add `async`"),
    }
    if let Some(token) = &sig.constness {
        refuse(token, "a `const fn` cannot be scheduled: take `const` away");
    }
    if let Safety::Unsafe(token) = &sig.safety {
        refuse(
            token,
            "an `unsafe fn` cannot be scheduled: schedule a safe function that makes the unsafe call",
        );
    }
    if let Some(abi) = &sig.abi {
        refuse(
            abi,
            "a function with a foreign ABI cannot be scheduled: take `extern` away",
        );
    }
    if let Some(variadic) = &sig.variadic {
        refuse(
            variadic,
            "a variadic function cannot be scheduled: take a slice instead",
        );
    }
    !refused
}

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
