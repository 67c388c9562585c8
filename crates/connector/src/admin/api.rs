//! Every route of the admin API in one table: what is served, and what the
//! OpenAPI document says is served, cannot differ.

use super::Admin;
use super::{audit, bots, clients, clock, gateways, inbox, invites, keys, routes, status, tenants, unrouted};
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Json, Router};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One operation.
struct Operation {
    method: &'static str,
    path: &'static str,
    says: &'static str,
    /// Names of optional query parameters.
    query: &'static [&'static str],
    body: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// The status of success.
    status: u16,
    handler: fn() -> MethodRouter<Arc<Admin>>,
}

const fn read(
    path: &'static str,
    says: &'static str,
    query: &'static [&'static str],
    handler: fn() -> MethodRouter<Arc<Admin>>,
) -> Operation {
    Operation { method: "get", path, says, query, body: None, status: 200, handler }
}

const fn act<T: JsonSchema>(
    path: &'static str,
    says: &'static str,
    handler: fn() -> MethodRouter<Arc<Admin>>,
) -> Operation {
    let body: Option<fn(&mut SchemaGenerator) -> Schema> = Some(SchemaGenerator::subschema_for::<T>);
    Operation { method: "post", path, says, query: &[], body, status: 200, handler }
}

const fn make<T: JsonSchema>(
    path: &'static str,
    says: &'static str,
    handler: fn() -> MethodRouter<Arc<Admin>>,
) -> Operation {
    Operation { status: 201, ..act::<T>(path, says, handler) }
}

const fn purge(
    path: &'static str,
    says: &'static str,
    handler: fn() -> MethodRouter<Arc<Admin>>,
) -> Operation {
    Operation { method: "delete", ..read(path, says, &[], handler) }
}

const SELECTION: &[&str] = &["tenant", "gateway", "entry", "dead"];

const OPERATIONS: &[Operation] = &[
    read("/admin/status", "How the server is doing.", &[], || get(status::status)),
    read("/admin/openapi.json", "This document.", &[], || get(openapi)),
    read("/admin/tenants", "Every tenant, and how issuers know it.", &[], || get(tenants::list)),
    make::<tenants::CreateTenant>("/admin/tenants", "Makes a tenant.", || post(tenants::create)),
    read("/admin/tenants/{tenant}", "What belongs to a tenant, in numbers.", &[], || get(tenants::show)),
    act::<tenants::Link>("/admin/tenants/{tenant}/link", "Lets an issuer's claim prove a tenant.", || {
        post(tenants::link)
    }),
    act::<tenants::Link>("/admin/tenants/{tenant}/unlink", "Takes that back.", || post(tenants::unlink)),
    act::<tenants::Remove>("/admin/tenants/{tenant}/remove", "Takes a tenant and everything of it.", || {
        post(tenants::remove)
    }),
    read("/admin/clients", "OAuth clients of the built-in token endpoint.", &["tenant"], || {
        get(clients::list)
    }),
    make::<clients::CreateClient>("/admin/clients", "Makes a client; its secret is shown once.", || {
        post(clients::create)
    }),
    act::<Nothing>("/admin/clients/{id}/rotate", "Makes a new secret, shown once; the old is void.", || {
        post(clients::rotate)
    }),
    act::<Nothing>("/admin/clients/{id}/revoke", "Ends a client and its tokens.", || post(clients::revoke)),
    make::<clients::MintToken>("/admin/enroll-tokens", "Makes a single-use enrolment token.", || {
        post(clients::mint_token)
    }),
    read("/admin/routes", "Every route.", &[], || get(routes::list)),
    make::<routes::AddRoute>("/admin/routes", "Gives a place to a tenant or one of its gateways.", || {
        post(routes::add)
    }),
    act::<routes::RemoveRoute>("/admin/routes/remove", "Takes a place away again.", || post(routes::remove)),
    read("/admin/routes/unrouted", "The last places that spoke without a route.", &[], || {
        get(unrouted::unrouted)
    }),
    make::<routes::MakeCode>("/admin/routes/codes", "Makes a single-use code for /link.", || {
        post(routes::make_code)
    }),
    read("/admin/gateways", "Every gateway.", &[], || get(gateways::list)),
    make::<gateways::Create>("/admin/gateways", "Makes a gateway; its secret is shown once.", || {
        post(gateways::create)
    }),
    act::<gateways::Change>("/admin/gateways/{id}/show", "One gateway.", || post(gateways::show)),
    act::<gateways::Change>("/admin/gateways/{id}/set", "Changes what a gateway cannot tell itself.", || {
        post(gateways::set)
    }),
    act::<gateways::Change>("/admin/gateways/{id}/default", "Lets it receive what no route assigns.", || {
        post(gateways::make_default)
    }),
    act::<gateways::Rotate>("/admin/gateways/{id}/rotate", "Makes a new secret, shown once.", || {
        post(gateways::rotate)
    }),
    act::<gateways::Change>("/admin/gateways/{id}/revoke", "Shuts a gateway out for good.", || {
        post(gateways::revoke)
    }),
    read("/admin/bots", "Every bot, and how it is.", &[], || get(bots::list)),
    read("/admin/quarantine", "What bots could not read, newest first.", &["bot"], || get(bots::quarantine)),
    purge("/admin/quarantine", "Throws all of it away.", || delete(bots::purge)),
    read("/admin/quarantine/{id}", "One of them, as the provider sent it; written down.", &[], || {
        get(bots::open)
    }),
    purge("/admin/quarantine/{id}", "Throws one away.", || delete(bots::purge_one)),
    read("/admin/inbox", "What waits, per instance.", SELECTION, || get(inbox::list_inboxes)),
    read("/admin/inbox/entries", "Entries, without their text.", SELECTION, || get(inbox::list_entries)),
    act::<inbox::Selection>("/admin/inbox/redrive", "Puts dead letters back in line.", || {
        post(inbox::redrive)
    }),
    act::<inbox::Selection>("/admin/inbox/purge", "Throws entries away.", || post(inbox::purge)),
    read("/admin/explain/{message}", "Which way a message took.", &[], || get(inbox::explain)),
    make::<invites::Invite>("/admin/webchat/invites", "Lets somebody into the web chat.", || {
        post(invites::invite)
    }),
    read("/admin/webchat/people", "Who has keys of rooms.", &["room"], || get(invites::people)),
    act::<invites::Revoke>("/admin/webchat/revoke", "Makes somebody's keys of a room void.", || {
        post(invites::revoke)
    }),
    read("/admin/key", "The master key's name, and whether everything sealed opens.", &[], || {
        get(keys::check)
    }),
    act::<keys::Rotate>(
        "/admin/key/rotate",
        "Changes the master key and wraps everything anew with it.",
        || post(keys::rotate),
    ),
    act::<Nothing>("/admin/token/rotate", "Makes a new admin token; the old one is void.", || {
        post(keys::rotate_token)
    }),
    read("/admin/clock", "What the clock shows, and whether it leapt.", &[], || get(clock::show)),
    act::<Nothing>("/admin/clock/accept", "Takes the clock as it is for right.", || post(clock::accept)),
    read("/admin/audit", "Who changed what, newest first.", &["tenant", "limit"], || get(audit::list)),
];

