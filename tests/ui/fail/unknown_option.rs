use leader_core::leader_only;

// A typo, an option that no word is near to, and one from which only its underscore is missing.
#[leader_only(crn = "*/5 * * * *", colour = "red", whileleading)]
async fn purge() {}

fn main() {}
