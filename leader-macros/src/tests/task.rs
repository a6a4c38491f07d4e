//! The same of `#[task]`.

use expect_test::{Expect, expect};

use super::parsed;
use crate::attribute::Attribute;
use crate::options;

fn pretty(options: &str, item: &str) -> String {
    let tokens = crate::expanded(Attribute::Task, parsed(options), parsed(item));
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

fn check(options: &str, item: &str, expected: &Expect) {
    expected.assert_eq(&pretty(options, item));
}

fn mistakes(options: &str, item: &str) -> Vec<String> {
    let tokens = crate::expanded(Attribute::Task, parsed(options), parsed(item));
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
fn the_function_stays_and_its_record_stands_beside_it() {
    check(
        r#"queue = "invoices", name = "charge-card", retries = 5, backoff = "2s..1m", timeout = "30s", concurrency = MOST"#,
        "/// Charges.
        #[cfg(unix)]
        pub async fn charge(invoice: Invoice, task: Task, State(db): State<Db>) -> anyhow::Result<()> { db.charge(invoice, task).await }",
        &expect![[r#"
            /// Charges.
            ///
            /// Task of the queue `invoices`: a worker runs it when it is due, with up to 5 retries, at most `30s` each time, at most `MOST` at once on one instance.
            #[cfg(unix)]
            #[allow(clippy::unused_async, reason = "a task is async, whatever it awaits")]
            pub async fn charge(
                invoice: Invoice,
                task: Task,
                State(db): State<Db>,
            ) -> anyhow::Result<()> {
                db.charge(invoice, task).await
            }
            #[cfg(unix)]
            const _: () = {
                ::leader_core::__private::submit! {
                    < charge as ::leader_core::__private::TaskHandler > ::RECORD
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
            pub enum charge {}
            #[cfg(unix)]
            #[allow(deprecated, reason = "a deprecated task runs until it is taken out")]
            impl ::leader_core::__private::TaskHandler for charge {
                const NAME: &'static str = ::leader_core::__private::name("charge-card");
                const QUEUE: &'static str = ::leader_core::__private::queue("invoices");
                type Payload = Invoice;
                const RECORD: ::leader_core::__private::TaskRecord = {
                    const __LEADER_TIMEOUT: ::core::time::Duration = ::leader_core::__private::duration(
                        "30s",
                    );
                    const __LEADER_RETRIES: u32 = ::leader_core::__private::task_retries(5);
                    const __LEADER_CONCURRENCY: u32 = ::leader_core::__private::concurrency(MOST);
                    const __LEADER_BACKOFF: ::leader_core::__private::Backoff = ::leader_core::__private::backoff(
                        "2s..1m",
                    );
                    ::leader_core::__private::TaskRecord::new(
                            Self::NAME,
                            Self::QUEUE,
                            ::core::module_path!(),
                            |given| ::leader_core::__private::handled(|| ::core::result::Result::Ok(
                                ::leader_core::__private::open_body(
                                    charge(
                                        ::leader_core::__private::task_payload::<charge>(given)?,
                                        ::leader_core::__private::extract_task::<Task>(given),
                                        ::leader_core::__private::extract_task::<State<Db>>(given),
                                    ),
                                    ::leader_core::__private::task_output::<anyhow::Result<()>>(),
                                ),
                            )),
                            |needs| {
                                ::leader_core::__private::need_task::<Task>(needs);
                                ::leader_core::__private::need_task::<State<Db>>(needs);
                            },
                        )
                        .timeout(__LEADER_TIMEOUT)
                        .retries(__LEADER_RETRIES)
                        .concurrency(__LEADER_CONCURRENCY)
                        .backoff(__LEADER_BACKOFF)
                };
            }
            #[cfg(unix)]
            #[allow(deprecated, reason = "a deprecated payload is carried until it is taken out")]
            impl ::leader_core::__private::PayloadOf<charge> for Invoice {}
        "#]],
    );
}

#[test]
fn without_a_payload_nothing_is_read() {
    check(
        "",
        "async fn nightly(task: Task) {}",
        &expect![[r#"
            /// Task of the queue `default`: a worker runs it when it is due, with up to 3 retries.
            #[allow(clippy::unused_async, reason = "a task is async, whatever it awaits")]
            async fn nightly(task: Task) {}
            const _: () = {
                ::leader_core::__private::submit! {
                    < nightly as ::leader_core::__private::TaskHandler > ::RECORD
                }
            };
            #[doc(hidden)]
            #[allow(
                non_camel_case_types,
                missing_debug_implementations,
                missing_copy_implementations,
                unreachable_pub,
                dead_code,
                reason = "the handle has the name of its function and is never a value"
            )]
            enum nightly {}
            #[allow(deprecated, reason = "a deprecated task runs until it is taken out")]
            impl ::leader_core::__private::TaskHandler for nightly {
                const NAME: &'static str = ::leader_core::__private::name("nightly");
                const QUEUE: &'static str = ::leader_core::__private::DEFAULT_QUEUE;
                type Payload = ();
                const RECORD: ::leader_core::__private::TaskRecord = ::leader_core::__private::TaskRecord::new(
                    Self::NAME,
                    Self::QUEUE,
                    ::core::module_path!(),
                    |given| ::leader_core::__private::open_body(
                        nightly(::leader_core::__private::extract_task::<Task>(given)),
                        ::leader_core::__private::task_output::<()>(),
                    ),
                    |needs| {
                        ::leader_core::__private::need_task::<Task>(needs);
                    },
                );
            }
            #[allow(deprecated, reason = "a deprecated payload is carried until it is taken out")]
            impl ::leader_core::__private::PayloadOf<nightly> for () {}
        "#]],
    );
}

#[test]
fn a_task_with_wrong_options_keeps_its_handle() {
    check(
        "retries = 2, retries = 3",
        "async fn f(n: u8) {}",
        &expect![[r#"
        /// Task of the queue `default`: a worker runs it when it is due, with up to 2 retries.
        #[allow(clippy::unused_async, reason = "a task is async, whatever it awaits")]
        async fn f(n: u8) {}
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
        #[allow(deprecated, reason = "a deprecated task runs until it is taken out")]
        impl ::leader_core::__private::TaskHandler for f {
            const NAME: &'static str = ::leader_core::__private::name("f");
            const QUEUE: &'static str = ::leader_core::__private::DEFAULT_QUEUE;
            type Payload = u8;
            const RECORD: ::leader_core::__private::TaskRecord = ::leader_core::__private::TaskRecord::new(
                Self::NAME,
                Self::QUEUE,
                ::core::module_path!(),
                |_| ::core::unreachable!(),
                |_| {},
            );
        }
        #[allow(deprecated, reason = "a deprecated payload is carried until it is taken out")]
        impl ::leader_core::__private::PayloadOf<f> for u8 {}
        ::core::compile_error! {
            "`retries` is given twice"
        }
    "#]],
    );
}

/// What the first argument is decides.
#[test]
fn the_payload_is_the_first_argument_that_is_not_ours() {
    for (arguments, payload, extracted) in [
        ("", "()", 0),
        ("invoice: Invoice", "Invoice", 0),
        ("(): ()", "()", 0),
        ("task: leader_core::Task", "()", 1),
        ("State(db): State<Db>, invoice: Invoice", "()", 2),
        ("db: Option<leader_core::State<Db>>", "()", 1),
        ("invoice: Option<Invoice>, task: Task", "Option<Invoice>", 1),
        ("state: geo::State", "geo::State", 0),
        ("tasks: Task<u8>", "Task<u8>", 0),
        (
            "f: fn(&str) -> Option<&u8>, g: Box<dyn Fn(&str)>",
            "fn(&str) -> Option<&u8>",
            1,
        ),
        ("Invoice { id, .. }: Invoice, second: Invoice", "Invoice", 1),
    ] {
        let pretty = pretty("", &format!("async fn f({arguments}) {{}}"));
        assert!(pretty.contains(&format!("    type Payload = {payload};\n")), "{pretty}");
        assert!(
            pretty.contains(&format!(
                "impl ::leader_core::__private::PayloadOf<f> for {payload} {{}}"
            )),
            "{pretty}"
        );
        assert_eq!(pretty.matches("::extract_task::<").count(), extracted, "{pretty}");
        assert_eq!(pretty.matches("::need_task::<").count(), extracted, "{pretty}");
        let reads = pretty.contains("::task_payload::<f>(given)?");
        assert_eq!(reads, payload != "()" || arguments == "(): ()", "{pretty}");
    }
}

#[test]
fn the_task_is_told_in_words() {
    for (options, told) in [
        ("", "`default`: a worker runs it when it is due, with up to 3 retries."),
        (
            r#"queue = "mail", retries = 0"#,
            "`mail`: a worker runs it when it is due, with no retries.",
        ),
        (
            r#"retries = 1, timeout = "30s""#,
            "`default`: a worker runs it when it is due, with up to 1 retry, at most `30s` each time.",
        ),
        (
            "queue = queues::MAIL, retries = limits::TRIES, timeout = LONG, concurrency = MOST",
            "`queues::MAIL`: a worker runs it when it is due, with up to `limits::TRIES` retries, at most `LONG` each time, at most `MOST` at \
             once on one instance.",
        ),
        (
            "concurrency = 4",
            "`default`: a worker runs it when it is due, with up to 3 retries, at most 4 at once on one instance.",
        ),
    ] {
        let pretty = pretty(options, FUNCTION);
        assert_eq!(
            pretty.lines().next().unwrap(),
            format!("/// Task of the queue {told}"),
            "{options}"
        );
    }
}

#[test]
fn every_option_of_a_task_can_be_given_alone() {
    let mut own = Vec::new();
    for (key, word, example) in options::words() {
        let told = mistakes(example, FUNCTION);
        if Attribute::Task.has(key) {
            own.push(word);
            assert_eq!(told, [""; 0], "{example}");
        } else {
            // One message, and with a way out.
            let [told] = told.as_slice() else {
                panic!("{example}: {told:?}")
            };
            assert!(told.starts_with(&format!("`{word}` is an option of `#[")), "{told}");
        }
    }
    own.sort_unstable();
    assert_eq!(
        own,
        ["backoff", "concurrency", "crate", "name", "queue", "retries", "timeout"]
    );
}

#[test]
fn what_an_option_may_be_is_told() {
    let bad = |options: &str| mistakes(options, FUNCTION).join("; ");
    for (options, told) in [
        (
            "quue = \"q\"",
            "unknown option `quue`; did you mean `queue`? expected one of: `name`, `timeout`, `retries`, `backoff`, `queue`, `concurrency`, `crate`",
        ),
        (
            "max_retries = 3",
            "unknown option `max_retries`; did you mean `retries`?",
        ),
        // What another attribute has is not meant.
        ("interval = \"1h\"", "unknown option `interval`; expected one of"),
        ("\"invoices\"", "a value needs its option: write `queue = \"invoices\"`"),
        ("\"1h\"", "a value needs its option: write `queue = \"invoices\"`"),
        ("=", "expected an option, such as `queue = \"invoices\"`"),
        (
            "queue = 3",
            "`queue` takes a string or a constant: write `queue = \"invoices\"`",
        ),
        (
            "concurrency = -1",
            "`concurrency` takes a whole number or a constant: write `concurrency = 4`",
        ),
        ("queue = \"a\", queue = \"b\"", "`queue` is given twice"),
        (
            "retries = 0, backoff = \"1s\"",
            "`backoff` needs `retries`: with `retries = 0` no task is tried again",
        ),
        (
            "cron = \"* * * * *\", group = \"g\", retries = true",
            "`cron` is an option of `#[leader_only]` and `#[scheduled]`: a task is due when whoever enqueues it says, and has no ticks; \
             `#[scheduled(on = \"fleet\")]` is for schedules; \
             `group` is an option of `#[leader_only]` and `#[scheduled]`: tasks wait in a queue, and that needs no group; write \
             `queue = \"invoices\"`; `retries` takes a whole number or a constant: write `retries = 3`",
        ),
    ] {
        assert!(bad(options).contains(told), "{options}: {}", bad(options));
    }
}

#[test]
fn the_other_attributes_send_here_for_what_they_lack() {
    assert_eq!(
        super::mistakes("queue = \"q\", concurrency = 1", FUNCTION),
        [
            "`queue` is an option of `#[task]` and of `#[scheduled(on = \"fleet\")]`: what `#[leader_only]` stands on runs on the leader of its group",
            "`concurrency` is an option of `#[task]` and of `#[scheduled(on = \"fleet\")]`: what `#[leader_only]` stands on runs on the leader of \
             its group",
        ]
    );
    let either = "a task is run when somebody has enqueued it, and by nothing else; call one function from two others";
    assert_eq!(
        super::mistakes("", "#[task] async fn f() {}"),
        [format!("`#[leader_only]` and `#[task]` exclude each other: {either}")]
    );
    assert_eq!(
        mistakes("", "#[leader_core::scheduled(every = \"1h\")] async fn f() {}"),
        [format!(
            "`#[task]` and `#[leader_core::scheduled]` exclude each other: {either}"
        )]
    );
}

#[test]
fn functions_that_cannot_be_tasks_are_refused() {
    for (function, start) in [
        ("fn f() {}", "only an `async fn` can be a task: add `async`"),
        (
            "fn f() -> impl Future<Output = ()> { g() }",
            "only an `async fn` can be a task: write `async fn … -> R` instead of the future",
        ),
        (
            "async fn f();",
            "a declaration has no body to run: a task is a free function",
        ),
        (
            "const async fn f() {}",
            "a `const fn` cannot be a task: take `const` away",
        ),
        (
            "async unsafe fn f() {}",
            "an `unsafe fn` cannot be a task: put `#[task]` on a safe function that makes the unsafe call",
        ),
        (
            "async extern fn f() {}",
            "a function with a foreign ABI cannot be a task",
        ),
        (
            "async fn f(&self) {}",
            "a task is a free function: take what it needs as `State<T>`",
        ),
        ("async fn f<T>(t: T) {}", "a task is not generic"),
        ("async fn f<'a>(t: Text<'a>) {}", "a task is not generic"),
        (
            "async fn f(t: impl Into<String>) {}",
            "an argument of a task has a type of its own: its payload, `Task`, `State<T>` or `Option<State<T>>`, not `impl Trait`",
        ),
        (
            "async fn f(#[cfg(unix)] n: u8) {}",
            "an argument of a task cannot be under `cfg`",
        ),
        (
            "async fn f(text: &str) {}",
            "a task owns its payload: take `String` instead of `&str`",
        ),
        (
            "async fn f(p: &'static std::path::Path) {}",
            "a task owns its payload: take `PathBuf` instead of `&'static std::path::Path`",
        ),
        (
            "async fn f(bytes: &[Vec<u8>]) {}",
            "a task owns its payload: take `Vec<Vec<u8>>` instead of `&[Vec<u8>]`",
        ),
        (
            "async fn f(task: &Task) {}",
            "a task owns its payload: take `Task` instead of `&Task`",
        ),
        (
            "async fn f(text: Option<&str>) {}",
            "a task owns its payload: take `String` instead of `&str`",
        ),
        (
            "async fn f(Payload(i): leader_core::Payload<Invoice>) {}",
            "a task takes its payload as it is: write `Invoice` instead of `leader_core::Payload<Invoice>`",
        ),
        (
            "async fn zahlung_für(n: u8) {}",
            "a task's name is kept in the store, in ASCII: add `name =",
        ),
        ("#[task] async fn f() {}", "`#[task]` is written twice"),
        (
            "#[tokio::test] async fn f() {}",
            "`#[tokio::test]` makes a function that is not async, and only an `async fn` can be a task",
        ),
        ("struct F;", "`#[task]` stands on an `async fn`"),
    ] {
        let told = mistakes("", function);
        assert!(
            matches!(told.as_slice(), [told] if told.starts_with(start)),
            "{function}: {told:?}"
        );
        let tokens = crate::expanded(Attribute::Task, parsed(""), parsed(function)).to_string();
        assert!(!tokens.contains("submit"), "{tokens}");
    }
}
