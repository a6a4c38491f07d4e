use leader_core::{PayloadOf, Task, TaskHandler, task};

#[derive(serde::Serialize, serde::Deserialize)]
struct Invoice;

struct Plain;

#[derive(serde::Serialize)]
struct OnlyWritten;

#[derive(serde::Deserialize)]
struct OnlyRead;

#[task]
async fn charge(_: Invoice) {}

#[task]
async fn plain(_: Plain) {}

#[task]
async fn only_written(_: OnlyWritten) {}

#[task]
async fn only_read(_: OnlyRead) {}

#[task]
async fn two(_: Invoice, _: Task, _: Invoice) {}

#[task]
async fn late(_: Task, _: Invoice) {}

#[task]
async fn borrowed(_: Invoice, _: &Task) {}

enum NoTask {}

fn enqueue<H: TaskHandler>(_: &impl PayloadOf<H>) {}

fn main() {
    enqueue::<charge>(&Invoice);
    enqueue::<charge>(&"an invoice");
    enqueue::<charge>(&());
    enqueue::<NoTask>(&());
    enqueue::<main>(&());
}
