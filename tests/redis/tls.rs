//! `rediss://` with an authority of one's own.

use leader_core::__seam::Connection;
use leader_core::StoreErrorKind;
use leader_tests::{Certificates, RedisServer};
use redis::{Client, TlsCertificates};
use tokio::time::Instant;

use crate::caller::{Caller, SLACK, ask, ms};

#[tokio::test]
async fn a_private_authority_is_trusted_when_given() {
    let server = RedisServer::options().tls(true).start().await;
    let caller = Caller::start(&server, ms(1000)).await;
    caller.stop();
}

#[tokio::test]
async fn a_certificate_from_nowhere_is_an_error_that_says_so() {
    let server = RedisServer::options().tls(true).start().await;
    let other = TlsCertificates {
        client_tls: None,
        root_cert: Some(Certificates::generate().authority.into_bytes()),
    };
    let wrong = Client::build_with_tls(server.url(), other).unwrap();
    for info in [wrong.get_connection_info().clone(), server.url().parse().unwrap()] {
        let connection = Connection::new(&info, "test");
        let error = ask(&connection, &["PING"], ms(2000)).await.unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Config, "{error:?}");
        assert!(error.to_string().contains("not trusted"), "{error}");
    }
}

/// The server waits for the rest of what it takes for a command.
#[tokio::test]
async fn tls_to_a_plain_port_is_bounded() {
    let server = RedisServer::start().await;
    let url = format!("rediss://127.0.0.1:{}/", server.port());
    let connection = Connection::new(&url.parse().unwrap(), "test");
    let began = Instant::now();
    connection.connect(ms(300)).await.unwrap_err();
    assert!(began.elapsed() < ms(300) + SLACK);
}

#[tokio::test]
async fn a_plain_client_on_a_tls_port_is_told_apart() {
    let server = RedisServer::options().tls(true).start().await;
    let url = format!("redis://127.0.0.1:{}/", server.port());
    let connection = Connection::new(&url.parse().unwrap(), "test");
    let error = connection.connect(ms(2000)).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Unreachable, "{error:?}");
}
