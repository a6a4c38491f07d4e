//! What `#[task]` makes of a function: nothing. Beside it stand its handle, what it takes, and its record.

use proc_macro2::{Delimiter, Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse_quote;

use super::{Constants, converted, group_of, hidden, name, output, settings, span_of};
use crate::diagnostics::at;
use crate::doc;
use crate::item::Function;
use crate::model::{Argument, Model};
use crate::task::Carried;

/// The function as it was written, and all that is found by its name.
pub(super) fn expand(model: &Model) -> TokenStream {
    let mut attrs = doc::with_ours(model);
    attrs.push(parse_quote!(#[allow(clippy::unused_async, reason = "a task is async, whatever it awaits")]));
    let function = Function {
        attrs,
        ..model.function.clone()
    };
    // A method has no place for an item beside it; it was refused.
    if model.function.sig.receiver().is_some() {
        return function.to_token_stream();
    }
    let (vis, ident) = (&model.function.vis, &model.function.sig.ident);
    let cfgs = model.function.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let cfgs = quote!(#(#cfgs)*);
    let span = at(ident.span());
    let private = hidden(model, span);
    let (name, queue, record) = (name(model), queue(model), record(model));
    let payload = match &model.carried {
        Carried::First(ty) => ty.to_token_stream(),
        Carried::Nothing | Carried::Wrong => quote_spanned!(span=> ()),
    };
    let registered = (!model.faulty).then(|| {
        quote_spanned! {span=>
            #cfgs
            const _: () = {
                #private::submit! { <#ident as #private::TaskHandler>::RECORD }
            };
        }
    });
    // What a derive has not made is told where the payload stands.
    let of = {
        let span = at(span_of(&payload));
        let (private, mut ident) = (hidden(model, span), ident.clone());
        ident.set_span(ident.span().located_at(span));
        quote_spanned!(span=> #private::PayloadOf<#ident>)
    };
    let handle = quote_spanned! {span=>
        #cfgs
        #[doc(hidden)]
        #[allow(
            non_camel_case_types,
            missing_debug_implementations,
            missing_copy_implementations,
            unreachable_pub,
            dead_code,
            reason = "the handle has the name of its function and is never a value"
        )]
        #vis enum #ident {}

        #cfgs
        #[allow(deprecated, reason = "a deprecated task runs until it is taken out")]
        impl #private::TaskHandler for #ident {
            const NAME: &'static str = #name;
            const QUEUE: &'static str = #queue;
            type Payload = #payload;
            const RECORD: #private::TaskRecord = #record;
        }

        #cfgs
        #[allow(deprecated, reason = "a deprecated payload is carried until it is taken out")]
        impl #of for #payload {}
    };
    quote!(#function #registered #handle)
}

fn queue(model: &Model) -> TokenStream {
    if let Some(expr) = &model.queue {
        return converted(model, "queue", expr);
    }
    let span = at(model.function.sig.ident.span());
    let private = hidden(model, span);
    quote_spanned!(span=> #private::DEFAULT_QUEUE)
}

/// One constant: the names, how an attempt's future is made, what the arguments need, and the settings.
fn record(model: &Model) -> TokenStream {
    let span = at(model.function.sig.ident.span());
    let private = hidden(model, span);
    let new = |run: TokenStream, needs: TokenStream| {
        quote_spanned! {span=>
            #private::TaskRecord::new(
                Self::NAME,
                Self::QUEUE,
                ::core::module_path!(),
                #run,
                #needs,
            )
        }
    };
    if model.faulty {
        return new(
            quote_spanned!(span=> |_| ::core::unreachable!()),
            quote_spanned!(span=> |_| {}),
        );
    }
    let ident = &model.function.sig.ident;
    let carries = matches!(model.carried, Carried::First(_));
    let payload = carries.then(|| quote_spanned!(span=> #private::task_payload::<#ident>(given)?,));
    let others = model.arguments.iter().skip(usize::from(carries));
    // The compiler's complaint about an argument stands on the argument's type.
    let per_argument = |function: &'static str, from: &'static str| {
        others.clone().map(move |Argument { ty, .. }| {
            let place = span_of(ty);
            let (function, from) = (Ident::new(function, at(place)), Ident::new(from, at(span)));
            let private = hidden(model, place);
            let called = group_of(Delimiter::Parenthesis, quote!(#from), at(place));
            quote_spanned!(at(place)=> #private::#function::<#ty> #called)
        })
    };
    let (extracts, needs) = (
        per_argument("extract_task", "given"),
        per_argument("need_task", "needs"),
    );
    let pattern = |used: bool, name: &str| {
        let name = if used { name } else { "_" };
        let name: TokenStream = name.parse().expect("a name or `_`");
        name.into_iter().map(move |mut token| {
            token.set_span(span);
            token
        })
    };
    let (given, needed) = (
        pattern(!model.arguments.is_empty(), "given").collect::<TokenStream>(),
        pattern(others.clone().next().is_some(), "needs").collect::<TokenStream>(),
    );
    let output = output(model);
    let called = quote_spanned!(span=> #private::open_body(#ident(#payload #(#extracts),*), #output));
    let body = if carries {
        // A payload may not be what the task takes: that is the attempt's end, and no panic.
        quote_spanned!(span=> #private::handled(|| ::core::result::Result::Ok(#called)))
    } else {
        called
    };
    let mut constants = Constants {
        span,
        declared: TokenStream::new(),
    };
    let settings = settings(model, &mut constants);
    let record = new(
        quote_spanned!(span=> |#given| #body),
        quote_spanned!(span=> |#needed| { #(#needs;)* }),
    );
    if constants.declared.is_empty() {
        return quote!(#record #settings);
    }
    let declared = constants.declared;
    group_of(Delimiter::Brace, quote!(#declared #record #settings), span).to_token_stream()
}
