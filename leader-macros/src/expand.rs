//! The tokens of a function that has been found good. Nothing here can fail, and nothing here decides how a job behaves: the
//! tokens are one record, two function pointers and a gate, and the rest is ordinary code of the core crate.

mod handler;
mod settings;
mod task;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, Pat, ReturnType, Type, parse_quote};

use crate::attribute::Attribute;
use crate::diagnostics::at;
use crate::doc;
use crate::item::Body;
use crate::model::{Argument, Model, Trigger, without_impl_trait};
use crate::scheduled;
use handler::handler;
use settings::settings;

pub(crate) fn expand(model: &Model) -> TokenStream {
    let gated = match model.attribute {
        Attribute::LeaderOnly => gated(model),
        Attribute::Scheduled => scheduled::expand(model),
        Attribute::Task => task::expand(model),
    };
    let handle = model.trigger.as_ref().map(|trigger| handle(model, trigger));
    quote!(#gated #handle)
}

/// The function, let in only on the leader.
fn gated(model: &Model) -> TokenStream {
    let function = &model.function;
    let Body::Block(written) = &function.body else {
        return function.to_token_stream();
    };
    let name_span = at(function.sig.ident.span());
    let private = hidden(model, name_span);
    let mut sig = function.sig.clone();
    let output = output_type(model);
    let arrow = match &function.sig.output {
        ReturnType::Type(arrow, _) => *arrow,
        ReturnType::Default => syn::Token![->](name_span),
    };
    let gated_output = quote_spanned!(name_span=> ::core::result::Result<#output, #private::Skipped>);
    sig.output = ReturnType::Type(arrow, Box::new(Type::Verbatim(gated_output)));

    let (record, asked) = registration(model, name_span);
    let body = body(model, written);
    let gate = quote_spanned! {name_span=>
        #record
        match #private::enter(#asked) {
            ::core::result::Result::Ok(entry) => ::core::result::Result::Ok(entry.run(async move #body).await),
            ::core::result::Result::Err(skipped) => ::core::result::Result::Err(skipped),
        }
    };
    let block = group_of(Delimiter::Brace, gate, at(written.span()));
    let (docs, vis) = (doc::with_ours(model), &function.vis);
    quote!(#(#docs)* #vis #sig #block)
}

/// What goes to the link-time list, and what the gate is asked for. It stands inside the body, where generics and methods are no
/// obstacle.
fn registration(model: &Model, span: Span) -> (TokenStream, TokenStream) {
    let private = hidden(model, span);
    let (record, group_const, asked) = if model.trigger.is_some() {
        let job = &model.function.sig.ident;
        let job = quote_spanned!(span=> <#job as #private::Job>);
        (quote!(#job::RECORD), None, quote!(#job::GROUP))
    } else {
        let (name, group) = (name(model), group(model));
        let asked = quote_spanned!(span=> __LEADER_GROUP);
        let group_const = quote_spanned!(span=> const __LEADER_GROUP: &str = #group;);
        let record = quote_spanned!(span=> #private::Record::new(#name, #asked, ::core::module_path!()));
        (record, Some(group_const), asked)
    };
    let submit = (!model.faulty).then(|| {
        quote_spanned! {span=>
            const _: () = {
                #private::submit! { #record }
            };
        }
    });
    (quote!(#group_const #submit), asked)
}

/// The written block, after what an `async fn` does by itself: it moves its arguments in and takes them apart in their order, and
/// it knows its return type.
fn body(model: &Model, written: &Group) -> Group {
    let arguments = model.arguments.iter().map(argument);
    let known_type = known_type(model);
    let span = at(written.span());
    // Our braces' place is theirs, but they are ours: no lint calls them needless, and in every edition the block's temporaries
    // are dropped before the arguments.
    let mut block = written.clone();
    block.set_span(span);
    group_of(Delimiter::Brace, quote!(#(#arguments)* #known_type #block), span)
}

fn argument(argument: &Argument) -> TokenStream {
    let Argument {
        name, attrs, pattern, ..
    } = argument;
    let span = at(name.span());
    let moves =
        matches!(pattern, Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() && !starts_big(&pat.ident));
    // What the pattern leaves behind lives as long as the arguments do.
    let whole = (!moves).then(|| {
        let cfgs = attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
        quote_spanned!(span=> #(#cfgs)* let #name = #name;)
    });
    let unused = matches!(pattern, Pat::Ident(pat) if pat.ident.to_string().starts_with('_')).then(|| {
        quote_spanned!(span=> #[allow(clippy::no_effect_underscore_binding, reason = "it lives as long as the arguments do")])
    });
    quote_spanned!(span=> #whole #unused #(#attrs)* let #pattern = #name;)
}

fn starts_big(ident: &Ident) -> bool {
    ident.to_string().starts_with(char::is_uppercase)
}

/// Tells an `async` block the type that an `async fn` has from its signature, so that `?`, `return` and coercions work.
fn known_type(model: &Model) -> Option<TokenStream> {
    let ty = output_type(model);
    if matches!(ty, Type::ImplTrait(_)) {
        return None;
    }
    let span = at(span_of(&ty));
    let ty = without_impl_trait(&ty).0;
    Some(quote_spanned! {span=>
        #[allow(
            unreachable_code,
            clippy::diverging_sub_expression,
            clippy::empty_loop,
            clippy::let_unit_value,
            clippy::needless_return,
            reason = "never run: it tells the block its type"
        )]
        if false {
            let __leader_returned: #ty = loop {};
            return __leader_returned;
        }
    })
}

/// The hidden type beside a job, of its name and visibility: the job's handle, and the record's place.
fn handle(model: &Model, trigger: &Trigger) -> TokenStream {
    let function = &model.function;
    let (vis, ident) = (&function.vis, &function.sig.ident);
    let cfgs: Vec<_> = function
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .collect();
    let span = at(ident.span());
    let private = hidden(model, span);
    let (name, group) = (name(model), group(model));
    let record = quote_spanned!(span=> #private::Record::new(Self::NAME, Self::GROUP, ::core::module_path!()));
    let record = if model.faulty {
        record
    } else {
        let (constants, job) = job(model, trigger);
        if constants.is_empty() {
            quote!(#record #job)
        } else {
            let whole = quote!(#constants #record #job);
            group_of(Delimiter::Brace, whole, span).to_token_stream()
        }
    };
    let handler = handler(model, trigger, &cfgs);
    quote_spanned! {span=>
        #(#cfgs)*
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

        #(#cfgs)*
        #[allow(deprecated, reason = "a deprecated job runs until it is taken out")]
        impl #private::Job for #ident {
            const NAME: &'static str = #name;
            const GROUP: &'static str = #group;
            const RECORD: #private::Record = #record;
        }

        #handler
    }
}

/// What makes a record a job: the trigger, how to make the body's future, what its arguments need, and the settings. Before it
/// stand the checked values, each in a constant of its own: the compiler then tells the mistakes of all of them at once.
fn job(model: &Model, trigger: &Trigger) -> (TokenStream, TokenStream) {
    let span = at(model.function.sig.ident.span());
    let private = hidden(model, span);
    let mut constants = Constants {
        span,
        declared: TokenStream::new(),
    };
    let schedule = quote_spanned!(span=> #private::Trigger);
    let (trigger, extract, need) = match trigger {
        Trigger::Cron(expr) => (constants.of("CRON", &schedule, &cron(model, expr)), "extract", "need"),
        Trigger::Every(expr) => {
            let every = converted(model, "every", expr);
            (constants.of("EVERY", &schedule, &every), "extract", "need")
        }
        Trigger::Handler => (
            quote_spanned!(span=> #private::Trigger::Handler),
            "extract_handling",
            "need_handling",
        ),
        Trigger::WhileLeading | Trigger::Wrong => (
            quote_spanned!(span=> #private::Trigger::WhileLeading),
            "extract_leading",
            "need_leading",
        ),
    };
    // The compiler's complaint about an argument stands on the argument's type.
    let handles = extract == "extract_handling";
    let of = &model.function.sig.ident;
    let per_argument = |function: &'static str, from: &'static str| {
        model.arguments.iter().map(move |Argument { ty, .. }| {
            let place = span_of(ty);
            let (function, from) = (Ident::new(function, at(place)), Ident::new(from, at(span)));
            let private = hidden(model, place);
            let called = group_of(Delimiter::Parenthesis, quote!(#from), at(place));
            // Of a handler it depends on what its schedules carry.
            let for_whom = handles.then(|| quote_spanned!(at(place)=> , #of));
            quote_spanned!(at(place)=> #private::#function::<#ty #for_whom> #called)
        })
    };
    let (extracts, needs) = (per_argument(extract, "given"), per_argument(need, "needs"));
    let (given, needed) = if model.arguments.is_empty() {
        (quote!(_), quote!(_))
    } else {
        (quote_spanned!(span=> given), quote_spanned!(span=> needs))
    };
    let ident = &model.function.sig.ident;
    let output = output(model);
    let settings = settings(model, &mut constants);
    let made = Ident::new(model.attribute.body(), span);
    let body = if handles {
        // A payload may not be what the handler takes: that is the run's end, and no panic.
        quote_spanned! {span=>
            #private::handled(|| ::core::result::Result::Ok(#private::#made(#ident(#(#extracts?),*), #output)))
        }
    } else {
        quote_spanned!(span=> #private::#made(#ident(#(#extracts),*), #output))
    };
    let job = quote_spanned! {span=>
        .job(
            #trigger,
            |#given| #body,
            |#needed| { #(#needs;)* },
        )
        #settings
    };
    (constants.declared, job)
}

/// The values that are checked when the program is compiled.
struct Constants {
    span: Span,
    declared: TokenStream,
}

impl Constants {
    /// The name of a new one.
    fn of(&mut self, word: &str, ty: &TokenStream, value: &TokenStream) -> TokenStream {
        let name = Ident::new(&format!("__LEADER_{word}"), self.span);
        self.declared
            .extend(quote_spanned!(self.span=> const #name: #ty = #value;));
        name.to_token_stream()
    }
}

/// The expression is checked together with what `days` says.
fn cron(model: &Model, expr: &Expr) -> TokenStream {
    match &model.days {
        None => converted(model, "cron", expr),
        Some(days) => {
            let private = hidden(model, model.function.sig.ident.span());
            called(model, "cron_with", expr, &quote!(#expr, #private::Days::#days))
        }
    }
}

/// How the body's value becomes a result: a call that stands on the return type.
fn output(model: &Model) -> TokenStream {
    let ty = output_type(model);
    let span = at(span_of(&ty));
    let private = hidden(model, span);
    let ty = without_impl_trait(&ty).0;
    let output = Ident::new(model.attribute.output(), span);
    quote_spanned!(span=> #private::#output::<#ty>())
}

fn output_type(model: &Model) -> Type {
    match &model.function.sig.output {
        ReturnType::Default => {
            let span = at(model.function.sig.ident.span());
            Type::Verbatim(quote_spanned!(span=> ()))
        }
        ReturnType::Type(_, ty) => (**ty).clone(),
    }
}

/// A plain function may have any name that Rust allows; the state of a job hangs on its name, in the store. One that is not ASCII was told.
fn name(model: &Model) -> TokenStream {
    let text = &model.name;
    let plain = model.trigger.is_none() && model.attribute != Attribute::Task;
    if model.own_name && (plain || !text.value().is_ascii()) {
        return text.to_token_stream();
    }
    converted(model, "name", &parse_quote!(#text))
}

fn group(model: &Model) -> TokenStream {
    if let Some(expr) = &model.group {
        return converted(model, "name", expr);
    }
    let span = at(model.function.sig.ident.span());
    let private = hidden(model, span);
    quote_spanned!(span=> #private::DEFAULT_GROUP)
}

/// A value of an option in a call of its converter, a `const fn` that panics about what is wrong with it: evaluated in a `const`,
/// that is a compile error, and because every token of the call lies on the value, the value is what it underlines.
fn converted(model: &Model, converter: &str, value: &Expr) -> TokenStream {
    called(model, converter, value, &value.to_token_stream())
}

/// Such a call with further arguments: `place` is what it underlines.
fn called(model: &Model, converter: &str, place: &impl ToTokens, arguments: &TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = place.to_token_stream().into_iter().collect();
    let first = tokens.first().map_or_else(Span::call_site, TokenTree::span);
    let last = tokens.last().map_or(first, TokenTree::span);
    let private = hidden(model, first);
    let converter = Ident::new(converter, at(first));
    let arguments = group_of(Delimiter::Parenthesis, arguments.clone(), at(last));
    quote_spanned!(at(first)=> #private::#converter #arguments)
}

/// `::leader_core::__private`, lying on `place` wherever the path itself was written.
pub(crate) fn hidden(model: &Model, place: Span) -> TokenStream {
    let krate = model.krate.to_token_stream().into_iter().map(|mut token| {
        token.set_span(token.span().located_at(place));
        token
    });
    quote_spanned!(at(place)=> #(#krate)*::__private)
}

fn span_of(tokens: &impl ToTokens) -> Span {
    let first = tokens.to_token_stream().into_iter().next();
    first.map_or_else(Span::call_site, |token| token.span())
}

fn group_of(delimiter: Delimiter, stream: TokenStream, span: Span) -> Group {
    let mut group = Group::new(delimiter, stream);
    group.set_span(span);
    group
}
