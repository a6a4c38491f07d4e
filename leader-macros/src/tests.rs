//! What the attribute puts out, by snapshot, and every mistake of the option table.

mod scheduled;
mod task;

use expect_test::{Expect, expect};
use proc_macro2::TokenStream;

use crate::attribute::Attribute;
use crate::diagnostics::Errors;
use crate::options::{self, Key};

fn expanded(options: &str, item: &str) -> TokenStream {
    crate::expanded(Attribute::LeaderOnly, parsed(options), parsed(item))
}

fn parsed(tokens: &str) -> TokenStream {
    tokens.parse().unwrap()
}

/// The expansion as a person would write it.
fn pretty(options: &str, item: &str) -> String {
    prettyplease::unparse(&syn::parse2(expanded(options, item)).unwrap())
}

fn check(options: &str, item: &str, expected: &Expect) {
    expected.assert_eq(&pretty(options, item));
}

/// The messages of the `compile_error!`s in the expansion.
fn mistakes(options: &str, item: &str) -> Vec<String> {
    let file: syn::File = syn::parse2(expanded(options, item)).unwrap();
    let messages = file.items.iter().filter_map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => {
            Some(item.mac.parse_body::<syn::LitStr>().unwrap().value())
        }
        _ => None,
    });
    messages.collect()
}

const FUNCTION: &str = "async fn f() {}";

#[test]
fn a_plain_function() {
    check(
        "",
        "/// Sends it.
        pub async fn send<T>(&self, State(db): State<Db>, mut n: u8, _: T) -> io::Result<u8> where T: Send { n += 1; db.write(n).await? }",
        &expect![[r#"
            /// Sends it.
            ///
            /// Runs only on the leader of group `default`.
            ///
            /// # Errors
            /// `Skipped` where this instance does not lead the group; the body has not run then.
            pub async fn send<T>(
                &self,
                db: State<Db>,
                n: u8,
                arg3: T,
            ) -> ::core::result::Result<io::Result<u8>, ::leader_core::__private::Skipped>
            where
                T: Send,
            {
                const __LEADER_GROUP: &str = ::leader_core::__private::DEFAULT_GROUP;
                const _: () = {
                    ::leader_core::__private::submit! {
                        ::leader_core::__private::Record::new("send", __LEADER_GROUP,
                        ::core::module_path!())
                    }
                };
                match ::leader_core::__private::enter(__LEADER_GROUP) {
                    ::core::result::Result::Ok(entry) => {
                        ::core::result::Result::Ok(
                            entry
                                .run(async move {
                                    let db = db;
                                    let State(db) = db;
                                    let mut n = n;
                                    let arg3 = arg3;
                                    let _ = arg3;
                                    #[allow(
                                        unreachable_code,
                                        clippy::diverging_sub_expression,
                                        clippy::empty_loop,
                                        clippy::let_unit_value,
                                        clippy::needless_return,
                                        reason = "never run: it tells the block its type"
                                    )]
                                    if false {
                                        let __leader_returned: io::Result<u8> = loop {};
                                        return __leader_returned;
                                    }
                                    {
                                        n += 1;
                                        db.write(n).await?
                                    }
                                })
                                .await,
                        )
                    }
                    ::core::result::Result::Err(skipped) => ::core::result::Result::Err(skipped),
                }
            }
        "#]],
    );
}

