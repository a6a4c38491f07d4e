use leader_core::leader_only;

#[leader_only]
#[tokio::main]
async fn main() {}

#[leader_only]
#[tokio::test]
async fn test() {}

#[leader_only]
#[tracing::instrument(skip(text), fields(length = text.len()), err(Debug))]
async fn traced(text: String) -> Result<(), String> {
    Err(text)
}

#[leader_only]
#[leader_only(group = "other")]
async fn twice() {}
