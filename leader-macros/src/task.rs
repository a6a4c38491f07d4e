//! The payload of a function under `#[task]`: its first argument, unless that is one of ours.

use quote::ToTokens;
use syn::visit_mut::VisitMut;
use syn::{FnArg, GenericArgument, PathArguments, PathSegment, Signature, Type, TypeReference};

use crate::diagnostics::Errors;
use crate::model::without_impl_trait;
use crate::payload;

/// What tasks carry.
pub(crate) enum Carried {
    /// Nothing.
    Nothing,
    /// Values of the first argument's type.
    First(Box<Type>),
    /// It was told to be wrong.
    Wrong,
}

/// Finds the payload, and tells what cannot be one.
pub(crate) fn payload(sig: &Signature, errors: &mut Errors) -> Carried {
    let first = sig.inputs.iter().find_map(|arg| match arg {
        FnArg::Typed(arg) => Some(&*arg.ty),
        FnArg::Receiver(_) => None,
    });
    let Some(ty) = first.filter(|ty| !is_ours(ty)) else {
        return Carried::Nothing;
    };
    // What is told elsewhere: that a task has neither.
    let unknown = !sig.generics.params.is_empty() || without_impl_trait(ty).1;
    if let Some(inner) = payload::carried(ty) {
        errors.on(
            ty,
            format!(
                "a task takes its payload as it is: write `{}` instead of `{}`",
                spelled(inner),
                spelled(ty)
            ),
        );
        return Carried::Wrong;
    }
    let mut references = References::default();
    references.visit_type_mut(&mut ty.clone());
    for reference in &references.0 {
        errors.on(
            reference,
            format!(
                "a task owns its payload: take `{}` instead of `{}`",
                owned(reference),
                spelled(reference)
            ),
        );
    }
    if unknown || !references.0.is_empty() {
        return Carried::Wrong;
    }
    Carried::First(Box::new(ty.clone()))
}

/// Whether a type is one that a task can be given besides its payload. A macro sees names and no types: a payload that is called so needs
/// another name.
fn is_ours(ty: &Type) -> bool {
    let Some(last) = last_segment(ty) else { return false };
    match last.ident.to_string().as_str() {
        "Task" => last.arguments.is_none(),
        "State" => !last.arguments.is_none(),
        "Option" => only_argument(last)
            .and_then(last_segment)
            .is_some_and(|inner| inner.ident == "State"),
        _ => false,
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        // What a `macro_rules!` variable has brought.
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

fn only_argument(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

/// The outermost references of a type.
#[derive(Default)]
struct References(Vec<TypeReference>);

impl VisitMut for References {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        self.0.push(reference.clone());
    }

    // A function takes references, and has none.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut syn::TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut syn::ParenthesizedGenericArguments) {}
}

/// What owns the same as a reference points to.
fn owned(reference: &TypeReference) -> String {
    match &*reference.elem {
        Type::Slice(slice) => format!("Vec<{}>", spelled(&slice.elem)),
        inner => match last_segment(inner).map(|last| last.ident.to_string()).as_deref() {
            Some("str") => "String".to_owned(),
            Some("Path") => "PathBuf".to_owned(),
            _ => spelled(inner),
        },
    }
}

/// As a person would write it.
fn spelled(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    let tight = [
        (" :: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
        (":: ", "::"),
    ];
    tight.iter().fold(text, |text, (from, to)| text.replace(from, to))
}
