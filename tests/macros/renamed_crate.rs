//! The core crate under other names.

extern crate leader_core as elsewhere;

use crate::block_on;

/// What a crate that re-exports the core does.
pub mod exported {
    pub use leader_core as leader;
}

#[elsewhere::leader_only(crate = crate::renamed_crate::exported::leader, every = "30s")]
async fn by_crate_path() -> Result<(), String> {
    Err("ran".to_owned())
}

#[elsewhere::leader_only(crate = ::leader_core)]
async fn by_absolute_path() -> u8 {
    1
}

/// What such a crate's own `macro_rules!` does.
macro_rules! by_dollar_crate {
    ($name:ident) => {
        #[elsewhere::leader_only(crate = $crate::renamed_crate::exported::leader, cron = "0 * * * *")]
        async fn $name(_tick: elsewhere::Tick) {}
    };
}

by_dollar_crate!(by_dollar_crate);

#[test]
fn the_path_is_used_for_everything() {
    let open = elsewhere::testing::as_leader(async { (by_crate_path().await, by_absolute_path().await) });
    assert_eq!(block_on(open), (Ok(Err("ran".to_owned())), Ok(1)));
    assert_eq!(<by_dollar_crate as elsewhere::Job>::NAME, "by_dollar_crate");
}
