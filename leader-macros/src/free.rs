//! What a job or a task must be: a free function that nobody else has to call.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{FnArg, ReturnType, Safety, Signature};

use crate::attribute::Attribute;
use crate::diagnostics::Errors;
use crate::item::{Body, Function};
use crate::model::{is_future, without_impl_trait};
use crate::options::{Key, Options};

/// Whether the function of an attribute that leaves it as it is can be run at all; tells why not.
pub(crate) fn can_be(attribute: Attribute, function: &Function, errors: &mut Errors) -> bool {
    let sig = &function.sig;
    let (become_it, noun) = (attribute.done(), attribute.noun());
    let mut refused = false;
    let mut refuse = |tokens: &dyn ToTokens, message: String| {
        refused = true;
        errors.on(tokens, message);
    };
    if let Body::None(semicolon) = &function.body {
        let message = format!("a declaration has no body to run: a {noun} is a free function");
        refuse(semicolon, message);
    }
    match (&sig.asyncness, &sig.output) {
        (Some(_), _) => {}
        (None, ReturnType::Type(_, ty)) if is_future(ty) => {
            let message =
                format!("only an `async fn` can be {become_it}: write `async fn … -> R` instead of the future");
            refuse(ty, message);
        }
        (None, _) => refuse(
            &sig.fn_token,
            format!("only an `async fn` can be {become_it}: add `async`"),
        ),
    }
    if let Some(token) = &sig.constness {
        refuse(token, format!("a `const fn` cannot be {become_it}: take `const` away"));
    }
    if let Safety::Unsafe(token) = &sig.safety {
        let message = format!(
            "an `unsafe fn` cannot be {become_it}: put {attribute} on a safe function that makes the unsafe call"
        );
        refuse(token, message);
    }
    if let Some(abi) = &sig.abi {
        let message = format!("a function with a foreign ABI cannot be {become_it}: take `extern` away");
        refuse(abi, message);
    }
    if let Some(variadic) = &sig.variadic {
        let message = format!("a variadic function cannot be {become_it}: take a slice instead");
        refuse(variadic, message);
    }
    !refused
}

/// Nobody calls it who could say what it is called on, or for which types.
pub(crate) fn check(attribute: Attribute, sig: &Signature, errors: &mut Errors) {
    let noun = attribute.noun();
    if let Some(receiver) = sig.receiver() {
        let message = format!(
            "a {noun} is a free function: take what it needs as `State<T>`, given to `bootstrap(..).state(value)`"
        );
        errors.on(receiver, message);
    }
    if !sig.generics.params.is_empty() {
        let message = format!("a {noun} is not generic: nobody calls it who could say for which type or lifetime");
        errors.on(&sig.generics.params, message);
    }
    for arg in &sig.inputs {
        let FnArg::Typed(arg) = arg else { continue };
        if let Some(cfg) = arg.attrs.iter().find(|attr| attr.path().is_ident("cfg")) {
            let message = format!("an argument of a {noun} cannot be under `cfg`: put it on the function");
            errors.on(cfg, message);
        }
        if without_impl_trait(&arg.ty).1 {
            let own = match attribute {
                Attribute::Task => "its payload, `Task`, `State<T>` or `Option<State<T>>`",
                Attribute::LeaderOnly | Attribute::Scheduled => "`Tick`, `State<T>` or `Option<State<T>>`",
            };
            let message = format!("an argument of a {noun} has a type of its own: {own}, not `impl Trait`");
            errors.on(&arg.ty, message);
        }
    }
}

/// Rust allows names that the store does not.
pub(crate) fn check_own_name(attribute: Attribute, options: &Options, name: &Ident, errors: &mut Errors) {
    if options.get(Key::Name).is_none() && !name.to_string().is_ascii() {
        let (noun, example) = (attribute.noun(), Key::Name.example());
        errors.on(
            name,
            format!("a {noun}'s name is kept in the store, in ASCII: add `{example}`"),
        );
    }
}
