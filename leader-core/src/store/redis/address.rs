//! Where the store is and how its sockets are set up.

use std::time::Duration;

use ::redis::io::tcp::TcpSettings;
use ::redis::io::tcp::socket2::TcpKeepalive;
use ::redis::{Client, ConnectionAddr, ConnectionInfo};

use super::fault;
use crate::store::error::StoreError;

/// How long sent data may stay unacknowledged before the kernel declares the link dead. Without it a link whose packets vanish
/// lives on for a quarter of an hour.
#[cfg(any(target_os = "android", target_os = "linux"))]
const USER_TIMEOUT: Duration = Duration::from_secs(2);

const NEEDS_TLS: &str = "`rediss://` needs TLS: enable the feature `tls` of leader-core";

/// Reads a URL: `redis://`, `rediss://`, `valkey://`, `valkeys://`, `unix://`.
pub fn parse(url: &str) -> Result<ConnectionInfo, StoreError> {
    let secure = ["rediss:", "valkeys:"]
        .iter()
        .any(|scheme| url.get(..scheme.len()) == Some(scheme));
    if secure && !cfg!(feature = "tls") {
        return Err(StoreError::config(NEEDS_TLS));
    }
    url.parse().map_err(|error| {
        // A password would stand before an `@`.
        let shown = if url.contains('@') { "the URL" } else { url };
        let advice = format!(
            "`{shown}` is no store: write `redis://host:6379`, `rediss://host:6379` or `unix:///path/to/socket`"
        );
        StoreError::config(advice).with_source(error)
    })
}

/// A client for `info` with sockets that notice a dead peer.
pub(super) fn client(info: &ConnectionInfo) -> Result<Client, StoreError> {
    if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        provide_crypto()?;
    }
    let info = info.clone().set_tcp_settings(tcp_settings(info.tcp_settings().clone()));
    Client::open(info).map_err(fault::from_redis)
}

fn tcp_settings(given: TcpSettings) -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(2))
        .with_interval(Duration::from_secs(1));
    #[cfg(any(target_os = "android", target_os = "linux", target_vendor = "apple"))]
    let keepalive = keepalive.with_retries(2);
    let settings = given.set_nodelay(true).set_keepalive(keepalive);
    #[cfg(any(target_os = "android", target_os = "linux"))]
    let settings = settings.set_user_timeout(USER_TIMEOUT);
    settings
}

/// rustls panics at the first handshake of a process that has chosen no provider, so one is chosen here unless the program did.
#[cfg(feature = "tls")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is an error")]
fn provide_crypto() -> Result<(), StoreError> {
    use rustls::crypto::{CryptoProvider, ring};
    if CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster, and its choice is as good.
        let _ = ring::default_provider().install_default();
    }
    Ok(())
}

#[cfg(not(feature = "tls"))]
fn provide_crypto() -> Result<(), StoreError> {
    Err(StoreError::config(NEEDS_TLS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::error::StoreErrorKind;

    #[test]
    fn a_url_that_cannot_work_is_a_config_error() {
        for url in ["", "http://host", "redis://", "redis://host/x"] {
            let error = parse(url).unwrap_err();
            assert_eq!(*error.kind(), StoreErrorKind::Config, "{url}: {error}");
        }
        assert!(parse("redis://:secret@host:7000/3").is_ok());
    }

    #[test]
    #[cfg(feature = "tls")]
    fn tls_needs_no_provider_from_the_program() {
        client(&parse("rediss://host").unwrap()).unwrap();
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }

    #[test]
    #[cfg(not(feature = "tls"))]
    fn tls_without_its_feature_names_the_feature() {
        for url in ["rediss://host", "valkeys://host"] {
            let error = parse(url).unwrap_err();
            assert!(error.to_string().contains("feature `tls` of leader-core"), "{error}");
        }
    }

    #[test]
    fn sockets_notice_a_dead_peer() {
        let info = parse("redis://host").unwrap();
        let client = client(&info).unwrap();
        let settings = client.get_connection_info().tcp_settings();
        assert!(settings.nodelay());
        assert!(settings.keepalive().is_some());
        #[cfg(target_os = "linux")]
        assert_eq!(settings.user_timeout(), Some(USER_TIMEOUT));
    }
}