#[test]
fn a_scheduled_job() {
    check(
        r#"group = JOBS, cron = "*/5 * * * *", name = "purge", timeout = "30s", grace = "5s", missed = "skip", on_loss = "finish""#,
        "/// Purges.
        ///
        /// # Panics
        /// Never.
        #[cfg(unix)]
        pub(crate) async fn purge_sessions(tick: Tick, State(db): State<Db>) -> anyhow::Result<u64> { db.purge().await }",
        &expect![[r#"
            /// Purges.
            ///
            /// Runs on the leader of group `JOBS` every 5 minutes: `*/5 * * * *` (UTC).
            ///
            /// # Panics
            /// Never.
            ///
            /// # Errors
            /// `Skipped` where this instance does not lead the group; the body has not run then.
            #[cfg(unix)]
            pub(crate) async fn purge_sessions(
                tick: Tick,
                db: State<Db>,
            ) -> ::core::result::Result<anyhow::Result<u64>, ::leader_core::__private::Skipped> {
                const _: () = {
                    ::leader_core::__private::submit! {
                        < purge_sessions as ::leader_core::__private::Job > ::RECORD
                    }
                };
                match ::leader_core::__private::enter(
                    <purge_sessions as ::leader_core::__private::Job>::GROUP,
                ) {
                    ::core::result::Result::Ok(entry) => {
                        ::core::result::Result::Ok(
                            entry
                                .run(async move {
                                    let tick = tick;
                                    let db = db;
                                    let State(db) = db;
                                    #[allow(
                                        unreachable_code,
                                        clippy::diverging_sub_expression,
                                        clippy::empty_loop,
                                        clippy::let_unit_value,
                                        clippy::needless_return,
                                        reason = "never run: it tells the block its type"
                                    )]
                                    if false {
                                        let __leader_returned: anyhow::Result<u64> = loop {};
                                        return __leader_returned;
                                    }
                                    { db.purge().await }
                                })
                                .await,
                        )
                    }
                    ::core::result::Result::Err(skipped) => ::core::result::Result::Err(skipped),
                }
            }
            #[cfg(unix)]
            #[doc(hidden)]
            #[allow(
                non_camel_case_types,
                missing_debug_implementations,
                missing_copy_implementations,
                unreachable_pub,
                dead_code,
                reason = "the handle has the name of its function and is never a value"
            )]
            pub(crate) enum purge_sessions {}
            #[cfg(unix)]
            #[allow(deprecated, reason = "a deprecated job runs until it is taken out")]
            impl ::leader_core::__private::Job for purge_sessions {
                const NAME: &'static str = ::leader_core::__private::name("purge");
                const GROUP: &'static str = ::leader_core::__private::name(JOBS);
                const RECORD: ::leader_core::__private::Record = {
                    const __LEADER_CRON: ::leader_core::__private::Trigger = ::leader_core::__private::cron(
                        "*/5 * * * *",
                    );
                    const __LEADER_TIMEOUT: ::core::time::Duration = ::leader_core::__private::duration(
                        "30s",
                    );
                    const __LEADER_GRACE: ::core::time::Duration = ::leader_core::__private::duration(
                        "5s",
                    );
                    ::leader_core::__private::Record::new(
                            Self::NAME,
                            Self::GROUP,
                            ::core::module_path!(),
                        )
                        .job(
                            __LEADER_CRON,
                            |given| ::leader_core::__private::body(
                                purge_sessions(
                                    ::leader_core::__private::extract::<Tick>(given),
                                    ::leader_core::__private::extract::<State<Db>>(given),
                                ),
                                ::leader_core::__private::output::<anyhow::Result<u64>>(),
                            ),
                            |needs| {
                                ::leader_core::__private::need::<Tick>(needs);
                                ::leader_core::__private::need::<State<Db>>(needs);
                            },
                        )
                        .timeout(__LEADER_TIMEOUT)
                        .grace(__LEADER_GRACE)
                        .missed(::leader_core::__private::Missed::Skip)
                        .on_loss(::leader_core::__private::OnLoss::Finish)
                };
            }
        "#]],
    );
}

