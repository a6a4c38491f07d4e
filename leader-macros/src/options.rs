//! The options between the parentheses: one table, and a parser that goes on after a mistake.

mod values;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, LitStr, Path, Token};

use crate::attribute::Attribute;
use crate::diagnostics::{Errors, listed, nearest};
use crate::words;
use values::{checked, ungroup};

/// An option's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Group,
    Name,
    Was,
    Cron,
    Every,
    WhileLeading,
    Handler,
    Timezone,
    Days,
    Jitter,
    Timeout,
    Grace,
    Missed,
    MaxMissed,
    MaxAge,
    Overlap,
    OnLoss,
    Retries,
    Backoff,
    Except,
    On,
    Queue,
    Concurrency,
    Crate,
}

/// What an option's value may be.
#[derive(Clone, Copy)]
enum Kind {
    /// A string literal, or a constant expression of type `&'static str`.
    Text,
    /// A string literal.
    Literal,
    /// A whole number, or a constant expression of type `u32`.
    Number,
    /// One text, or an array of several.
    Texts,
    /// One of these string literals.
    Word(&'static [&'static str]),
    /// A path.
    Path,
    /// Nothing: it is there or it is not.
    Flag,
}

struct Row {
    key: Key,
    word: &'static str,
    kind: Kind,
    /// How it is written, for messages.
    example: &'static str,
}

const fn row(key: Key, word: &'static str, kind: Kind, example: &'static str) -> Row {
    Row {
        key,
        word,
        kind,
        example,
    }
}

/// What other libraries call an option of ours.
const ELSEWHERE: &[(&str, &str)] = &[
    ("renamed_from", "was"),
    ("aliases", "was"),
    ("tz", "timezone"),
    ("zone", "timezone"),
    ("schedule", "cron"),
    ("expression", "cron"),
    ("interval", "every"),
    ("period", "every"),
    ("max_retries", "retries"),
    ("max_attempts", "retries"),
    ("topic", "queue"),
];

const TABLE: &[Row] = &[
    row(Key::Group, "group", Kind::Text, "group = \"cleanup\""),
    row(Key::Name, "name", Kind::Literal, "name = \"purge-sessions\""),
    row(Key::Was, "was", Kind::Texts, "was = \"purge\""),
    row(Key::Cron, "cron", Kind::Text, "cron = \"*/5 * * * *\""),
    row(Key::Every, "every", Kind::Text, "every = \"30s\""),
    row(Key::WhileLeading, "while_leading", Kind::Flag, "while_leading"),
    row(Key::Handler, "handler", Kind::Flag, "handler"),
    row(Key::Timezone, "timezone", Kind::Text, "timezone = \"Europe/Berlin\""),
    row(Key::Days, "days", Kind::Word(&["or", "and"]), "days = \"or\""),
    row(Key::Jitter, "jitter", Kind::Text, "jitter = \"30s\""),
    row(Key::Timeout, "timeout", Kind::Text, "timeout = \"30s\""),
    row(Key::Grace, "grace", Kind::Text, "grace = \"5s\""),
    row(
        Key::Missed,
        "missed",
        Kind::Word(&["skip", "latest", "all"]),
        "missed = \"latest\"",
    ),
    row(Key::MaxMissed, "max_missed", Kind::Number, "max_missed = 20"),
    row(Key::MaxAge, "max_age", Kind::Text, "max_age = \"2h\""),
    row(
        Key::Overlap,
        "overlap",
        Kind::Word(&["skip", "wait", "replace", "allow"]),
        "overlap = \"skip\"",
    ),
    row(
        Key::OnLoss,
        "on_loss",
        Kind::Word(&["cancel", "finish"]),
        "on_loss = \"cancel\"",
    ),
    row(Key::Retries, "retries", Kind::Number, "retries = 3"),
    row(Key::Backoff, "backoff", Kind::Text, "backoff = \"1s\""),
    row(Key::Except, "except", Kind::Texts, "except = \"holidays\""),
    row(Key::On, "on", Kind::Word(&["any", "fleet"]), "on = \"any\""),
    row(Key::Queue, "queue", Kind::Text, "queue = \"invoices\""),
    row(Key::Concurrency, "concurrency", Kind::Number, "concurrency = 4"),
    row(Key::Crate, "crate", Kind::Path, "crate = ::leader_core"),
];

impl Key {
    fn row(self) -> &'static Row {
        TABLE
            .iter()
            .find(|row| row.key == self)
            .expect("every key has its row, as a test shows")
    }

    /// The option as it is spelled.
    pub(crate) fn word(self) -> &'static str {
        self.row().word
    }

    /// The option as it is used.
    pub(crate) fn example(self) -> &'static str {
        self.row().example
    }
}

/// An option's value, checked against the table.
#[derive(Clone)]
pub(crate) enum Value {
    Text(Expr),
    Texts(Vec<Expr>),
    Literal(LitStr),
    Path(Path),
    Flag,
    /// It was told to be wrong; the option counts as given, so that no follow-up is told.
    Wrong,
}

