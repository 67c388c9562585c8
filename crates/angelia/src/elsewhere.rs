//! A server that was named with `--server`: where it is, and the token it asks for. Neither the
//! data directory nor a store is looked at then.

use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use std::fs;
use std::path::Path;
use url::{Host, Url};

/// Where the token is, if no file is named. Never on the command line, where others see it.
pub(crate) const TOKEN_VARIABLE: &str = "ANGELIA_ADMIN_TOKEN";

/// A server that was named.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    pub(crate) url: String,
    pub(crate) token: Secret,
}

impl Elsewhere {
    /// The server at `url`. Plain http is for this machine, unless `insecure`.
    pub(crate) fn new(
        url: &str,
        token_file: Option<&Path>,
        insecure: bool,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let url = check(url, insecure)?;
        let token = match token_file {
            Some(file) => fs::read_to_string(file).map(Secret::new).map_err(|e| {
                Error::invalid(format!("the token file {} cannot be read: {e}", file.display())).caused_by(e)
            })?,
            None => env(TOKEN_VARIABLE).map(Secret::new).ok_or_else(no_token)?,
        };
        match token.expose().trim() {
            "" => Err(no_token()),
            trimmed => Ok(Self { url, token: Secret::new(trimmed) }),
        }
    }
}

fn no_token() -> Error {
    Error::invalid(format!(
        "--server needs the admin token, which is in the data directory of every node, file admin-token: name a file \
         with --token-file FILE, or set {TOKEN_VARIABLE}"
    ))
}

/// The address without its last slash, if the token may go there.
fn check(text: &str, insecure: bool) -> Result<String> {
    let wrong = || {
        Error::invalid(
            "--server is the address of a server's admin API, as in its setting server.admin_listen: \
             http://127.0.0.1:8788",
        )
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_open = !url.username().is_empty() || url.password().is_some();
    let host = url.host().filter(|_| is_plain && !is_open).ok_or_else(wrong)?;
    let is_here = match host {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    match url.scheme() {
        "https" => {}
        "http" if is_here || insecure => {}
        "http" => {
            return Err(Error::invalid(format!(
                "{text} is plain http to another machine: whoever is on the way would read the admin token. The admin \
                 API listens on its own machine only; go there through a tunnel, as with ssh -L 8788:127.0.0.1:8788 \
                 HOST, and name http://127.0.0.1:8788. If the way is safe, say --insecure"
            )));
        }
        _ => return Err(wrong()),
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(_: &str) -> Option<String> {
        Some("t0ken\n".to_owned())
    }

    #[test]
    fn the_token_goes_to_this_machine_or_by_tls() {
        for (url, there) in [
            ("http://127.0.0.1:8788", "http://127.0.0.1:8788"),
            ("http://localhost:8788/", "http://localhost:8788"),
            ("http://[::1]:8788", "http://[::1]:8788"),
            ("https://angelia.example.org", "https://angelia.example.org"),
        ] {
            let found = Elsewhere::new(url, None, false, token).unwrap();
            assert_eq!((found.url.as_str(), found.token.expose()), (there, "t0ken"));
        }
        let refused = Elsewhere::new("http://10.0.0.7:8788", None, false, token).unwrap_err().to_string();
        assert!(refused.contains("ssh -L") && refused.contains("--insecure"), "{refused}");
        assert!(Elsewhere::new("http://10.0.0.7:8788", None, true, token).is_ok());
        for wrong in
            ["127.0.0.1:8788", "ftp://localhost", "http://u:p@localhost", "http://localhost/admin", ""]
        {
            let error = Elsewhere::new(wrong, None, false, token).unwrap_err().to_string();
            assert!(error.contains("http://127.0.0.1:8788"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_token_comes_from_a_file_or_a_variable() {
        let here = "http://127.0.0.1:8788";
        let nothing = Elsewhere::new(here, None, false, |_| None).unwrap_err().to_string();
        assert!(nothing.contains("--token-file") && nothing.contains(TOKEN_VARIABLE), "{nothing}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let missing = Elsewhere::new(here, Some(&file), false, token).unwrap_err().to_string();
        assert!(missing.contains("cannot be read"), "a file that is named counts: {missing}");
        fs::write(&file, "from-file\n").unwrap();
        assert_eq!(Elsewhere::new(here, Some(&file), false, token).unwrap().token.expose(), "from-file");
        fs::write(&file, "\n").unwrap();
        assert!(Elsewhere::new(here, Some(&file), false, token).is_err());
    }
}