/// Every checked value has a constant of its own, and all of the record is in it.
#[test]
fn a_job_on_a_wall_clock() {
    let pretty = pretty(
        r#"cron = "0 0 9 1-7 * MON", days = "and", timezone = ZONE, jitter = "30s""#,
        "async fn report() {}",
    );
    let record = pretty.find("const RECORD").unwrap();
    expect![[r#"
        const RECORD: ::leader_core::__private::Record = {
                const __LEADER_CRON: ::leader_core::__private::Trigger = ::leader_core::__private::cron_with(
                    "0 0 9 1-7 * MON",
                    ::leader_core::__private::Days::And,
                );
                const __LEADER_TIMEZONE: &'static str = ::leader_core::__private::timezone(ZONE);
                const __LEADER_DAYS: ::leader_core::__private::Days = ::leader_core::__private::days(
                    "0 0 9 1-7 * MON",
                    ::leader_core::__private::Days::And,
                );
                const __LEADER_JITTER: ::core::time::Duration = ::leader_core::__private::duration(
                    "30s",
                );
                ::leader_core::__private::Record::new(
                        Self::NAME,
                        Self::GROUP,
                        ::core::module_path!(),
                    )
                    .job(
                        __LEADER_CRON,
                        |_| ::leader_core::__private::body(
                            report(),
                            ::leader_core::__private::output::<()>(),
                        ),
                        |_| {},
                    )
                    .timezone(__LEADER_TIMEZONE)
                    .days(__LEADER_DAYS)
                    .jitter(__LEADER_JITTER)
            };
        }
    "#]]
    .assert_eq(&pretty[record..]);
}

#[test]
fn the_schedule_is_told_in_words() {
    for (options, told) in [
        (
            r#"cron = "*/5 * * * *""#,
            "`default` every 5 minutes: `*/5 * * * *` (UTC).",
        ),
        (
            r#"cron = "0 9 * * MON-FRI", timezone = "Europe/Berlin""#,
            "`default` at 09:00 on weekdays: `0 9 * * MON-FRI` (Europe/Berlin).",
        ),
        (
            r#"cron = "@daily", timezone = zones::HOME, jitter = "10m""#,
            "`default` at 00:00 every day: `@daily` (`zones::HOME`), each time up to `10m` later, less than the distance \
             to the next tick.",
        ),
        (
            r#"cron = "0 0 9 1-7 * MON", days = "and""#,
            "`default`, at `0 0 9 1-7 * MON` (both day fields must match, UTC).",
        ),
        (
            r#"cron = "0 9 1,15 * MON", days = "or""#,
            "`default`, at `0 9 1,15 * MON` (either day field may match, UTC).",
        ),
        ("cron = EXPR", "`default`, at `EXPR` (UTC)."),
        (r#"every = "90s", group = "g""#, "`g` every 90 seconds: `90s`."),
        (
            r#"every = "7d""#,
            "`default` every 7 days, on Thursdays at 00:00 (UTC): `7d`.",
        ),
        (
            r#"every = "1h30m", jitter = JITTER"#,
            "`default`, every `1h30m`, each time up to `JITTER` later, less than the distance to the next tick.",
        ),
        (
            r#"every = "90m", jitter = "1h29m""#,
            "`default` every 90 minutes: `90m`, each time up to `1h29m` later.",
        ),
        (
            r#"every = "30s", jitter = "1m""#,
            "`default` every 30 seconds: `30s`, each time later by less than the period.",
        ),
        (
            r#"every = "30s", jitter = "1min""#,
            "`default` every 30 seconds: `30s`, each time up to `1min` later, less than the distance to the next tick.",
        ),
    ] {
        let pretty = pretty(options, FUNCTION);
        let line = pretty.lines().next().unwrap();
        assert_eq!(line, format!("/// Runs on the leader of group {told}"), "{options}");
    }
}

/// An option without the trigger that it needs is told once, with the way out.
#[test]
fn zones_and_days_need_a_cron_expression() {
    let bad = |options: &str| mistakes(options, FUNCTION).join("; ");
    for (options, told) in [
        (
            r#"every = "1h", timezone = "UTC""#,
            "real time since 1970-01-01T00:00:00Z and has no zone; name times of the day with `cron =",
        ),
        (
            r#"every = "1h", days = "or""#,
            "`days` needs `cron`: a period counts real time and has no day fields",
        ),
        (
            r#"while_leading, days = "or""#,
            "`days` needs `cron`: a `while_leading` body has no ticks",
        ),
        (
            r#"timezone = "UTC""#,
            r#"`timezone` needs `cron`: add `cron = "*/5 * * * *"`"#,
        ),
        (
            r#"jitter = "1s""#,
            r#"`jitter` needs `cron` or `every`: add `cron = "*/5 * * * *"` or"#,
        ),
        (
            r#"cron = "@daily", days = "xor""#,
            r#"unknown value for `days`; did you mean `"or"`? expected one of: `"or"`, `"and"`"#,
        ),
    ] {
        let found = bad(options);
        assert!(found.contains(told) && !found.contains("; `"), "{options}: {found}");
    }
    // Two triggers are one mistake.
    assert_eq!(
        bad(r#"every = "1h", cron = "@daily", timezone = "UTC""#),
        "`cron` and `every` exclude each other: a job has one trigger"
    );
}

#[test]
fn a_standing_job() {
    check(
        "while_leading, crate = crate::renamed",
        "async fn r#loop() { work().await }",
        &expect![[r#"
            /// Runs on the leader of group `default` for as long as it leads.
            ///
            /// # Errors
            /// `Skipped` where this instance does not lead the group; the body has not run then.
            async fn r#loop() -> ::core::result::Result<(), crate::renamed::__private::Skipped> {
                const _: () = {
                    crate::renamed::__private::submit! {
                        < r#loop as crate ::renamed::__private::Job > ::RECORD
                    }
                };
                match crate::renamed::__private::enter(
                    <r#loop as crate::renamed::__private::Job>::GROUP,
                ) {
                    ::core::result::Result::Ok(entry) => {
                        ::core::result::Result::Ok(
                            entry
                                .run(async move {
                                    #[allow(
                                        unreachable_code,
                                        clippy::diverging_sub_expression,
                                        clippy::empty_loop,
                                        clippy::let_unit_value,
                                        clippy::needless_return,
                                        reason = "never run: it tells the block its type"
                                    )]
                                    if false {
                                        let __leader_returned: () = loop {};
                                        return __leader_returned;
                                    }
                                    { work().await }
                                })
                                .await,
                        )
                    }
                    ::core::result::Result::Err(skipped) => ::core::result::Result::Err(skipped),
                }
            }
            #[doc(hidden)]
            #[allow(
                non_camel_case_types,
                missing_debug_implementations,
                missing_copy_implementations,
                unreachable_pub,
                dead_code,
                reason = "the handle has the name of its function and is never a value"
            )]
            enum r#loop {}
            #[allow(deprecated, reason = "a deprecated job runs until it is taken out")]
            impl crate::renamed::__private::Job for r#loop {
                const NAME: &'static str = crate::renamed::__private::name("loop");
                const GROUP: &'static str = crate::renamed::__private::DEFAULT_GROUP;
                const RECORD: crate::renamed::__private::Record = crate::renamed::__private::Record::new(
                        Self::NAME,
                        Self::GROUP,
                        ::core::module_path!(),
                    )
                    .job(
                        crate::renamed::__private::Trigger::WhileLeading,
                        |_| crate::renamed::__private::body(
                            r#loop(),
                            crate::renamed::__private::output::<()>(),
                        ),
                        |_| {},
                    );
            }
        "#]],
    );
}

