//! What the attribute adds to the function's documentation.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Expr, Lit, LitStr, Meta, parse_quote};

use crate::attribute::Attribute;
use crate::model::{Model, Trigger};
use crate::words;

/// The function's attributes with our lines put in: where it runs before the first heading, what it returns at the end.
pub(crate) fn with_ours(model: &Model) -> Vec<syn::Attribute> {
    let mut attrs = model.function.attrs.clone();
    let lines: Vec<_> = attrs.iter().map(line).collect();
    let first_doc = lines.iter().position(Option::is_some);
    let heading = first_heading(&lines).filter(|at| Some(*at) != first_doc);
    let after_docs = lines.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
    let told_errors = lines.iter().flatten().any(|line| line.trim() == "# Errors");

    let place = heading.unwrap_or(after_docs);
    let mut ours = Vec::new();
    if place > 0 && lines[place - 1].as_deref().is_some_and(|line| !line.trim().is_empty()) {
        ours.push(doc(""));
    }
    ours.push(doc(&format!(" {}", where_it_runs(model))));
    let mut errors = Vec::new();
    if !told_errors && model.attribute == Attribute::LeaderOnly {
        errors.extend([
            doc(""),
            doc(" # Errors"),
            doc(" `Skipped` where this instance does not lead the group; the body has not run then."),
        ]);
    }
    if heading.is_some() {
        ours.push(doc(""));
    }
    attrs.splice(after_docs..after_docs, errors);
    attrs.splice(place..place, ours);
    attrs
}

/// The first heading. In an example, what rustdoc hides begins like one.
fn first_heading(lines: &[Option<String>]) -> Option<usize> {
    let mut in_example = false;
    lines.iter().position(|line| {
        let line = line.as_deref().unwrap_or_default().trim_start();
        in_example ^= line.starts_with("```") || line.starts_with("~~~");
        !in_example && line.starts_with("# ")
    })
}

fn where_it_runs(model: &Model) -> String {
    let named = |name: &Option<Expr>| name.as_ref().map_or_else(|| "default".to_owned(), written);
    let (group, queue) = (named(&model.group), named(&model.queue));
    let place = match model.attribute {
        Attribute::Task => return task(model, &queue),
        Attribute::Scheduled if model.on.as_ref().is_some_and(|on| on == "Fleet") => {
            format!("Runs on any one worker of the queue `{queue}`, by the schedule of group `{group}`,")
        }
        Attribute::LeaderOnly => format!("Runs on the leader of group `{group}`"),
        Attribute::Scheduled => format!("Runs on any one instance of group `{group}`"),
    };
    let line = match &model.trigger {
        Some(Trigger::Wrong) if model.attribute == Attribute::Scheduled => return format!("{place}."),
        None | Some(Trigger::Wrong) => return format!("Runs only on the leader of group `{group}`."),
        Some(Trigger::WhileLeading) => {
            return format!("Runs on the leader of group `{group}` for as long as it leads.");
        }
        Some(Trigger::Handler) => {
            return format!(
                "Runs on the leader of group `{group}`, or of the group of each schedule that is made for it at run time."
            );
        }
        Some(Trigger::Cron(expr)) => {
            let when = schedule(expr, words::cron).unwrap_or_else(|| format!(", at `{}`", written(expr)));
            format!("{place}{when} ({})", reading(model))
        }
        Some(Trigger::Every(expr)) => {
            let when = schedule(expr, words::every).unwrap_or_else(|| format!(", every `{}`", written(expr)));
            format!("{place}{when}")
        }
    };
    match &model.jitter {
        Some(jitter) => format!("{line}, {}.", spread(jitter, model.trigger.as_ref())),
        None => format!("{line}."),
    }
}

/// What becomes of a task.
fn task(model: &Model, queue: &str) -> String {
    let retries = match model.retries.as_ref() {
        None => "up to 3 retries".to_owned(),
        Some(Expr::Lit(syn::ExprLit {
            lit: Lit::Int(count), ..
        })) => match count.base10_digits() {
            "0" => "no retries".to_owned(),
            "1" => "up to 1 retry".to_owned(),
            count => format!("up to {count} retries"),
        },
        Some(expr) => format!("up to `{}` retries", written(expr)),
    };
    let timeout = model
        .timeout
        .as_ref()
        .map(|timeout| format!(", at most `{}` each time", written(timeout)));
    let most = model.concurrency.as_ref().map(|most| {
        let most = match most {
            Expr::Lit(_) => written(most),
            _ => format!("`{}`", written(most)),
        };
        format!(", at most {most} at once on one instance")
    });
    let (timeout, most) = (timeout.unwrap_or_default(), most.unwrap_or_default());
    format!("Task of the queue `{queue}`: a worker runs it when it is due, with {retries}{timeout}{most}.")
}

/// What jitter does to ticks: never so much that one is due when the next is planned.
fn spread(jitter: &Expr, trigger: Option<&Trigger>) -> String {
    let text = written(jitter);
    let most = literal(jitter).and_then(|text| words::milliseconds(&text));
    let period = match trigger {
        Some(Trigger::Every(period)) => literal(period).and_then(|text| words::milliseconds(&text)),
        _ => None,
    };
    match (most, period) {
        (Some(most), Some(period)) if most < period => format!("each time up to `{text}` later"),
        (Some(_), Some(_)) => "each time later by less than the period".to_owned(),
        _ => format!("each time up to `{text}` later, less than the distance to the next tick"),
    }
}

/// In words and as written, when it is a literal that is easily put into words.
fn schedule(expr: &Expr, words: fn(&str) -> Option<String>) -> Option<String> {
    let text = literal(expr)?;
    Some(format!(" {}: `{text}`", words(&text)?))
}

/// Where and how an expression is read.
fn reading(model: &Model) -> String {
    let zone = model.timezone.as_ref().map(|zone| match literal(zone) {
        Some(name) => name,
        None => format!("`{}`", written(zone)),
    });
    let days = match &model.days {
        Some(days) if days == "And" => "both day fields must match, ",
        Some(_) => "either day field may match, ",
        None => "",
    };
    format!("{days}{}", zone.as_deref().unwrap_or("UTC"))
}

/// A literal's text, or an expression as it was written.
fn written(expr: &Expr) -> String {
    literal(expr).unwrap_or_else(|| expr.to_token_stream().to_string().replace(" :: ", "::"))
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(syn::ExprLit {
            lit: Lit::Str(text), ..
        }) => Some(text.value()),
        _ => None,
    }
}

fn line(attr: &syn::Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attr.meta else { return None };
    match &meta.value {
        Expr::Lit(syn::ExprLit {
            lit: Lit::Str(text), ..
        }) if meta.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

fn doc(line: &str) -> syn::Attribute {
    let line = LitStr::new(line, Span::mixed_site());
    parse_quote!(#[doc = #line])
}
