//! What options need of each other.

use proc_macro2::Span;
use syn::{Expr, ExprLit, Lit};

use crate::attribute::Attribute;
use crate::diagnostics::Errors;
use crate::options::{Key, Options, Value};

/// What starts a body.
pub(crate) const TRIGGERS: &[Key] = &[Key::Cron, Key::Every, Key::WhileLeading, Key::Handler];
const NEED_CRON: &[Key] = &[Key::Timezone, Key::Days];
const NEED_SCHEDULE: &[Key] = &[
    Key::Jitter,
    Key::Timeout,
    Key::Grace,
    Key::Missed,
    Key::MaxMissed,
    Key::MaxAge,
    Key::Overlap,
    Key::OnLoss,
    Key::Retries,
    Key::Backoff,
    Key::Except,
    Key::Was,
];
const NO_TICKS: &str = "a `while_leading` body has no ticks; it lives as long as the leadership";

/// One trigger, and no option that it has no use for.
pub(crate) fn check(attribute: Attribute, options: &Options, errors: &mut Errors) {
    if attribute == Attribute::Task {
        check_backoff(attribute, options, errors);
        return;
    }
    let mut triggers = options.among(TRIGGERS);
    let first = triggers.next();
    for further in triggers {
        let (word, first) = (further.key.word(), first.map_or("", |first| first.key.word()));
        errors.on(
            &further.at,
            format!("`{word}` and `{first}` exclude each other: a job has one trigger"),
        );
    }
    let first = first.map(|first| first.key);
    if attribute == Attribute::Scheduled {
        check_scheduled(options, errors);
        if first.is_none() {
            return;
        }
    }
    if options.get(Key::Cron).is_none() {
        for given in options.among(NEED_CRON) {
            let word = given.key.word();
            errors.on(
                &given.at,
                format!("`{word}` needs `cron`: {}", without_cron(given.key, first)),
            );
        }
    }
    let message = match first {
        Some(Key::Cron | Key::Every | Key::Handler) => {
            if let (Some(Key::Handler), Some(was)) = (first, options.get(Key::Was)) {
                let message = "`was` needs `cron` or `every`: the schedules of a handler know it by its name; `name = \"..\"` keeps that when the \
                               function is renamed";
                errors.on(&was.at, message.to_owned());
            }
            check_missed(options, errors);
            check_backoff(attribute, options, errors);
            return;
        }
        Some(_) => NO_TICKS.to_owned(),
        None => format!("add `{}` or `{}`", Key::Cron.example(), Key::Every.example()),
    };
    for given in options.among(NEED_SCHEDULE) {
        let word = given.key.word();
        errors.on(&given.at, format!("`{word}` needs `cron` or `every`: {message}"));
    }
}

/// Where the ticks run, and that there are any.
fn check_scheduled(options: &Options, errors: &mut Errors) {
    check_on(options, errors);
    let mut lacking = Vec::new();
    if options.get(Key::On).is_none() {
        let on = Key::On.example();
        lacking.push(format!(
            "`on`, which says where its ticks run: write `{on}` for whatever instance comes first, or `on = \"fleet\"` for the workers \
             of a queue"
        ));
    }
    if options.among(TRIGGERS).next().is_none() {
        lacking.push(format!(
            "a schedule: add `{}` or `{}`",
            Key::Cron.example(),
            Key::Every.example()
        ));
    }
    for lacking in lacking {
        errors.add(syn::Error::new(
            Span::call_site(),
            format!("`#[scheduled]` needs {lacking}"),
        ));
    }
}

/// What has a meaning in one of the places only.
fn check_on(options: &Options, errors: &mut Errors) {
    let Some(Value::Literal(on)) = options.get(Key::On).map(|given| &given.value) else {
        return;
    };
    if on.value() == "fleet" {
        for given in options.among(&[Key::Overlap]) {
            errors.on(
                &given.at,
                "`overlap` has no meaning with `on = \"fleet\"`: each tick becomes a task, and the tasks of a job run beside each other; write \
                 `concurrency = 1` for one at a time on each instance, or `on = \"any\"`",
            );
        }
        return;
    }
    for given in options.among(&[Key::Queue, Key::Concurrency]) {
        let word = given.key.word();
        errors.on(
            &given.at,
            format!(
                "`{word}` needs `on = \"fleet\"`: with `on = \"any\"` whoever claims a tick runs it, and nothing waits in a queue"
            ),
        );
    }
}

/// The bounds of a catch-up need one that they can bound.
fn check_missed(options: &Options, errors: &mut Errors) {
    let word = match options.get(Key::Missed).map(|given| &given.value) {
        Some(Value::Literal(word)) => word.value(),
        Some(_) => return,
        None => "latest".to_owned(),
    };
    if let Some(given) = options.get(Key::MaxMissed)
        && word != "all"
    {
        let message = format!(
            "`max_missed` needs `missed = \"all\"`: with `missed = \"{word}\"`, {}",
            if word == "skip" {
                "no missed tick runs"
            } else {
                "which is the default, one run stands for all missed ticks"
            }
        );
        errors.on(&given.at, message);
    }
    if let Some(given) = options.get(Key::MaxAge)
        && word == "skip"
    {
        errors.on(
            &given.at,
            "`max_age` needs `missed = \"latest\"` or `missed = \"all\"`: with `missed = \"skip\"` no missed tick runs, however young",
        );
    }
}

/// A pause needs a try after it.
fn check_backoff(attribute: Attribute, options: &Options, errors: &mut Errors) {
    let Some(given) = options.get(Key::Backoff) else { return };
    match options.get(Key::Retries).map(|given| &given.value) {
        // It has some, unless it says otherwise.
        None if attribute == Attribute::Task => {}
        None => errors.on(
            &given.at,
            format!(
                "`backoff` needs `retries`: without it no run is tried again; add `{}`",
                Key::Retries.example()
            ),
        ),
        Some(Value::Text(Expr::Lit(ExprLit {
            lit: Lit::Int(count), ..
        }))) if count.base10_digits() == "0" => {
            let run = if attribute == Attribute::Task { "task" } else { "run" };
            errors.on(
                &given.at,
                format!("`backoff` needs `retries`: with `retries = 0` no {run} is tried again"),
            );
        }
        Some(_) => {}
    }
}

/// The way out for an option that only a cron expression has a use for.
fn without_cron(key: Key, trigger: Option<Key>) -> String {
    match (trigger, key) {
        (Some(Key::Every), Key::Timezone) => {
            "a period counts real time since 1970-01-01T00:00:00Z and has no zone; name times of the day with \
             `cron = \"0 3 * * *\"` in place of `every`, or take `timezone` out"
                .to_owned()
        }
        (Some(Key::Every), _) => {
            "a period counts real time and has no day fields; name days with `cron = \"0 9 1-7 * MON\"` in place of `every`, \
             or take `days` out"
                .to_owned()
        }
        (Some(Key::Handler), _) => {
            "a handler has no schedule of its own: each one that is made for it at run time says this for itself".to_owned()
        }
        (Some(_), _) => NO_TICKS.to_owned(),
        (None, _) => format!("add `{}`", Key::Cron.example()),
    }
}