#[test]
fn a_handler_has_every_policy_and_one_payload() {
    let all = "handler, grace = \"1s\", jitter = \"1s\", missed = \"all\", max_missed = 3, timeout = \"5s\", overlap = \"wait\", \
               retries = 2, backoff = \"1s\", on_loss = \"finish\", except = \"a\"";
    let of = "async fn f(tick: Tick, Payload(report): Payload<Report>) {}";
    assert!(mistakes(all, of).is_empty());
    let put_out = crate::expanded(Attribute::LeaderOnly, parsed("handler"), parsed(of)).to_string();
    assert!(
        put_out.contains("Handler for f { type Payload = Report ; }"),
        "{put_out}"
    );
    assert!(
        put_out.contains("extract_handling :: < Payload < Report > , f > (given) ?"),
        "{put_out}"
    );
    let nothing = crate::expanded(Attribute::LeaderOnly, parsed("handler"), parsed(FUNCTION)).to_string();
    assert!(nothing.contains("type Payload = () ;"), "{nothing}");

    assert_eq!(
        mistakes("handler", "async fn f(a: Payload<A>, b: leader_core::Payload<B>) {}"),
        ["a handler has one payload: put both into one type"]
    );
    let elsewhere = mistakes("every = \"1h\"", of);
    assert!(
        elsewhere.len() == 1 && elsewhere[0].contains("only a handler is run for those"),
        "{elsewhere:?}"
    );
    assert_eq!(
        mistakes("handler, timezone = \"UTC\"", FUNCTION),
        [
            "`timezone` needs `cron`: a handler has no schedule of its own: each one that is made for it at run time says this for itself"
        ]
    );
    assert_eq!(
        mistakes("handler, every = \"1h\"", FUNCTION),
        ["`every` and `handler` exclude each other: a job has one trigger"]
    );
}

