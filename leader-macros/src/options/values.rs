//! What may stand behind an option's `=`.

use syn::{Expr, ExprLit, Lit, Path};

use super::{Key, Kind, Row, Value};
use crate::diagnostics::{listed, nearest};

/// Takes off the invisible brackets that a `macro_rules!` variable brings.
pub(super) fn ungroup(mut expr: Expr) -> Expr {
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    expr
}

/// One text, or those of an array; each a string literal or a constant.
fn texts(row: &Row, expr: Expr) -> syn::Result<Value> {
    let Row { word, example, .. } = row;
    let refuse = |at: &dyn quote::ToTokens, why: &str| Err(syn::Error::new_spanned(at.to_token_stream(), why));
    let texts = match expr {
        Expr::Array(array) if array.elems.is_empty() => {
            return refuse(
                &array,
                &format!("`{word}` names nothing: write `{example}`, or take it out"),
            );
        }
        Expr::Array(array) => array.elems.into_iter().map(ungroup).collect(),
        one => vec![one],
    };
    for (at, text) in texts.iter().enumerate() {
        match text {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }) => {
                let doubled = texts[..at].iter().any(
                    |other| matches!(other, Expr::Lit(ExprLit { lit: Lit::Str(other), .. }) if other.value() == text.value()),
                );
                if doubled {
                    return refuse(text, &format!("`{}` is named twice", text.value()));
                }
            }
            Expr::Lit(_) | Expr::Array(_) | Expr::Tuple(_) => {
                let several = if row.key == Key::Was {
                    "was = [\"purge\", \"sweep\"]"
                } else {
                    "except = [\"holidays\", \"freeze\"]"
                };
                return refuse(
                    text,
                    &format!("`{word}` takes a string or a constant, or several: write `{example}` or `{several}`"),
                );
            }
            _ => {}
        }
    }
    Ok(Value::Texts(texts))
}

pub(super) fn checked(row: &Row, expr: Expr) -> syn::Result<Value> {
    let Row { word, example, .. } = row;
    match (row.kind, expr) {
        (Kind::Texts, expr) => texts(row, expr),
        (Kind::Text, expr @ Expr::Lit(ExprLit { lit: Lit::Str(_), .. }))
        | (Kind::Number, expr @ Expr::Lit(ExprLit { lit: Lit::Int(_), .. })) => Ok(Value::Text(expr)),
        (Kind::Text, Expr::Lit(other)) => Err(syn::Error::new_spanned(
            other,
            format!("`{word}` takes a string or a constant: write `{example}`"),
        )),
        (Kind::Number, other @ (Expr::Lit(_) | Expr::Unary(_))) => Err(syn::Error::new_spanned(
            other,
            format!("`{word}` takes a whole number or a constant: write `{example}`"),
        )),
        (Kind::Text | Kind::Number, expr) => Ok(Value::Text(expr)),
        (
            Kind::Literal,
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }),
        ) => Ok(Value::Literal(text)),
        (
            Kind::Word(words),
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }),
        ) => {
            let value = text.value();
            if words.contains(&value.as_str()) {
                return Ok(Value::Literal(text));
            }
            let meant = match nearest(&value.to_lowercase(), words.iter().copied()) {
                Some(meant) => format!("; did you mean `\"{meant}\"`?"),
                None => ";".to_owned(),
            };
            let others = if row.key == Key::On {
                "; what runs on the leader alone is annotated with `#[leader_only]`"
            } else {
                ""
            };
            let message = format!(
                "unknown value for `{word}`{meant} expected one of: {}{others}",
                quoted(words)
            );
            Err(syn::Error::new(text.span(), message))
        }
        (Kind::Word(words), other) => Err(syn::Error::new_spanned(
            other,
            format!("`{word}` takes one of the string literals {}", quoted(words)),
        )),
        (Kind::Path, Expr::Path(path)) if is_plain(&path) => absolute(path.path),
        (Kind::Path, other) => Err(syn::Error::new_spanned(
            other,
            format!("`{word}` takes a path: write `{example}`"),
        )),
        (Kind::Literal | Kind::Flag, other) => Err(syn::Error::new_spanned(
            other,
            format!("`{word}` takes a string literal: write `{example}`"),
        )),
    }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    listed(words.iter().map(String::as_str))
}

fn is_plain(path: &syn::ExprPath) -> bool {
    path.qself.is_none() && path.path.segments.iter().all(|segment| segment.arguments.is_none())
}

/// A relative path would mean another thing in every module, and nothing at all inside somebody's `macro_rules!`.
fn absolute(path: Path) -> syn::Result<Value> {
    let first = path.segments.first().map(|segment| segment.ident.to_string());
    if path.leading_colon.is_some() || matches!(first.as_deref(), Some("crate" | "$crate")) {
        return Ok(Value::Path(path));
    }
    let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let written = segments.join("::");
    let message = format!(
        "the path must be absolute: write `::{written}` for a dependency, or `crate::…` for what this crate re-exports"
    );
    Err(syn::Error::new_spanned(path, message))
}
