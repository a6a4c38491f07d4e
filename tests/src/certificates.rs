//! A private certificate authority and a server's certificate from it.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A certificate for `localhost` and `127.0.0.1` from an authority that nobody else knows, all in PEM.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority's certificate: what a client must trust.
    pub authority: String,
    /// The server's certificate.
    pub certificate: String,
    /// The server's key.
    pub key: String,
}

impl Certificates {
    /// Makes a new authority and a certificate.
    ///
    /// # Panics
    /// When the keys cannot be generated.
    #[must_use]
    pub fn generate() -> Self {
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_pem = authority.self_signed(&authority_key).expect("signed").pem();
        let issuer = Issuer::new(authority, authority_key);

        let key = KeyPair::generate().expect("a key");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)
            .expect("the names are valid")
            .signed_by(&key, &issuer)
            .expect("signed");
        Self {
            authority: authority_pem,
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    pub(crate) fn write_to(&self, directory: &Path) {
        for (file, pem) in [
            ("authority.pem", &self.authority),
            ("certificate.pem", &self.certificate),
            ("key.pem", &self.key),
        ] {
            std::fs::write(directory.join(file), pem).expect("the directory is writable");
        }
    }
}