#[test]
fn a_function_with_wrong_options_keeps_its_gate() {
    check(
        "crn = 1",
        FUNCTION,
        &expect![[r#"
            /// Runs only on the leader of group `default`.
            ///
            /// # Errors
            /// `Skipped` where this instance does not lead the group; the body has not run then.
            async fn f() -> ::core::result::Result<(), ::leader_core::__private::Skipped> {
                const __LEADER_GROUP: &str = ::leader_core::__private::DEFAULT_GROUP;
                match ::leader_core::__private::enter(__LEADER_GROUP) {
                    ::core::result::Result::Ok(entry) => {
                        ::core::result::Result::Ok(
                            entry
                                .run(async move {
                                    #[allow(
                                        unreachable_code,
                                        clippy::diverging_sub_expression,
                                        clippy::empty_loop,
                                        clippy::let_unit_value,
                                        clippy::needless_return,
                                        reason = "never run: it tells the block its type"
                                    )]
                                    if false {
                                        let __leader_returned: () = loop {};
                                        return __leader_returned;
                                    }
                                    {}
                                })
                                .await,
                        )
                    }
                    ::core::result::Result::Err(skipped) => ::core::result::Result::Err(skipped),
                }
            }
            ::core::compile_error! {
                "unknown option `crn`; did you mean `cron`? expected one of: `group`, `name`, `was`, `cron`, `every`, `while_leading`, `handler`, `timezone`, `days`, `jitter`, `timeout`, `grace`, `missed`, `max_missed`, `max_age`, `overlap`, `on_loss`, `retries`, `backoff`, `except`, `crate`"
            }
        "#]],
    );
}

/// Lines of an example that rustdoc hides begin like a heading.
#[test]
fn an_example_is_not_taken_apart() {
    for fence in ["```", "~~~"] {
        let docs = format!("/// Sends it.\n///\n/// {fence}\n/// # use shop::send;\n/// send();\n/// {fence}\n");
        let text = pretty("", &format!("{docs}async fn send() {{}}"));
        let ours = "///\n/// Runs only on the leader of group `default`.\n";
        assert!(text.starts_with(&(docs.clone() + ours)), "{text}");
        // One after it is.
        let text = pretty(
            "",
            &format!("{docs}///\n/// # Panics\n/// Never.\nasync fn send() {{}}"),
        );
        let heading = "/// Runs only on the leader of group `default`.\n///\n/// # Panics\n";
        assert!(text.contains(heading), "{text}");
    }
}

