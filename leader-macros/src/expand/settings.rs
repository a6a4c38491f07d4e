//! A job's settings, as calls on its record.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};

use super::{Constants, called, converted, hidden};
use crate::attribute::Attribute;
use crate::diagnostics::at;
use crate::model::{Model, Trigger};

pub(super) fn settings(model: &Model, constants: &mut Constants) -> TokenStream {
    let span = at(model.function.sig.ident.span());
    let private = hidden(model, span);
    let mut settings = TokenStream::new();
    let mut set = |word: &str, ty: TokenStream, value: TokenStream| {
        let value = constants.of(&word.to_uppercase(), &ty, &value);
        let word = Ident::new(word, span);
        settings.extend(quote_spanned!(span=> .#word(#value)));
    };
    if let Some(zone) = &model.timezone {
        let text = quote_spanned!(span=> &'static str);
        set("timezone", text, converted(model, "timezone", zone));
    }
    if let (Some(days), Some(Trigger::Cron(expr))) = (&model.days, &model.trigger) {
        // Whether they have an effect is told where they stand, and not at the expression.
        let value = called(model, "days", days, &quote!(#expr, #private::Days::#days));
        set("days", quote_spanned!(span=> #private::Days), value);
    }
    for (word, expr) in [
        ("jitter", &model.jitter),
        ("timeout", &model.timeout),
        ("grace", &model.grace),
        ("max_age", &model.max_age),
    ] {
        if let Some(expr) = expr {
            let duration = quote_spanned!(span=> ::core::time::Duration);
            set(word, duration, converted(model, "duration", expr));
        }
    }
    let retries = match model.attribute {
        Attribute::Task => "task_retries",
        Attribute::LeaderOnly | Attribute::Scheduled => "retries",
    };
    for (word, converter, expr) in [
        ("max_missed", "max_missed", &model.max_missed),
        ("retries", retries, &model.retries),
        ("concurrency", "concurrency", &model.concurrency),
    ] {
        if let Some(expr) = expr {
            let number = quote_spanned!(span=> u32);
            set(word, number, converted(model, converter, expr));
        }
    }
    // That of a task is a constant of its handle.
    if let (Some(expr), Attribute::Scheduled) = (&model.queue, model.attribute) {
        let text = quote_spanned!(span=> &'static str);
        set("queue", text, converted(model, "queue", expr));
    }
    if let Some(expr) = &model.backoff {
        let pauses = quote_spanned!(span=> #private::Backoff);
        set("backoff", pauses, converted(model, "backoff", expr));
    }
    if !model.except.is_empty() {
        let names = model.except.iter().map(|name| converted(model, "name", name));
        let texts = quote_spanned!(span=> &'static [&'static str]);
        set("except", texts, quote_spanned!(span=> &[#(#names),*]));
    }
    if !model.was.is_empty() {
        let own = &model.name;
        let names = (model.was.iter()).map(|old| called(model, "was", old, &quote!(#old, #own)));
        let texts = quote_spanned!(span=> &'static [&'static str]);
        set("was", texts, quote_spanned!(span=> &[#(#names),*]));
    }
    let words = [
        ("missed", "Missed", &model.missed),
        ("overlap", "Overlap", &model.overlap),
        ("on_loss", "OnLoss", &model.on_loss),
    ];
    let words = words.into_iter().filter_map(|(word, ty, variant)| {
        let variant = variant.as_ref()?;
        let span = at(variant.span());
        let (word, ty) = (Ident::new(word, span), Ident::new(ty, span));
        let variant = Ident::new(&variant.to_string(), span);
        let private = hidden(model, span);
        Some(quote_spanned!(span=> .#word(#private::#ty::#variant)))
    });
    let on = (model.attribute == Attribute::Scheduled).then(|| match &model.on {
        // Where there are no tasks the compiler says so at the word.
        Some(on) if on == "Fleet" => {
            let span = at(on.span());
            let private = hidden(model, span);
            quote_spanned!(span=> .on(#private::fleet_needs_the_feature_tasks()))
        }
        _ => quote_spanned!(span=> .on(#private::On::Any)),
    });
    quote!(#settings #(#words)* #on)
}
