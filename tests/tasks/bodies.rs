//! Bodies that end badly, and what is never stored.

use std::time::Duration;

use leader_core::{EnqueueError, PayloadOf, Ran, TaskNews, TaskStatus};

use crate::stage::{Ground, Mark, News, QUEUE, Stage, comes_to, ms, order, tasks};

on_each_store!(
    a_body_that_takes_too_long_is_dropped,
    a_panic_is_one_attempt,
    a_payload_that_cannot_be_read_is_the_attempts_error,
    what_is_refused_is_not_stored,
);

async fn a_body_that_takes_too_long_is_dropped(ground: Ground) {
    let stage = Stage::new();
    let mark = Mark::default();
    let held = mark.clone();
    stage.part("hang", move |_, _| {
        let held = held.clone();
        async move {
            held.hang().await;
            Ok(())
        }
    });
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    let id = tasks.enqueue::<tasks::brief>(&order("hang", 1)).await.unwrap().id;
    let task = comes_to(&tasks, &id, TaskStatus::Dead).await;
    stage.part("hang", |_, _| async { Ok(()) });
    mark.is_alone("the body is dropped").await;
    assert_eq!((task.attempts, task.history[0].ran), (1, Ran::TimedOut), "{task:?}");
    let took = task.history[0]
        .ended
        .duration_since(task.history[0].began)
        .unsigned_abs();
    assert!((ms(295)..ms(1_500)).contains(&took), "{took:?}");
    a.shutdown().await;
}

async fn a_panic_is_one_attempt(ground: Ground) {
    let stage = Stage::new();
    stage.part("panic", |order, task| async move {
        assert!(task.attempt() > 1, "no {}", order.number);
        Ok(())
    });
    let a = ground.instance("a", &stage).await.unwrap();
    let news = News::of(&a);
    let tasks = a.tasks();
    let id = tasks.enqueue::<tasks::act>(&order("panic", 7)).await.unwrap().id;
    let task = comes_to(&tasks, &id, TaskStatus::Done).await;
    assert_eq!(
        task.history.iter().map(|one| one.ran).collect::<Vec<_>>(),
        [Ran::Panic, Ran::Ok]
    );
    assert!(task.history[0].error.contains("no 7"), "{task:?}");
    news.tells(
        "the panic",
        |news| matches!(news, TaskNews::Failed { ran: Ran::Panic, dead: false, error, .. } if error.contains("no 7")),
    )
    .await;
    a.shutdown().await;
}

/// What an earlier version of the program carried.
#[derive(serde::Serialize)]
struct Former {
    part: u32,
}

impl PayloadOf<tasks::brief> for Former {}

async fn a_payload_that_cannot_be_read_is_the_attempts_error(ground: Ground) {
    let stage = Stage::new();
    let a = ground.instance("a", &stage).await.unwrap();
    let tasks = a.tasks();
    let id = tasks.enqueue::<tasks::brief>(&Former { part: 7 }).await.unwrap().id;
    let task = comes_to(&tasks, &id, TaskStatus::Dead).await;
    assert_eq!((task.attempts, task.history[0].ran), (1, Ran::Error), "{task:?}");
    let error = task.last_error().unwrap();
    for word in ["the payload of the task is no", "Order", "invalid type: integer `7`"] {
        assert!(error.contains(word), "{error}");
    }
    assert!(stage.played().is_empty(), "its body has begun");
    // A dead letter keeps what it carries.
    assert_eq!(task.payload.as_deref(), Some(r#"{"part":7}"#));
    a.shutdown().await;
}

async fn what_is_refused_is_not_stored(ground: Ground) {
    let stage = Stage::new();
    let a = ground
        .instance("a", &stage)
        .tasks(|tasks| tasks.max_payload(64))
        .await
        .unwrap();
    let tasks = a.tasks();
    let long = "x".repeat(60);
    let one = tasks.enqueue::<tasks::act>(&order(&long, 1)).await.unwrap_err();
    assert!(
        matches!(
            one,
            EnqueueError::TooLarge {
                task: "act",
                bytes: 82,
                most: 64,
                ..
            }
        ),
        "{one:?}"
    );
    for word in ["82 bytes", "at most 64", "nothing was stored", "max_payload"] {
        assert!(one.to_string().contains(word), "{one}");
    }
    let many = vec![order("", 1), order(&long, 2)];
    let many = tasks.enqueue_many::<tasks::act, _>(many).await.unwrap_err();
    assert!(matches!(many, EnqueueError::TooLarge { .. }), "{many:?}");
    let control = tasks
        .enqueue::<tasks::act>(&order("", 1))
        .unique("a\nb")
        .await
        .unwrap_err();
    assert!(matches!(control, EnqueueError::Unique { .. }), "{control:?}");
    let empty = vec![("fine".to_owned(), order("", 1)), (String::new(), order("", 2))];
    let empty = tasks.enqueue_many_unique::<tasks::act, _>(empty).await.unwrap_err();
    assert!(matches!(empty, EnqueueError::Unique { .. }), "{empty:?}");
    let far = Duration::from_secs(200 * 366 * 24 * 60 * 60);
    let far = tasks.enqueue::<tasks::act>(&order("", 1)).after(far).await.unwrap_err();
    assert!(matches!(far, EnqueueError::Due { .. }), "{far:?}");
    let name = tasks
        .enqueue::<tasks::act>(&order("", 1))
        .queue("{braces}")
        .await
        .unwrap_err();
    assert!(matches!(name, EnqueueError::Name(_)), "{name:?}");
    assert_eq!(tasks.figures(QUEUE).await.unwrap().counts.enqueued, 0);
    // At the limit it is taken.
    let fits = tasks.enqueue::<tasks::act>(&order(&long[..42], 1)).await;
    assert!(fits.is_ok(), "{fits:?}");
    stage.has_played(1).await;
    a.shutdown().await;
}