/// One option as given.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) key: Key,
    pub(crate) at: Ident,
    pub(crate) value: Value,
}

/// All options as given, each key once.
#[derive(Clone, Default)]
pub(crate) struct Options(Vec<Given>);

impl Options {
    pub(crate) fn get(&self, key: Key) -> Option<&Given> {
        self.0.iter().find(|given| given.key == key)
    }

    /// The first given of some keys.
    pub(crate) fn among(&self, keys: &[Key]) -> impl Iterator<Item = &Given> {
        self.0.iter().filter(move |given| keys.contains(&given.key))
    }
}

/// Reads the options; mistakes go to `errors`, the rest is kept.
pub(crate) fn parse(attribute: Attribute, tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            match option(attribute, input, errors) {
                Ok(given) => match options.get(given.key) {
                    Some(_) => errors.on(&given.at, format!("`{}` is given twice", given.key.word())),
                    None => options.0.push(given),
                },
                Err(error) => {
                    errors.add(error);
                    skip_to_comma(input);
                }
            }
            if !input.is_empty() && !input.peek(Token![,]) {
                errors.add(input.error("expected `,` between two options"));
                if !input.peek(Ident::peek_any) {
                    skip_to_comma(input);
                }
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        errors.add(error);
    }
    options
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        // A token tree is there: the input is not empty.
        let _ = input.parse::<TokenTree>();
    }
}

fn option(attribute: Attribute, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Given> {
    if !input.peek(Ident::peek_any) {
        let message = if let Some(text) = input.fork().parse::<Option<LitStr>>()? {
            let value = text.value();
            let example = match option_of(&value).filter(|key| attribute.has(*key)).map(Key::word) {
                Some(word) => format!("{word} = \"{value}\""),
                None => attribute.usual().example().to_owned(),
            };
            format!("a value needs its option: write `{example}`")
        } else {
            format!("expected an option, such as `{}`", attribute.usual().example())
        };
        return Err(input.error(message));
    }
    let at = input.call(Ident::parse_any)?;
    let word = at.unraw().to_string();
    let Some(row) = TABLE.iter().find(|row| row.word == word) else {
        let known = || TABLE.iter().filter(|row| attribute.has(row.key)).map(|row| row.word);
        let elsewhere = ELSEWHERE
            .iter()
            .find(|(other, ours)| *other == word && known().any(|word| word == *ours));
        let meant = match elsewhere.map(|(_, ours)| *ours).or_else(|| nearest(&word, known())) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None => ";".to_owned(),
        };
        let message = format!("unknown option `{word}`{meant} expected one of: {}", listed(known()));
        return Err(syn::Error::new(at.span(), message));
    };
    let key = row.key;
    if !attribute.has(key) {
        return Err(syn::Error::new(at.span(), attribute.lacks(key)));
    }
    let value = value(input, row, &at, errors)?;
    Ok(Given { key, at, value })
}

/// The option that a text without one was probably meant for.
fn option_of(text: &str) -> Option<Key> {
    let fields = text.split_ascii_whitespace().count();
    let cron = |c: char| c.is_ascii_alphanumeric() || " *,-/?#".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || c == '*');
    if text.starts_with('@') || (5..=7).contains(&fields) && begins && text.chars().all(cron) {
        return Some(Key::Cron);
    }
    words::milliseconds(text).filter(|ms| *ms > 0).map(|_| Key::Every)
}

fn value(input: ParseStream<'_>, row: &Row, at: &Ident, errors: &mut Errors) -> syn::Result<Value> {
    let Row { word, example, .. } = row;
    let flag = matches!(row.kind, Kind::Flag);
    if input.is_empty() || input.peek(Token![,]) {
        if flag {
            return Ok(Value::Flag);
        }
        errors.on(at, format!("`{word}` needs a value: write `{example}`"));
        return Ok(Value::Wrong);
    }
    if flag {
        errors.add(input.error(format!("`{word}` takes no value: write it alone")));
        skip_to_comma(input);
        return Ok(Value::Wrong);
    }
    if !input.peek(Token![=]) {
        errors.add(input.error(format!("expected `=`: write `{example}`")));
        skip_to_comma(input);
        return Ok(Value::Wrong);
    }
    let equals = input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        errors.on(equals, format!("`{word}` needs a value: write `{example}`"));
        return Ok(Value::Wrong);
    }
    let expr = match input.parse::<Expr>() {
        Ok(expr) => ungroup(expr),
        Err(error) => {
            errors.add(error);
            skip_to_comma(input);
            return Ok(Value::Wrong);
        }
    };
    Ok(checked(row, expr).unwrap_or_else(|error| {
        errors.add(error);
        Value::Wrong
    }))
}

#[cfg(test)]
pub(crate) fn words() -> impl Iterator<Item = (Key, &'static str, &'static str)> {
    TABLE.iter().map(|row| (row.key, row.word, row.example))
}
