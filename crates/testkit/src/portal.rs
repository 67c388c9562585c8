//! A stand-in for the account service of an identity provider.
//!
//! Gateways before 0.19.0 can prove whose they are with a token of their
//! maker's portal only. A connector cannot read such a token: it asks the
//! portal, with that same token, whose account it is. This portal knows the
//! tokens a test gave it and counts who was asked for.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Where the real one tells whose account it is.
const PATH: &str = "/api/oauth/account";

#[derive(Debug, Default)]
struct Shared {
    /// Accounts by the token that opens them.
    accounts: HashMap<String, Value>,
    vouched: usize,
    refused: usize,
}

/// The running stand-in; it stops when dropped.
#[derive(Debug)]
pub struct Portal {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    server: JoinHandle<()>,
}

impl Portal {
    /// Starts a portal that knows nobody.
    ///
    /// # Panics
    ///
    /// When no port of the loopback address can be had.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind a port for the portal");
        let address = listener.local_addr().expect("address of a bound socket");
        let shared = Arc::new(Mutex::new(Shared::default()));
        let routes = Router::new().route(PATH, get(account)).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("serve the portal");
        });
        Self { address, shared, server }
    }

    /// The address a connector asks, which is also the issuer's name.
    pub fn account_url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The lines that make a connector ask it.
    pub fn config(&self) -> String {
        format!("[identity.portal]\naccount_url = \"{}\"\n", self.account_url())
    }

    /// Lets a person of an organisation log in; returns the token.
    pub fn log_in(&self, organisation: &str, email: &str) -> String {
        let token = format!("portal-token-of-{email}");
        let account = json!({
            "user": { "email": email, "privy_did": format!("did:privy:{email}") },
            "organisation": { "id": organisation, "name": "The one that pays" },
        });
        locked(&self.shared).accounts.insert(token.clone(), account);
        token
    }

    /// How often it vouched for a token.
    pub fn vouched(&self) -> usize {
        locked(&self.shared).vouched
    }

    /// How often it was asked for a token it does not know.
    pub fn refused(&self) -> usize {
        locked(&self.shared).refused
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn account(State(shared): State<Arc<Mutex<Shared>>>, headers: HeaderMap) -> Response {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let mut shared = locked(&shared);
    let account = bearer.and_then(|token| shared.accounts.get(token).cloned());
    if let Some(account) = account {
        shared.vouched += 1;
        Json(account).into_response()
    } else {
        shared.refused += 1;
        (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_token" }))).into_response()
    }
}

/// A poisoned lock only means that another test failed first.
fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