#[test]
fn a_job_with_wrong_options_keeps_its_handle() {
    check(
        "cron = 1",
        "async fn f(tick: Tick) {}",
        &expect![[r#"
        /// Runs only on the leader of group `default`.
        ///
        /// # Errors
        /// `Skipped` where this instance does not lead the group; the body has not run then.
        async fn f(tick: Tick) -> ::core::result::Result<(), ::leader_core::__private::Skipped> {
            match ::leader_core::__private::enter(<f as ::leader_core::__private::Job>::GROUP) {
                ::core::result::Result::Ok(entry) => {
                    ::core::result::Result::Ok(
                        entry
                            .run(async move {
                                let tick = tick;
                                #[allow(
                                    unreachable_code,
                                    clippy::diverging_sub_expression,
                                    clippy::empty_loop,
                                    clippy::let_unit_value,
                                    clippy::needless_return,
                                    reason = "never run: it tells the block its type"
                                )]
                                if false {
                                    let __leader_returned: () = loop {};
                                    return __leader_returned;
                                }
                                {}
                            })
                            .await,
                    )
                }
                ::core::result::Result::Err(skipped) => ::core::result::Result::Err(skipped),
            }
        }
        #[doc(hidden)]
        #[allow(
            non_camel_case_types,
            missing_debug_implementations,
            missing_copy_implementations,
            unreachable_pub,
            dead_code,
            reason = "the handle has the name of its function and is never a value"
        )]
        enum f {}
        #[allow(deprecated, reason = "a deprecated job runs until it is taken out")]
        impl ::leader_core::__private::Job for f {
            const NAME: &'static str = ::leader_core::__private::name("f");
            const GROUP: &'static str = ::leader_core::__private::DEFAULT_GROUP;
            const RECORD: ::leader_core::__private::Record = ::leader_core::__private::Record::new(
                Self::NAME,
                Self::GROUP,
                ::core::module_path!(),
            );
        }
        ::core::compile_error! {
            "`cron` takes a string or a constant: write `cron = \"*/5 * * * *\"`"
        }
    "#]],
    );
}

