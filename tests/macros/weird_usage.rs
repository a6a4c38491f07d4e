//! Everything an `async fn` may be.
#![allow(clippy::future_not_send, reason = "what is not `Send` is a part of the test")]

use std::cell::Cell;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use leader_core::testing::as_leader;
use leader_core::{Skipped, leader_only};

use crate::block_on;

trait Greets {
    /// A trait declares what the annotated method will return.
    async fn greet(&self, name: &str) -> Result<String, Skipped>;
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Service<T> {
    value: T,
}

impl<T: Debug + Clone> Service<T> {
    #[leader_only]
    async fn by_ref(&self) -> &T {
        &self.value
    }

    #[leader_only]
    async fn by_mut<'a>(&'a mut self, value: T) -> &'a T
    where
        T: Clone,
    {
        self.value = value;
        &self.value
    }

    #[leader_only]
    async fn by_value(mut self, value: T) -> Self {
        self.value = value;
        self
    }

    #[leader_only]
    async fn by_arc(self: Arc<Self>) -> usize {
        Arc::strong_count(&self)
    }

    #[leader_only]
    async fn associated(value: T) -> Self {
        Self { value }
    }
}

impl Greets for Service<u8> {
    #[leader_only(group = "greets")]
    async fn greet(&self, name: &str) -> String {
        format!("{name} {}", self.value)
    }
}

#[leader_only]
async fn r#match(r#type: u8) -> u8 {
    r#type
}

#[leader_only]
async fn impl_argument(text: impl AsRef<str> + Send) -> usize {
    text.as_ref().len()
}

#[leader_only]
async fn impl_return(number: u8) -> impl Display {
    if number > 7 {
        return number;
    }
    number + 1
}

#[leader_only]
async fn nested_impl_return(text: &str) -> Result<impl Iterator<Item = u8>, std::num::ParseIntError> {
    let end = text.parse()?;
    Ok(0..end)
}

#[leader_only]
async fn coerces(number: u8) -> Box<dyn Debug> {
    if number == 0 {
        return Box::new("zero");
    }
    Box::new(number)
}

#[leader_only]
async fn not_send(count: Rc<Cell<u8>>) -> Rc<Cell<u8>> {
    tokio::task::yield_now().await;
    count.set(count.get() + 1);
    count
}

fn factorial(n: u64) -> Pin<Box<dyn Future<Output = Result<u64, Skipped>> + Send>> {
    #[leader_only]
    async fn inner(n: u64) -> u64 {
        if n < 2 {
            return 1;
        }
        n * factorial(n - 1).await.unwrap_or(0)
    }
    Box::pin(inner(n))
}

#[leader_only]
async fn recursive(n: u64) -> u64 {
    if n == 0 {
        0
    } else {
        1 + Box::pin(recursive(n - 1)).await.unwrap_or(0)
    }
}

#[leader_only]
async fn items_inside(number: u8) -> u8 {
    #![allow(clippy::items_after_statements, reason = "they are what is tested")]
    const fn helper(number: u8) -> u8 {
        number + MORE
    }
    const MORE: u8 = 1;
    'search: for found in 0.. {
        if found == MORE {
            break 'search;
        }
        if number == 0 {
            return 0;
        }
    }
    helper(number)
}

#[leader_only]
async fn arguments(
    ref by_ref: String,
    whole @ (left, _): (u8, u8),
    #[cfg(any())] never: u8,
    [first, ..]: [u8; 3],
) -> String {
    format!("{by_ref} {whole:?} {left} {first}")
}

#[leader_only]
async fn two_lifetimes<'a, 'b: 'a, const N: usize>(left: &'a [u8; N], right: &'b str) -> (&'a [u8], &'b str) {
    (left, right)
}

#[leader_only]
async fn lends_a_temporary(text: &std::sync::Mutex<String>) -> usize {
    text.lock().map_or(0, |text| text.len())
}

mod visibility {
    #[leader_core::leader_only(every = "1h")]
    pub(in crate::weird_usage) async fn job() {}

    #[leader_core::leader_only]
    pub(super) async fn plain() {}
}

#[test]
fn methods() {
    let (by_ref, by_mut, by_value, by_arc, greeting) = block_on(as_leader(async {
        let mut service = Service::associated(1).await.unwrap();
        let by_ref = *service.by_ref().await.unwrap();
        let by_mut = *service.by_mut(2).await.unwrap();
        let service = service.by_value(3).await.unwrap();
        let by_arc = Arc::new(service.clone()).by_arc().await.unwrap();
        let greeting = service.greet("hello").await.unwrap();
        (by_ref, by_mut, service.value, by_arc, greeting)
    }));
    assert_eq!((by_ref, by_mut, by_value, by_arc), (1, 2, 3, 1));
    assert_eq!(greeting, "hello 3");
}

#[test]
fn functions() {
    block_on(as_leader(async {
        assert_eq!(r#match(1).await, Ok(1));
        assert_eq!(impl_argument("four").await, Ok(4));
        assert_eq!(impl_return(7).await.unwrap().to_string(), "8");
        assert_eq!(nested_impl_return("3").await.unwrap().unwrap().sum::<u8>(), 3);
        assert!(nested_impl_return("x").await.unwrap().is_err());
        assert_eq!(format!("{:?}", coerces(0).await.unwrap()), "\"zero\"");
        assert_eq!(not_send(Rc::default()).await.unwrap().get(), 1);
        assert_eq!(factorial(5).await, Ok(120));
        assert_eq!(recursive(5).await, Ok(5));
        assert_eq!(items_inside(4).await, Ok(5));
        assert_eq!(
            arguments("a".to_owned(), (1, 2), [3, 4, 5]).await.unwrap(),
            "a (1, 2) 1 3"
        );
        assert_eq!(two_lifetimes(&[1], "b").await.unwrap(), ([1].as_slice(), "b"));
        assert_eq!(lends_a_temporary(&"abc".to_owned().into()).await, Ok(3));
        assert_eq!(visibility::plain().await, Ok(()));
        assert_eq!(visibility::job().await, Ok(()));
    }));
}

#[test]
fn a_raw_name_is_registered_without_its_mark() {
    let names: Vec<_> = leader_core::__private::records().map(|(name, ..)| name).collect();
    assert!(names.contains(&"match") && !names.iter().any(|name| name.starts_with("r#")));
}
