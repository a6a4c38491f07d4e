//! Options and function, checked against each other: either all mistakes, or something that can be expanded.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, FnArg, LitStr, Pat, PatIdent, Path, ReturnType, Signature, Token, Type, parse_quote};

use crate::attribute::Attribute;
use crate::diagnostics::{Errors, at};
use crate::free;
use crate::item::{Body, Function};
use crate::needs;
use crate::options::{Key, Options, Value};
use crate::payload;
use crate::task::{self, Carried};

/// What the item becomes.
pub(crate) enum Item {
    /// It is put out again as it was: what else would be made of it would only add errors to the one already told.
    AsWritten(Box<Function>),
    /// It is gated, scheduled, or a task.
    Checked(Box<Model>),
}

/// A function that can be gated, scheduled, or a task.
pub(crate) struct Model {
    pub(crate) attribute: Attribute,
    pub(crate) function: Function,
    /// The core crate.
    pub(crate) krate: Path,
    /// The name in the records: the option's, else the function's own without `r#`.
    pub(crate) name: LitStr,
    pub(crate) own_name: bool,
    /// `None` is the default group.
    pub(crate) group: Option<Expr>,
    pub(crate) trigger: Option<Trigger>,
    pub(crate) timezone: Option<Expr>,
    /// A variant of `Days`.
    pub(crate) days: Option<Ident>,
    pub(crate) jitter: Option<Expr>,
    pub(crate) timeout: Option<Expr>,
    pub(crate) grace: Option<Expr>,
    pub(crate) max_missed: Option<Expr>,
    pub(crate) max_age: Option<Expr>,
    /// The calendars on whose days it does not run.
    pub(crate) except: Vec<Expr>,
    /// The names that it had before.
    pub(crate) was: Vec<Expr>,
    /// The variants of `Missed` and `OnLoss`.
    pub(crate) missed: Option<Ident>,
    pub(crate) overlap: Option<Ident>,
    pub(crate) on_loss: Option<Ident>,
    pub(crate) retries: Option<Expr>,
    pub(crate) backoff: Option<Expr>,
    /// Where its ticks are run; a variant of `On`.
    pub(crate) on: Option<Ident>,
    /// `None` is the default queue.
    pub(crate) queue: Option<Expr>,
    pub(crate) concurrency: Option<Expr>,
    /// What a task takes.
    pub(crate) carried: Carried,
    pub(crate) arguments: Vec<Argument>,
    /// What is put out of a function with mistakes is as good as the mistakes allow, and registers nothing.
    pub(crate) faulty: bool,
}

pub(crate) enum Trigger {
    Cron(Expr),
    Every(Expr),
    WhileLeading,
    /// The schedules that are made for it at run time.
    Handler,
    /// It was told to be wrong.
    Wrong,
}

/// An argument: in the signature it stands under a plain name, in the body it is taken apart as it was written.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    /// What stands on the `let` that brings it into the body.
    pub(crate) attrs: Vec<syn::Attribute>,
    pub(crate) pattern: Pat,
    pub(crate) ty: Type,
}