/// An empty object.
#[derive(serde::Deserialize, JsonSchema)]
struct Nothing {}

/// The routes of the table.
pub(super) fn router() -> Router<Arc<Admin>> {
    OPERATIONS
        .iter()
        .fold(Router::new(), |router, operation| router.route(operation.path, (operation.handler)()))
}

async fn openapi() -> Json<Value> {
    Json(document())
}

/// The OpenAPI 3.1 document.
fn document() -> Value {
    let mut schemas = SchemaGenerator::new(
        schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| settings.definitions_path = "/components/schemas".into()),
    );
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let described = describe(operation, &mut schemas);
        paths.entry(operation.path).or_insert_with(|| json!({}))[operation.method] = described;
    }
    let definitions: Map<String, Value> = schemas.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Angelia admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "On admin_listen only. The token is in the data directory, file admin-token.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": definitions,
        },
    })
}

fn describe(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let in_path =
        operation.path.split(['{', '}']).skip(1).step_by(2).map(
            |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        );
    let in_query = operation.query.iter().map(
        |name| json!({ "name": name, "in": "query", "required": false, "schema": { "type": "string" } }),
    );
    let any_object = json!({ "application/json": { "schema": { "type": "object" } } });
    let failure = json!({ "application/json": { "schema": {
        "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } },
    } } });
    let mut described = json!({
        "summary": operation.says,
        "operationId": operation_id(operation),
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": {
            operation.status.to_string(): { "description": "Done.", "content": any_object },
            "default": { "description": "Refused; the error says why and what to do.", "content": failure },
        },
    });
    if let Some(body) = operation.body {
        let schema = body(schemas);
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    described
}

/// `post /admin/gateways/{id}/rotate` is `post_gateways_id_rotate`.
fn operation_id(operation: &Operation) -> String {
    let path =
        operation.path.trim_start_matches("/admin/").replace(['{', '}'], "").replace(['/', '-', '.'], "_");
    format!("{}_{path}", operation.method)
}
