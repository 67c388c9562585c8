//! TLS at the listener: the certificate, and its renewals.

use crate::config::Tls;
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Result};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at: a renewal comes days ahead, a look costs little.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Everything here speaks it, and web sockets need it.
const PROTOCOL: &[u8] = b"http/1.1";

/// The certificate in force.
pub(crate) struct Certificate {
    files: Tls,
    state: Mutex<State>,
}

struct State {
    config: Arc<ServerConfig>,
    stamps: Stamps,
    looked_at: Mono,
}

/// What changes when a file does: when it was written, and its length.
type Stamps = [(SystemTime, u64); 2];

impl Certificate {
    /// Reads the files, or says what is wrong with them.
    pub(crate) fn load(files: &Tls) -> Result<Self> {
        let stamps = stamps(files)?;
        let state = State { config: read(files)?, stamps, looked_at: clock::mono() };
        Ok(Self { files: files.clone(), state: Mutex::new(state) })
    }

    /// What takes the next connection; renewed files count from here on.
    pub(crate) fn acceptor(&self, now: Mono) -> TlsAcceptor {
        let mut state = self.state.lock();
        if now.since(state.looked_at) >= LOOK_EVERY {
            state.looked_at = now;
            self.renew(&mut state);
        }
        TlsAcceptor::from(state.config.clone())
    }

    /// Two files cannot change at once: one that does not fit the other yet is looked at again later.
    fn renew(&self, state: &mut State) {
        let renewed = stamps(&self.files).and_then(|stamps| {
            if stamps == state.stamps {
                return Ok(None);
            }
            read(&self.files).map(|config| Some((config, stamps)))
        });
        match renewed {
            Ok(None) => {}
            Ok(Some((config, stamps))) => {
                (state.config, state.stamps) = (config, stamps);
                tracing::info!(file = %self.files.cert.display(), "a renewed certificate is in force");
            }
            Err(error) => tracing::warn!(%error, "the renewed certificate is no good; the one before stays"),
        }
    }
}

fn stamps(files: &Tls) -> Result<Stamps> {
    let stamp = |path: &Path| {
        let data = std::fs::metadata(path)?;
        Ok((data.modified()?, data.len()))
    };
    let told = |path: &Path| stamp(path).map_err(|e: std::io::Error| unreadable(path, e));
    Ok([told(&files.cert)?, told(&files.key)?])
}

fn read(files: &Tls) -> Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| not_pem(&files.cert, e))?;
    if chain.is_empty() {
        return Err(not_pem(&files.cert, pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| not_pem(&files.key, e))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Error::defect)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(|e| {
        Error::invalid(format!(
            "server.tls: {} and {} do not go together: {e}",
            files.cert.display(),
            files.key.display()
        ))
        .caused_by(e)
    })?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::invalid(format!(
        "server.tls: {} cannot be read: {error}; check the path and its permissions",
        path.display()
    ))
    .caused_by(error)
}

/// Only the sort of fault: the library's words could hold a part of the key.
fn not_pem(path: &Path, error: pem::Error) -> Error {
    match error {
        pem::Error::Io(error) => unreadable(path, error),
        pem::Error::NoItemsFound => Error::invalid(format!(
            "server.tls: there is nothing of use in {}; it has to be a PEM file with BEGIN CERTIFICATE, \
             or BEGIN PRIVATE KEY for the key",
            path.display()
        )),
        _ => Error::invalid(format!("server.tls: {} is not a whole PEM file", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use std::path::PathBuf;
    use tokio_rustls::TlsConnector;

    struct Files {
        folder: tempfile::TempDir,
    }

    impl Files {
        /// A certificate of its own making; answers what a client has to trust.
        fn write(&self, name: &str, age: Duration) -> CertificateDer<'static> {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
            let tls = self.tls();
            for (path, text) in [(&tls.cert, made.cert.pem()), (&tls.key, made.signing_key.serialize_pem())] {
                std::fs::write(path, text).unwrap();
                // File times are coarse: a test must not depend on how coarse.
                let file = std::fs::File::options().write(true).open(path).unwrap();
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) - age).unwrap();
            }
            made.cert.der().clone()
        }

        fn tls(&self) -> Tls {
            let path = |name: &str| -> PathBuf { self.folder.path().join(name) };
            Tls { cert: path("cert.pem"), key: path("key.pem") }
        }
    }

    fn files() -> Files {
        Files { folder: tempfile::tempdir().unwrap() }
    }

    /// Whether a client that trusts only `trusted` gets through a handshake.
    async fn shakes(acceptor: TlsAcceptor, trusted: &CertificateDer<'static>) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let name = ServerName::try_from("relay.test").unwrap();
        let (accepted, connected) =
            tokio::join!(acceptor.accept(near), TlsConnector::from(Arc::new(client)).connect(name, far));
        accepted.is_ok() && connected.is_ok()
    }

    #[tokio::test]
    async fn a_renewed_certificate_counts_after_a_minute_and_a_bad_one_never() {
        let files = files();
        let first = files.write("relay.test", Duration::from_secs(60));
        let certificate = Certificate::load(&files.tls()).unwrap();
        let began = clock::mono();
        assert!(shakes(certificate.acceptor(began), &first).await);

        let second = files.write("relay.test", Duration::from_secs(30));
        assert!(shakes(certificate.acceptor(began + Duration::from_secs(55)), &first).await, "not yet");
        let later = began + Duration::from_secs(65);
        assert!(shakes(certificate.acceptor(later), &second).await);
        assert!(!shakes(certificate.acceptor(later), &first).await);

        // The key of another certificate, as if the renewal were half done.
        let kept = std::fs::read(&files.tls().cert).unwrap();
        files.write("relay.test", Duration::ZERO);
        std::fs::write(&files.tls().cert, kept).unwrap();
        let later = later + LOOK_EVERY;
        assert!(shakes(certificate.acceptor(later), &second).await);
        let third = files.write("relay.test", Duration::ZERO);
        let later = later + LOOK_EVERY;
        assert!(shakes(certificate.acceptor(later), &third).await);
        std::fs::remove_file(files.tls().key).unwrap();
        assert!(shakes(certificate.acceptor(later + LOOK_EVERY), &third).await);
    }

    #[test]
    fn what_is_wrong_with_the_files_is_told() {
        let files = files();
        let told = |tls: &Tls| Certificate::load(tls).err().unwrap().to_string();
        assert!(told(&files.tls()).contains("cert.pem cannot be read"), "{}", told(&files.tls()));
        files.write("relay.test", Duration::ZERO);
        let Tls { cert, key } = files.tls();
        let swapped = told(&Tls { cert: key.clone(), key: cert.clone() });
        assert!(swapped.contains("nothing of use in") && swapped.contains("key.pem"), "{swapped}");
        let kept = std::fs::read(&cert).unwrap();
        files.write("relay.test", Duration::ZERO);
        std::fs::write(&cert, kept).unwrap();
        let mixed = told(&files.tls());
        assert!(mixed.contains("do not go together"), "{mixed}");
        std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\nhunter2\n").unwrap();
        let broken = told(&files.tls());
        assert!(broken.contains("is not a whole PEM file") && !broken.contains("hunter2"), "{broken}");
    }
}
