//! The page people chat on: plain files, held by the binary (docs/decisions/0019).

use angelia_core::secret::{fingerprint, hex};
use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

/// Nothing but our own files, and nobody may put the page into a frame. Scripts
/// are files: what is written in a message never runs. Pictures and sound that were
/// sent are shown from addresses the page makes itself, `blob:`, and run nowhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      media-src blob:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// Whoever records a voice message is asked by their browser first. A phone's camera
/// hands over a picture as any file, and needs no permission of ours.
const PERMISSIONS: &str = "camera=(), microphone=(self), geolocation=()";

/// Files of the page: their names, and what is in them.
macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("page/", $name)))),*] };
}

/// The page itself.
const INDEX: &str = "index.html";

const FILES: &[(&str, &str)] = &files![
    "index.html",
    "announce.js",
    "api.js",
    "attach.css",
    "attach.js",
    "attachments.js",
    "blobs.js",
    "commands.css",
    "commands.js",
    "composer.js",
    "dimensions.js",
    "draft.js",
    "files.css",
    "files.js",
    "filestore.js",
    "frame.css",
    "guide.js",
    "keys.js",
    "kinds.js",
    "legs.js",
    "lightbox.css",
    "lightbox.js",
    "line.css",
    "line.js",
    "lines.js",
    "logo.svg",
    "main.js",
    "memory.js",
    "outbox.js",
    "recorder.js",
    "room.js",
    "rooms.js",
    "sheets.js",
    "story.css",
    "story.js",
    "stream.js",
    "style.css",
    "talk.css",
    "talk.js",
    "turns.js",
    "uploads.js",
    "welcome.js",
    "words.js",
    "work.js",
    "write.css",
];

/// The page at `/chat`, and its parts.
pub(super) fn routes() -> Router {
    Router::new()
        .route("/", get(|| async { Redirect::temporary("chat") }))
        .route("/chat", get(|headers: HeaderMap| async move { serve(INDEX, &headers) }))
        .route("/chat/", get(|| async { Redirect::temporary("../chat") }))
        .route(
            "/chat/app/{file}",
            get(|Path(name): Path<String>, headers: HeaderMap| async move { serve(&name, &headers) }),
        )
}

fn serve(name: &str, headers: &HeaderMap) -> Response {
    let Some((_, text)) = FILES.iter().find(|(file, _)| *file == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    // It changes with the content.
    let tag = format!("\"{}\"", hex(&fingerprint(text)[..8]));
    let known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    // Asked for each time, so that page and server are of one release.
    let mut response = [
        (CONTENT_TYPE, kind(name)),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    ]
    .into_response();
    if let Ok(tag) = tag.parse() {
        response.headers_mut().insert(ETAG, tag);
    }
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    *response.body_mut() = (*text).into();
    response
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_folder_is_served_as_what_it_is() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/webchat/page");
        let there: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let served: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, served);
        assert!(FILES.iter().all(|(name, _)| !kind(name).starts_with("text/plain")));
    }

    #[test]
    fn what_the_browser_has_is_not_sent_again() {
        let first = serve(INDEX, &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(serve(INDEX, &headers).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(serve("style.css", &headers).status(), StatusCode::OK, "another file");
        assert_eq!(serve("../mod.rs", &headers).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn nothing_runs_but_our_own_files() {
        let response = serve(INDEX, &HeaderMap::new());
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let of = |what: &str| policy.split("; ").find(|part| part.starts_with(what));
        assert_eq!(of("script-src"), Some("script-src 'self'"), "no script has a blob: address");
        assert!(of("frame-src").is_none() && of("object-src").is_none() && of("worker-src").is_none());
        for (name, text) in FILES.iter().filter(|(name, _)| name.ends_with(".html")) {
            for inline in ["<script>", " style=\"", " onclick=", "<style>"] {
                assert!(!text.contains(inline), "{inline} in {name}");
            }
        }
    }
}
