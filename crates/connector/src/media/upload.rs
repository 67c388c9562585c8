//! `POST /relay/media`: a gateway sends a file that its agent wants to show somebody.

use super::Media;
use super::keep::{Claims, Taken, too_large};
use crate::admin::answer;
use angelia_core::error::{Error, Result};
use angelia_core::media::FILE_BYTES;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where a gateway says what a file is called.
const NAME: &str = "x-media-filename";

pub(super) async fn upload(State(media): State<Arc<Media>>, request: Request) -> Response {
    answer(StatusCode::OK, take(&media, request).await)
}

async fn take(media: &Media, request: Request) -> Result<Value> {
    let headers = request.headers();
    let record = media.gateway(headers)?;
    // Before any of it is read.
    if announced(headers).is_some_and(|size| size > FILE_BYTES) {
        return Err(too_large());
    }
    let claims = Claims {
        file: None,
        name: headers.get(NAME).map(text).unwrap_or_default(),
        media_type: headers.get(CONTENT_TYPE).map(text),
    };
    let body = request.into_body().into_data_stream();
    let body = body.map_err(|_| Error::invalid("the file broke off; send it again"));
    let terms = media.for_instance(record.instance);
    let Taken { file, size, .. } = media.keep(&record.tenant, terms, claims, body).await?;
    Ok(json!({ "id": file.as_str(), "size": size }))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A header as text: UTF-8, or what HTTP took for granted before.
fn text(value: &HeaderValue) -> String {
    let bytes = value.as_bytes();
    std::str::from_utf8(bytes)
        .map_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect(), str::to_owned)
}
