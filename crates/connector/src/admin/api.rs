//! Every endpoint of the admin API in one table. What is served, what the OpenAPI
//! document says is served, and what commands ask are made of its rows.

use super::Admin;
use super::endpoint::{Change, Endpoint, Row, Verb, names_in};
use super::types::*;
use super::{
    bots, clients, cluster_status, commands, gateways, inbox, invites, keys, messages, openapi, routes,
    status, tenants,
};
use angelia_core::store::Client;
use axum::Router;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Makes a constant of each row, for whoever asks, and the table of all of them.
macro_rules! endpoints {
    ($(#[doc = $summary:literal] $name:ident: $verb:ident $path:literal, $ask:ty => $answer:ty, $handler:expr;)*) => {
        $(
            #[doc = $summary]
            pub const $name: Endpoint<{ names_in($path) }, $ask, $answer> =
                Endpoint::new(Verb::$verb, $path, $summary);
        )*

        /// Every endpoint, with who answers it.
        pub(super) fn table() -> Vec<Row> {
            vec![$(Row::new($name, $handler)),*]
        }
    };
}

endpoints! {
    /// How the server is doing.
    STATUS: Read "/admin/status", Nothing => Status, status::status;
    /// Which nodes share the store, what each of them does, and what is wrong.
    CLUSTER: Read "/admin/cluster", Nothing => ClusterStatus, cluster_status::status;
    /// This document.
    OPENAPI: Read "/admin/openapi.json", Nothing => Map<String, Value>, openapi::show;
    /// Every tenant, and how issuers know it.
    TENANTS: Read "/admin/tenants", Nothing => Tenants, tenants::list;
    /// Makes a tenant.
    CREATE_TENANT: Make "/admin/tenants", CreateTenant => CreatedTenant, Change(tenants::create);
    /// What belongs to a tenant, in numbers.
    TENANT: Read "/admin/tenants/{tenant}", Nothing => TenantCounts, tenants::show;
    /// Lets an issuer's claim prove a tenant.
    LINK_TENANT: Act "/admin/tenants/{tenant}/link", Link => Linked, tenants::link;
    /// Takes that back.
    UNLINK_TENANT: Act "/admin/tenants/{tenant}/unlink", Link => Unlinked, Change(tenants::unlink);
    /// Takes a tenant and everything of it.
    REMOVE_TENANT: Act "/admin/tenants/{tenant}/remove", RemoveTenant => RemovedTenant, tenants::remove;
    /// OAuth clients of the built-in token endpoint.
    CLIENTS: Read "/admin/clients", OfTenant => Clients, clients::list;
    /// Makes a client; its secret is shown once.
    CREATE_CLIENT: Make "/admin/clients", CreateClient => ClientSecret, clients::create;
    /// Makes a new secret, shown once; the old is void.
    ROTATE_CLIENT: Act "/admin/clients/{id}/rotate", Nothing => ClientSecret, Change(clients::rotate);
    /// Ends a client and its tokens.
    REVOKE_CLIENT: Act "/admin/clients/{id}/revoke", Nothing => Client, Change(clients::revoke);
    /// Makes a single-use enrolment token.
    MINT_TOKEN: Make "/admin/enroll-tokens", MintToken => MintedToken, clients::mint_token;
    /// Every route.
    ROUTES: Read "/admin/routes", Nothing => Routes, routes::list;
    /// Gives a place to a tenant or one of its gateways.
    ADD_ROUTE: Make "/admin/routes", AddRoute => Route, Change(routes::add);
    /// Takes a place away again.
    REMOVE_ROUTE: Act "/admin/routes/remove", RemoveRoute => RemovedRoute, Change(routes::remove);
    /// The last places that spoke without a route.
    UNROUTED: Read "/admin/routes/unrouted", Nothing => Unrouted, routes::unrouted;
    /// Makes a single-use code for /link.
    MAKE_CODE: Make "/admin/routes/codes", MakeCode => RouteCode, routes::make_code;
    /// Every gateway.
    GATEWAYS: Read "/admin/gateways", Nothing => Gateways, gateways::list;
    /// Makes a gateway; its secret is shown once.
    CREATE_GATEWAY: Make "/admin/gateways", CreateGateway => GatewaySecret, Change(gateways::create);
    /// One gateway.
    GATEWAY: Act "/admin/gateways/{id}/show", ChangeGateway => Gateway, gateways::show;
    /// Changes what a gateway cannot tell itself.
    SET_GATEWAY: Act "/admin/gateways/{id}/set", ChangeGateway => Gateway, Change(gateways::set);
    /// Lets it receive what no route assigns.
    DEFAULT_GATEWAY: Act "/admin/gateways/{id}/default", ChangeGateway => Gateway, Change(gateways::make_default);
    /// Makes a new secret, shown once.
    ROTATE_GATEWAY: Act "/admin/gateways/{id}/rotate", RotateGateway => GatewaySecret, Change(gateways::rotate);
    /// Shuts a gateway out for good.
    REVOKE_GATEWAY: Act "/admin/gateways/{id}/revoke", ChangeGateway => RevokedGateway, Change(gateways::revoke);
    /// Every bot, and how it is.
    BOTS: Read "/admin/bots", Nothing => Bots, bots::list;
    /// The commands that the gateways of a bot declare, and those that were registered.
    COMMANDS: Read "/admin/commands", CommandsOf => DeclaredCommands, commands::show;
    /// Keeps which commands were registered for a bot.
    NOTE_COMMANDS: Act "/admin/commands/registered", RegisteredCommands => Nothing, commands::note;
    /// What bots could not read, newest first.
    QUARANTINE: Read "/admin/quarantine", OfBot => Quarantine, bots::quarantine;
    /// Throws all of it away.
    PURGE_QUARANTINE: Purge "/admin/quarantine", Nothing => Purged, bots::purge;
    /// One of them, as the provider sent it; written down.
    QUARANTINED: Read "/admin/quarantine/{id}", Nothing => OpenedUpdate, bots::open;
    /// Throws one away.
    PURGE_QUARANTINED: Purge "/admin/quarantine/{id}", Nothing => Purged, bots::purge_one;
    /// What waits, per instance.
    INBOXES: Read "/admin/inbox", Selection => Inboxes, inbox::list_inboxes;
    /// Entries, without their text.
    ENTRIES: Read "/admin/inbox/entries", Selection => Entries, inbox::list_entries;
    /// Puts dead letters back in line.
    REDRIVE: Act "/admin/inbox/redrive", Selection => Redriven, inbox::redrive;
    /// Throws entries away.
    PURGE: Act "/admin/inbox/purge", Selection => Purged, inbox::purge;
    /// The last messages, without their text.
    MESSAGES: Read "/admin/messages", WantedMessages => Messages, messages::list;
    /// Which way a message took.
    EXPLAIN: Read "/admin/explain/{message}", Nothing => Explained, inbox::explain;
    /// Lets somebody into the web chat.
    INVITE: Make "/admin/webchat/invites", Invite => Invitation, invites::invite;
    /// Who has keys of rooms.
    PEOPLE: Read "/admin/webchat/people", OfRoom => People, invites::people;
    /// Makes somebody's keys of a room void.
    REVOKE_PERSON: Act "/admin/webchat/revoke", RevokePerson => RevokedPerson, invites::revoke;
    /// The master key's name, and whether everything sealed opens.
    KEY: Read "/admin/key", Nothing => KeyCheck, keys::check;
    /// Changes the master key and wraps everything anew with it.
    ROTATE_KEY: Act "/admin/key/rotate", RotateKey => RotatedKey, keys::rotate;
    /// Makes a new admin token; the old one is void.
    ROTATE_TOKEN: Act "/admin/token/rotate", Nothing => RotatedToken, keys::rotate_token;
    /// What the clock shows, and whether it leapt.
    CLOCK: Read "/admin/clock", Nothing => Clock, keys::clock;
    /// Takes the clock as it is for right.
    ACCEPT_CLOCK: Act "/admin/clock/accept", Nothing => AcceptedClock, keys::accept_clock;
    /// Who changed what, newest first.
    AUDIT: Read "/admin/audit", AuditWanted => Audit, keys::audit;
}

/// The routes of the table.
pub(super) fn router() -> Router<Arc<Admin>> {
    table().into_iter().fold(Router::new(), |router, row| router.route(row.path, row.route))
}

/// The method and path of every endpoint.
pub fn endpoints() -> Vec<(String, &'static str)> {
    table().into_iter().map(|row| (row.verb.method().to_string(), row.path)).collect()
}