/// Checks everything and tells every mistake.
pub(crate) fn validate(attribute: Attribute, options: &Options, mut function: Function, errors: &mut Errors) -> Item {
    needs::check(attribute, options, errors);
    check_attributes(attribute, &function, errors);
    // Each of them would put out a handle of the function's name.
    function.attrs.retain(|attr| !is_ours(attr));
    if !can_be(attribute, &function, errors) {
        without_what_rustc_refuses(&mut function.sig);
        return Item::AsWritten(Box::new(function));
    }
    let trigger = options
        .among(needs::TRIGGERS)
        .next()
        .map(|given| match (&given.value, given.key) {
            (Value::Text(expr), Key::Cron) => Trigger::Cron(expr.clone()),
            (Value::Text(expr), _) => Trigger::Every(expr.clone()),
            (Value::Flag, Key::Handler) => Trigger::Handler,
            (Value::Flag, _) => Trigger::WhileLeading,
            _ => Trigger::Wrong,
        });
    let scheduled = attribute == Attribute::Scheduled;
    let trigger = trigger.or(scheduled.then_some(Trigger::Wrong));
    let is_task = attribute == Attribute::Task;
    // A type beside the function would be a further error where only methods may stand.
    let method = function.sig.receiver().is_some();
    if trigger.is_some() || is_task {
        free::check(attribute, &function.sig, errors);
        free::check_own_name(attribute, options, &function.sig.ident, errors);
    }
    let mut carried = Carried::Nothing;
    if is_task {
        carried = task::payload(&function.sig, errors);
    } else if trigger.is_some() {
        payload::check(&function.sig, matches!(trigger, Some(Trigger::Handler)), errors);
    }
    let text = |key| match options.get(key)?.value {
        Value::Text(ref expr) => Some(expr.clone()),
        _ => None,
    };
    let word = |key| match options.get(key)?.value {
        Value::Literal(ref word) => Some(word.clone()),
        _ => None,
    };
    let texts = |key| match options.get(key).map(|given| &given.value) {
        Some(Value::Texts(names)) => names.clone(),
        _ => Vec::new(),
    };
    let given_name = word(Key::Name);
    let own_name = function.sig.ident.clone();
    // Only what is gated does not stay as it was written.
    let (mut other, gated) = (function.sig.clone(), &mut function.sig);
    let arguments = arguments(if scheduled || is_task { &mut other } else { gated });
    Item::Checked(Box::new(Model {
        attribute,
        krate: krate(options),
        own_name: given_name.is_none(),
        name: given_name.unwrap_or_else(|| LitStr::new(&own_name.unraw().to_string(), own_name.span())),
        group: text(Key::Group),
        trigger: trigger.filter(|_| !method),
        timezone: text(Key::Timezone),
        days: word(Key::Days).as_ref().map(variant),
        jitter: text(Key::Jitter),
        timeout: text(Key::Timeout),
        grace: text(Key::Grace),
        missed: word(Key::Missed).as_ref().map(variant),
        max_missed: text(Key::MaxMissed),
        max_age: text(Key::MaxAge),
        except: texts(Key::Except),
        was: texts(Key::Was),
        overlap: word(Key::Overlap).as_ref().map(variant),
        on_loss: word(Key::OnLoss).as_ref().map(variant),
        retries: text(Key::Retries),
        backoff: text(Key::Backoff),
        on: word(Key::On).as_ref().map(variant),
        queue: text(Key::Queue),
        concurrency: text(Key::Concurrency),
        carried,
        arguments,
        faulty: !errors.is_empty(),
        function,
    }))
}

fn krate(options: &Options) -> Path {
    if let Some(Value::Path(path)) = options.get(Key::Crate).map(|given| &given.value) {
        return path.clone();
    }
    let name = Ident::new("leader_core", Span::mixed_site());
    parse_quote!(::#name)
}

/// `latest` → `Latest`; the word is one of the table's.
fn variant(word: &LitStr) -> Ident {
    let text = word.value();
    let (first, rest) = text.split_at(1);
    Ident::new(&(first.to_uppercase() + rest), word.span())
}

/// What excludes each other, whatever path it is written with.
const OURS: [&str; 3] = ["leader_only", "scheduled", "task"];

/// Attributes that stand below ours see the function that we have made of it.
fn check_attributes(attribute: Attribute, function: &Function, errors: &mut Errors) {
    for attr in &function.attrs {
        let path = attr.path();
        let Some(last) = path.segments.last() else { continue };
        let written = path.to_token_stream().to_string().replace(' ', "");
        match last.ident.to_string().as_str() {
            name if OURS.contains(&name) => errors.on(
                path,
                if attribute.to_string().contains(name) {
                    format!("{attribute} is written twice")
                } else {
                    let either = if name == "task" || attribute == Attribute::Task {
                        "a task is run when somebody has enqueued it, and by nothing else; call one function from two others"
                    } else {
                        "a job runs on the leader, or on any instance"
                    };
                    format!("{attribute} and `#[{written}]` exclude each other: {either}")
                },
            ),
            "main" | "test" => errors.on(
                path,
                format!(
                    "`#[{written}]` makes a function that is not async, and only an `async fn` can be {}: \
                     put {attribute} on a function of its own and call that one from here",
                    attribute.done()
                ),
            ),
            // Below, it would log every skipped call as an error of the body.
            "instrument" if attribute == Attribute::LeaderOnly && wants_result(attr) => errors.on(
                path,
                format!(
                    "`#[{written}]` with `err` or `ret` needs the body's own result: write it above `#[leader_only]`"
                ),
            ),
            _ => {}
        }
    }
}

fn is_ours(attr: &syn::Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|last| OURS.iter().any(|ours| last.ident == ours))
}

fn wants_result(attr: &syn::Attribute) -> bool {
    let mut found = false;
    // What cannot be read as a list is left to the attribute itself.
    let _ = attr.parse_nested_meta(|meta| {
        found |= meta.path.is_ident("err") || meta.path.is_ident("ret");
        if meta.input.peek(Token![=]) {
            meta.value()?.parse::<Expr>()?;
        } else if meta.input.peek(syn::token::Paren) {
            let content;
            syn::parenthesized!(content in meta.input);
            content.parse::<proc_macro2::TokenStream>()?;
        }
        Ok(())
    });
    found
}

