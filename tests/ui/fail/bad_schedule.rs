//! What a schedule's text says at compile time: value, range and the way out, under the literal.

use leader_core::leader_only;

#[leader_only(cron = "75 * * * *")]
async fn out_of_range() {}

#[leader_only(cron = "0 0 31 2 *")]
async fn never() {}

#[leader_only(cron = "0 0 9 1-7 * MON#2", days = "and")]
async fn never_both() {}

#[leader_only(cron = "0 0 0 29 FEB ? 2025-2027")]
async fn no_leap_year() {}

#[leader_only(cron = "0 0 9 * * 1-5")]
async fn which_monday() {}

#[leader_only(cron = "every 5 minutes")]
async fn words() {}

#[leader_only(every = "10 minutes")]
async fn no_duration() {}

#[leader_only(every = "10ms")]
async fn too_often() {}

#[leader_only(cron = "0 3 * * *", timeout = "soon")]
async fn no_timeout() {}

#[leader_only(cron = "0 0 9 1-7 * MON")]
async fn either_or_both() {}

#[leader_only(cron = "0 9 1 * *", days = "or")]
async fn one_day_field() {}

#[leader_only(cron = "30 2 * * *", timezone = "Europe/Berln")]
async fn no_such_place() {}

#[leader_only(cron = "30 2 * * *", timezone = "UTC-5")]
async fn an_offset() {}

#[leader_only(cron = "30 2 * * *", timezone = "EST")]
async fn an_abbreviation() {}

const HOME: &str = "Middle-earth/Shire";

#[leader_only(cron = "30 2 * * *", timezone = HOME)]
async fn a_constant() {}

#[leader_only(cron = "CRON_TZ=Europe/Berlin 30 2 * * *")]
async fn zone_in_the_expression() {}

// Each is told.
#[leader_only(cron = "60 2 * * *", timezone = "berlin", days = "and", jitter = "half an hour", grace = "-5s", timeout = "1.5m")]
async fn everything() {}

fn main() {}
