//! `rediss://` in a program that has chosen no provider of cryptography. rustls alone panics there.

use std::time::Duration;

use leader_core::__seam::Connection;
use leader_tests::RedisServer;

#[tokio::test]
async fn tls_works_when_the_program_installed_no_provider() {
    let server = RedisServer::options().tls(true).start().await;
    let connection = Connection::new(&server.info(), "test");
    connection.connect(Duration::from_secs(5)).await.unwrap();
}