fn can_be(attribute: Attribute, function: &Function, errors: &mut Errors) -> bool {
    if attribute != Attribute::LeaderOnly {
        return free::can_be(attribute, function, errors);
    }
    let sig = &function.sig;
    let mut refused = false;
    let mut refuse = |tokens: &dyn ToTokens, message: &str| {
        refused = true;
        errors.on(tokens, message);
    };
    if let Body::None(semicolon) = &function.body {
        refuse(
            semicolon,
            "a declaration has no body to gate: annotate the method where it is implemented, and declare it as \
             `async fn … -> Result<R, leader_core::Skipped>`",
        );
    }
    match (&sig.asyncness, &sig.output) {
        (Some(_), ReturnType::Type(_, ty)) if matches!(**ty, Type::Never(_)) => refuse(
            ty,
            "a gated function returns `Result<R, Skipped>`, and `!` cannot stand in it: return `()` or \
             `std::convert::Infallible`",
        ),
        (Some(_), _) => {}
        (None, ReturnType::Type(_, ty)) if is_future(ty) => refuse(
            ty,
            "only an `async fn` can be gated: write `async fn … -> R` instead of the future (an attribute above this one \
             that rewrites the function, such as `async_trait`, has to stand below it, or on a method that calls this one)",
        ),
        (None, _) => refuse(&sig.fn_token, "only an `async fn` can be gated: add `async`"),
    }
    if let Some(token) = &sig.constness {
        refuse(token, "a `const fn` cannot be gated: take `const` away");
    }
    if let syn::Safety::Unsafe(token) = &sig.safety {
        refuse(
            token,
            "an `unsafe fn` cannot be gated: gate a safe function that makes the unsafe call",
        );
    }
    if let Some(abi) = &sig.abi {
        refuse(abi, "a function with a foreign ABI cannot be gated: take `extern` away");
    }
    if let Some(variadic) = &sig.variadic {
        refuse(variadic, "a variadic function cannot be gated: take a slice instead");
    }
    !refused
}

pub(crate) fn is_future(ty: &Type) -> bool {
    let text = ty.to_token_stream().to_string();
    matches!(ty, Type::ImplTrait(_)) && text.contains("Future") || text.contains("Pin <") && text.contains("Future")
}

/// The compiler would refuse these too, a second time.
fn without_what_rustc_refuses(sig: &mut Signature) {
    if sig.asyncness.is_some() {
        sig.constness = None;
    }
    sig.variadic = None;
}

/// The type with `_` for every `impl Trait`, and whether there was one.
pub(crate) fn without_impl_trait(ty: &Type) -> (Type, bool) {
    struct Infer(bool);
    impl VisitMut for Infer {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if matches!(ty, Type::ImplTrait(_)) {
                *ty = parse_quote!(_);
                self.0 = true;
            } else {
                visit_mut::visit_type_mut(self, ty);
            }
        }
    }
    let (mut ty, mut infer) = (ty.clone(), Infer(false));
    infer.visit_type_mut(&mut ty);
    (ty, infer.0)
}

/// Gives every argument of the signature a plain name, and says how the body takes it apart.
fn arguments(sig: &mut Signature) -> Vec<Argument> {
    let typed = sig.inputs.iter_mut().enumerate().filter_map(|(index, arg)| match arg {
        FnArg::Typed(arg) => Some((index, arg)),
        FnArg::Receiver(_) => None,
    });
    typed
        .map(|(index, arg)| {
            let name = plain_name(&arg.pat, index);
            let plain = Pat::Ident(PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: None,
                ident: name.clone(),
                subpat: None,
            });
            let attrs = arg.attrs.clone();
            arg.attrs.retain(|attr| attr.path().is_ident("cfg"));
            Argument {
                name,
                attrs,
                pattern: std::mem::replace(&mut *arg.pat, plain),
                ty: (*arg.ty).clone(),
            }
        })
        .collect()
}

/// The name that a pattern binds, when it is one that may stand in the signature: `db` of `State(db)`. `_db` stands there
/// without its underscore, because our own use of it would be one that lints tell of; a capital one may be a constant.
fn plain_name(pattern: &Pat, index: usize) -> Ident {
    struct Names(Vec<Ident>);
    impl VisitMut for Names {
        fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
            self.0.push(pattern.ident.clone());
            visit_mut::visit_pat_ident_mut(self, pattern);
        }
    }
    let mut names = Names(Vec::new());
    names.visit_pat_mut(&mut pattern.clone());
    if let [name] = names.0.as_slice() {
        let text = name.unraw().to_string();
        if text.starts_with(char::is_lowercase) {
            return name.clone();
        }
        let bare = text.trim_start_matches('_');
        if bare.starts_with(char::is_lowercase) && syn::parse_str::<Ident>(bare).is_ok() {
            return Ident::new(bare, at(name.span()));
        }
    }
    let first = pattern.to_token_stream().into_iter().next();
    let place = first.map_or_else(Span::call_site, |token| token.span());
    Ident::new(&format!("arg{index}"), at(place))
}
