use leader_core::scheduled;

#[scheduled]
async fn neither_where_nor_when() {}

#[scheduled(on = "leader", every = "1h")]
async fn elsewhere() {}

#[scheduled(on = "any", every = "1h", on_loss = "finish", onn = "any")]
async fn other_options() {}

#[scheduled(on = "any", every = "soon")]
fn not_async() {}

#[scheduled(on = "any", every = "soon")]
async fn bad_value() {}

#[leader_core::leader_only(on = "any", every = "1h")]
async fn the_other_attribute() {}

#[scheduled(on = "any", every = "1h")]
async fn no_result() -> u8 {
    1
}

fn main() {}
