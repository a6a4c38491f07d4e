//! The payload that a schedule made at run time carries to its handler.

use syn::{FnArg, GenericArgument, PathArguments, Signature, Type};

use crate::diagnostics::Errors;
use crate::model::Argument;

/// The `T` of `Payload<T>`.
pub(crate) fn carried(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Payload")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

/// What the schedules of a handler carry; `None` is nothing.
pub(crate) fn of(arguments: &[Argument]) -> Option<&Type> {
    arguments.iter().find_map(|argument| carried(&argument.ty))
}

/// One payload at the most, and only where there are schedules that carry one.
pub(crate) fn check(sig: &Signature, handles: bool, errors: &mut Errors) {
    let types = sig.inputs.iter().filter_map(|arg| match arg {
        FnArg::Typed(arg) => Some(&*arg.ty),
        FnArg::Receiver(_) => None,
    });
    let mut payloads = types.filter(|ty| carried(ty).is_some());
    if !handles {
        for ty in payloads {
            errors.on(
                ty,
                "`Payload<T>` is what a schedule made at run time carries, and only a handler is run for those: write \
                 `handler` in place of the trigger, or give the value as `State<T>` to `bootstrap(..).state(value)`",
            );
        }
        return;
    }
    let _ = payloads.next();
    for ty in payloads {
        errors.on(ty, "a handler has one payload: put both into one type");
    }
}
