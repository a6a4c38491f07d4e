use leader_core::leader_only;

// Mistakes of the body stand where they would without the attribute.
#[leader_only]
async fn wrong_tail() -> u8 {
    "text"
}

#[leader_only]
async fn wrong_return(number: u8) -> u8 {
    if number == 0 {
        return "zero";
    }
    undefined(number)
}

#[leader_only]
async fn no_tail() -> u8 {
    1;
}

#[leader_only]
async fn wrong_pattern(Some(number): Option<u8>) -> u8 {
    number
}

fn main() {}