#[test]
fn a_function_that_cannot_be_gated_stays_as_it_was() {
    check(
        "",
        "fn f() -> u8 { 7 }",
        &expect![[r#"
        fn f() -> u8 {
            7
        }
        ::core::compile_error! {
            "only an `async fn` can be gated: add `async`"
        }
    "#]],
    );
    // Less what the compiler would refuse a second time.
    check(
        "",
        "const async fn f(x: u8, ...) { g(x) }",
        &expect![[r#"
        async fn f(x: u8) {
            g(x)
        }
        ::core::compile_error! {
            "a `const fn` cannot be gated: take `const` away"
        }
        ::core::compile_error! {
            "a variadic function cannot be gated: take a slice instead"
        }
    "#]],
    );
}

#[test]
fn every_key_has_its_row_and_its_example_is_right() {
    for (key, word, example) in options::words().filter(|(key, ..)| Attribute::LeaderOnly.has(*key)) {
        assert_eq!((key.word(), key.example()), (word, example));
        let needed = match key {
            Key::Timezone | Key::Days => r#"cron = "0 9 1-7 * MON", "#,
            Key::MaxMissed => r#"every = "1h", missed = "all", "#,
            Key::Jitter
            | Key::Timeout
            | Key::Grace
            | Key::Missed
            | Key::MaxAge
            | Key::Overlap
            | Key::OnLoss
            | Key::Retries
            | Key::Except
            | Key::Was => r#"every = "1h", "#,
            Key::Backoff => r#"every = "1h", retries = 3, "#,
            _ => "",
        };
        assert!(
            mistakes(&format!("{needed}{example}"), FUNCTION).is_empty(),
            "{example}"
        );
        assert_eq!(
            mistakes(&format!("{needed}{example}, {example}"), FUNCTION),
            [format!("`{word}` is given twice")]
        );
    }
}

#[test]
fn a_wrong_value_is_the_only_thing_told_of_its_option() {
    for (key, word, example) in options::words().filter(|(key, ..)| Attribute::LeaderOnly.has(*key)) {
        let wrong: &[&str] = match key {
            Key::WhileLeading => &["while_leading = true", "while_leading(true)"],
            Key::Handler => &["handler = true", "handler(true)"],
            Key::MaxMissed | Key::Retries => &["", " =", " = \"1\"", " = 1.5", " = -1", "(1)", " = ?"],
            _ => &["", " =", " = 1", " = b\"x\"", "(\"x\")", " = ?"],
        };
        for value in wrong {
            let option = value
                .strip_prefix(word)
                .map_or_else(|| format!("{word}{value}"), |_| (*value).to_owned());
            let mut errors = Errors::default();
            let options = options::parse(
                Attribute::LeaderOnly,
                parsed(&format!("{option}, every = \"1h\", colour = 1")),
                &mut errors,
            );
            assert!(options.get(key).is_some(), "{option}: counts as given");
            let told = errors.into_compile_errors().to_string();
            let count = told.matches("compile_error").count();
            assert_eq!(
                count,
                if key == Key::Every { 3 } else { 2 },
                "{option} ({example}): {told}"
            );
        }
    }
}

#[test]
fn calendars_are_one_name_or_several() {
    let with = |value: &str| mistakes(&format!("every = \"1h\", except = {value}"), FUNCTION);
    for right in ["\"holidays\"", "HOLIDAYS", "[\"holidays\", FREEZE]", "[\"holidays\"]"] {
        assert!(with(right).is_empty(), "{right}");
    }
    for (wrong, told) in [
        (
            "[]",
            "`except` names nothing: write `except = \"holidays\"`, or take it out",
        ),
        ("[\"a\", \"b\", \"a\"]", "`a` is named twice"),
        (
            "(\"a\", \"b\")",
            "`except` takes a string or a constant, or several: write `except = \"holidays\"` or `except = [\"holidays\", \"freeze\"]`",
        ),
    ] {
        assert_eq!(with(wrong), [told], "{wrong}");
    }
    assert_eq!(
        mistakes("while_leading, except = \"a\"", FUNCTION),
        ["`except` needs `cron` or `every`: a `while_leading` body has no ticks; it lives as long as the leadership"]
    );
    let mut errors = Errors::default();
    let options = options::parse(
        Attribute::LeaderOnly,
        parsed("every = \"1h\", except = [\"holidays\", FREEZE]"),
        &mut errors,
    );
    assert!(options.get(Key::Except).is_some() && errors.is_empty());
}

#[test]
fn earlier_names_are_one_or_several() {
    let with = |value: &str| mistakes(&format!("every = \"1h\", was = {value}"), FUNCTION);
    for right in ["\"purge\"", "OLD", "[\"purge\", OLD]"] {
        assert!(with(right).is_empty(), "{right}");
    }
    for (wrong, told) in [
        ("[]", "`was` names nothing: write `was = \"purge\"`, or take it out"),
        ("[\"a\", \"a\"]", "`a` is named twice"),
        (
            "7",
            "`was` takes a string or a constant, or several: write `was = \"purge\"` or `was = [\"purge\", \"sweep\"]`",
        ),
    ] {
        assert_eq!(with(wrong), [told], "{wrong}");
    }
    assert_eq!(
        mistakes("was = \"a\"", FUNCTION),
        ["`was` needs `cron` or `every`: add `cron = \"*/5 * * * *\"` or `every = \"30s\"`"]
    );
}

#[test]
fn the_nearest_word_is_offered() {
    for (typo, meant) in [
        ("renamed_from", "was"),
        ("gruop", "group"),
        ("crn", "cron"),
        ("corn", "cron"),
        ("evry", "every"),
        ("whileleading", "while_leading"),
        ("time_out", "timeout"),
        ("onloss", "on_loss"),
        ("mised", "missed"),
        ("time_zone", "timezone"),
        ("tz", "timezone"),
        ("schedule", "cron"),
        ("interval", "every"),
        ("jiter", "jitter"),
        ("day", "days"),
    ] {
        let told = mistakes(&format!("{typo} = 1"), FUNCTION);
        assert_eq!(told.len(), 1, "{told:?}");
        let offered = format!("unknown option `{typo}`; did you mean `{meant}`? expected one of: `group`, ");
        assert!(told[0].starts_with(&offered), "{told:?}");
    }
    assert!(mistakes("colour = 1", FUNCTION)[0].starts_with("unknown option `colour`; expected one of: "));
}

#[test]
fn a_value_alone_gets_the_option_that_it_is_for() {
    for (value, option) in [
        ("0 9 * * *", r#"cron = "0 9 * * *""#),
        ("0 0 9 ? * MON-FRI 2030", r#"cron = "0 0 9 ? * MON-FRI 2030""#),
        ("@daily", r#"cron = "@daily""#),
        ("1h30m", r#"every = "1h30m""#),
        ("cleanup", r#"group = "cleanup""#),
        ("once upon a time there was", r#"group = "cleanup""#),
    ] {
        let told = mistakes(&format!("{value:?}"), FUNCTION);
        assert_eq!(told, [format!("a value needs its option: write `{option}`")]);
    }
    let told = mistakes(r#"cron = "0 9 1 * MON", days = "AND""#, FUNCTION);
    assert!(
        told[0].starts_with(r#"unknown value for `days`; did you mean `"and"`?"#),
        "{told:?}"
    );
}

#[test]
fn odd_punctuation_is_survived() {
    assert!(mistakes("", FUNCTION).is_empty());
    assert!(mistakes(r#"group = "a","#, FUNCTION).is_empty());
    for odd in [
        ",",
        "= 1",
        r#""a""#,
        "group = = 1",
        "group = \"a\" \"b\"",
        "group.x",
        "::a",
        "{}",
        "group = \"a\";",
    ] {
        assert!(!mistakes(odd, FUNCTION).is_empty(), "{odd}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let told = mistakes(
        r#"crn = 1, group = 2, cron = "*", every = "1s", timeout = 3"#,
        "fn f(self) {}",
    );
    assert_eq!(told.len(), 5, "{told:#?}");
}

#[test]
fn functions_that_cannot_be_gated_are_refused() {
    for (item, told) in [
        ("fn f() {}", "only an `async fn` can be gated: add `async`"),
        (
            "fn f() -> impl Future<Output = u8> { g() }",
            "only an `async fn` can be gated: write",
        ),
        (
            "fn f<'a>() -> Pin<Box<dyn Future<Output = u8> + 'a>> { g() }",
            "only an `async fn` can be gated: write",
        ),
        ("async fn f();", "a declaration has no body to gate"),
        ("const async fn f() {}", "a `const fn`"),
        ("async unsafe fn f() {}", "an `unsafe fn`"),
        (r#"async extern "C" fn f() {}"#, "a function with a foreign ABI"),
        ("async fn f(x: u8, ...) {}", "a variadic function"),
        ("async fn f() -> ! { loop {} }", "a gated function returns"),
        ("struct F;", "`#[leader_only]` stands on an `async fn`"),
        ("static F: u8 = 1;", "`#[leader_only]` stands on an `async fn`"),
        (
            "#[tokio::main] async fn main() {}",
            "`#[tokio::main]` makes a function that is not async",
        ),
        (
            "#[test] async fn test() {}",
            "`#[test]` makes a function that is not async",
        ),
        (
            "#[instrument(ret, skip_all)] async fn f() {}",
            "`#[instrument]` with `err` or `ret`",
        ),
        ("#[leader_only] async fn f() {}", "`#[leader_only]` is written twice"),
    ] {
        let found = mistakes("", item);
        assert!(found.len() == 1 && found[0].starts_with(told), "{item}: {found:?}");
    }
    assert!(mistakes("", "#[tracing::instrument(skip(err), fields(ret = 1))] async fn f() {}").is_empty());
}

#[test]
fn functions_that_cannot_be_jobs_are_refused() {
    for (item, told) in [
        ("async fn f(&self) {}", "a job is a free function"),
        ("async fn f(self: Arc<Self>) {}", "a job is a free function"),
        ("async fn f<T>() {}", "a job is not generic"),
        ("async fn f<'a>() {}", "a job is not generic"),
        (
            "async fn f(a: impl Send) {}",
            "an argument of a job has a type of its own",
        ),
        (
            "async fn f(a: Option<impl Send>) {}",
            "an argument of a job has a type of its own",
        ),
        (
            "async fn f(#[cfg(unix)] a: Tick) {}",
            "an argument of a job cannot be under `cfg`",
        ),
    ] {
        let found = mistakes(r#"every = "1h""#, item);
        assert!(found.len() == 1 && found[0].starts_with(told), "{item}: {found:?}");
        assert!(mistakes("", item).is_empty(), "{item}");
    }
}
