//! The same of `#[scheduled]`.

use expect_test::{Expect, expect};

use super::parsed;
use crate::attribute::Attribute;
use crate::options::{self, Key};

fn check(options: &str, item: &str, expected: &Expect) {
    let tokens = crate::expanded(Attribute::Scheduled, parsed(options), parsed(item));
    expected.assert_eq(&prettyplease::unparse(&syn::parse2(tokens).unwrap()));
}

fn mistakes(options: &str, item: &str) -> Vec<String> {
    let tokens = crate::expanded(Attribute::Scheduled, parsed(options), parsed(item));
    let file: syn::File = syn::parse2(tokens).unwrap();
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
fn the_function_stays_as_it_was() {
    check(
        r#"on = "any", group = "mail", every = "30s", retries = 2"#,
        "/// Fetches.
        #[cfg(unix)]
        pub async fn fetch(tick: Tick, State(db): State<Db>) -> Result<(), Error> { db.fetch(tick).await }",
        &expect![[r#"
            /// Fetches.
            ///
            /// Runs on any one instance of group `mail` every 30 seconds: `30s`.
            #[cfg(unix)]
            #[allow(clippy::unused_async, reason = "a job is async, whatever it awaits")]
            pub async fn fetch(tick: Tick, State(db): State<Db>) -> Result<(), Error> {
                db.fetch(tick).await
            }
            #[cfg(unix)]
            const _: () = {
                ::leader_core::__private::submit! {
                    < fetch as ::leader_core::__private::Job > ::RECORD
                }
            };
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
            pub enum fetch {}
            #[cfg(unix)]
            #[allow(deprecated, reason = "a deprecated job runs until it is taken out")]
            impl ::leader_core::__private::Job for fetch {
                const NAME: &'static str = ::leader_core::__private::name("fetch");
                const GROUP: &'static str = ::leader_core::__private::name("mail");
                const RECORD: ::leader_core::__private::Record = {
                    const __LEADER_EVERY: ::leader_core::__private::Trigger = ::leader_core::__private::every(
                        "30s",
                    );
                    const __LEADER_RETRIES: u32 = ::leader_core::__private::retries(2);
                    ::leader_core::__private::Record::new(
                            Self::NAME,
                            Self::GROUP,
                            ::core::module_path!(),
                        )
                        .job(
                            __LEADER_EVERY,
                            |given| ::leader_core::__private::open_body(
                                fetch(
                                    ::leader_core::__private::extract::<Tick>(given),
                                    ::leader_core::__private::extract::<State<Db>>(given),
                                ),
                                ::leader_core::__private::output::<Result<(), Error>>(),
                            ),
                            |needs| {
                                ::leader_core::__private::need::<Tick>(needs);
                                ::leader_core::__private::need::<State<Db>>(needs);
                            },
                        )
                        .retries(__LEADER_RETRIES)
                        .on(::leader_core::__private::On::Any)
                };
            }
        "#]],
    );
}

#[test]
fn a_job_with_wrong_options_keeps_its_handle() {
    check(
        r#"on = "any""#,
        FUNCTION,
        &expect![[r#"
            /// Runs on any one instance of group `default`.
            #[allow(clippy::unused_async, reason = "a job is async, whatever it awaits")]
            async fn f() {}
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
                "`#[scheduled]` needs a schedule: add `cron = \"*/5 * * * *\"` or `every = \"30s\"`"
            }
        "#]],
    );
}

#[test]
fn where_and_when_must_be_said() {
    let needs = |options: &str| mistakes(options, FUNCTION);
    assert_eq!(
        needs(""),
        [
            "`#[scheduled]` needs `on`, which says where its ticks run: write `on = \"any\"` for whatever instance comes first, \
             or `on = \"fleet\"` for the workers of a queue",
            "`#[scheduled]` needs a schedule: add `cron = \"*/5 * * * *\"` or `every = \"30s\"`",
        ]
    );
    assert_eq!(needs(r#"on = "any", every = "1h""#), [""; 0]);
    assert_eq!(needs(r#"on = "fleet", every = "1h""#), [""; 0]);
    assert_eq!(
        needs(r#"on = "fleets", every = "1h""#),
        [
            "unknown value for `on`; did you mean `\"fleet\"`? expected one of: `\"any\"`, `\"fleet\"`; what runs on the leader alone is \
             annotated with `#[leader_only]`"
        ]
    );
}

#[test]
fn each_attribute_sends_to_the_other_for_what_it_lacks() {
    assert_eq!(
        mistakes(
            r#"on = "any", every = "1h", on_loss = "finish", while_leading"#,
            FUNCTION
        ),
        [
            "`on_loss` is an option of `#[leader_only]`: a run of `#[scheduled]` is cancelled when its claim ends",
            "`while_leading` is an option of `#[leader_only]`: `#[scheduled]` has a leader for nothing",
        ]
    );
    assert_eq!(
        super::mistakes(r#"on = "any", every = "1h""#, FUNCTION),
        ["`on` is an option of `#[scheduled]`: what `#[leader_only]` stands on runs on the leader of its group"]
    );
}

#[test]
fn every_other_option_means_the_same() {
    for (key, _, example) in options::words().filter(|(key, ..)| Attribute::Scheduled.has(*key)) {
        let rest = match key {
            Key::Cron | Key::Every => "",
            Key::Timezone | Key::Days => r#"cron = "0 9 1-7 * MON", "#,
            Key::MaxMissed => r#"every = "1h", missed = "all", "#,
            Key::Backoff => r#"every = "1h", retries = 3, "#,
            _ => r#"every = "1h", "#,
        };
        let told = |on: &str| mistakes(&format!("{on}{rest}{example}"), FUNCTION).len();
        // Some belong to one of the places alone.
        let (any, fleet) = match key {
            Key::On => {
                assert_eq!(told(""), 0);
                continue;
            }
            Key::Overlap => (0, 1),
            Key::Queue | Key::Concurrency => (1, 0),
            _ => (0, 0),
        };
        assert_eq!(told(r#"on = "any", "#), any, "{example}");
        assert_eq!(told(r#"on = "fleet", "#), fleet, "{example}");
    }
}

#[test]
fn what_belongs_to_one_place_is_refused_in_the_other() {
    assert_eq!(
        mistakes(r#"on = "any", every = "1h", queue = "q", concurrency = 2"#, FUNCTION),
        [
            "`queue` needs `on = \"fleet\"`: with `on = \"any\"` whoever claims a tick runs it, and nothing waits in a queue",
            "`concurrency` needs `on = \"fleet\"`: with `on = \"any\"` whoever claims a tick runs it, and nothing waits in a queue",
        ]
    );
    assert_eq!(
        mistakes(r#"on = "fleet", every = "1h", overlap = "wait""#, FUNCTION),
        [
            "`overlap` has no meaning with `on = \"fleet\"`: each tick becomes a task, and the tasks of a job run beside each other; write \
             `concurrency = 1` for one at a time on each instance, or `on = \"any\"`"
        ]
    );
}

/// The call by whose name the compiler tells what is lacking without the feature stands where the word does.
#[test]
fn ticks_for_the_fleet_name_their_queue() {
    let tokens = crate::expanded(
        Attribute::Scheduled,
        parsed(r#"on = "fleet", group = "g", every = "1h", queue = QUEUE, concurrency = 2"#),
        parsed("async fn report(tick: Tick) {}"),
    );
    let pretty = prettyplease::unparse(&syn::parse2(tokens).unwrap());
    assert!(
        pretty.starts_with(
            "/// Runs on any one worker of the queue `QUEUE`, by the schedule of group `g`, every hour: `1h`.\n"
        ),
        "{pretty}"
    );
    let record = pretty.find(".concurrency(").unwrap();
    expect![[r"
        .concurrency(__LEADER_CONCURRENCY)
                    .queue(__LEADER_QUEUE)
                    .on(::leader_core::__private::fleet_needs_the_feature_tasks())
            };
        }
    "]]
    .assert_eq(&pretty[record..]);
    for constant in [
        "const __LEADER_CONCURRENCY: u32 = ::leader_core::__private::concurrency(2);",
        "const __LEADER_QUEUE: &'static str = ::leader_core::__private::queue(QUEUE);",
    ] {
        assert!(pretty.contains(constant), "{pretty}");
    }
}

#[test]
fn functions_that_cannot_be_jobs_are_refused() {
    for (function, start) in [
        ("fn f() {}", "only an `async fn` can be scheduled: add"),
        (
            "fn f() -> impl Future<Output = ()> { g() }",
            "only an `async fn` can be scheduled: write",
        ),
        ("async fn f();", "a declaration has no body to run: a job"),
        ("const fn f() {}", "only an `async fn` can be scheduled"),
        ("async unsafe fn f() {}", "an `unsafe fn` cannot be scheduled"),
        (
            "async extern fn f() {}",
            "a function with a foreign ABI cannot be scheduled",
        ),
        ("async fn f(&self) {}", "a job is a free function"),
        ("async fn f<T>() {}", "a job is not generic"),
        ("#[scheduled] async fn f() {}", "`#[scheduled]` is written twice"),
        (
            "#[leader_only] async fn f() {}",
            "`#[scheduled]` and `#[leader_only]` exclude each other",
        ),
        (
            "#[tokio::main] async fn f() {}",
            "`#[tokio::main]` makes a function that is not async",
        ),
        ("struct F;", "`#[scheduled]` stands on an `async fn`"),
    ] {
        let told = mistakes(r#"on = "any", every = "1h""#, function);
        assert!(
            told.first().is_some_and(|told| told.starts_with(start)),
            "{function}: {told:?}"
        );
    }
}
