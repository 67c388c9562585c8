//! What lets somebody in: clients, enrolment tokens, link codes; and what a
//! gateway declared about itself.

use super::{BoxFuture, NewGateway, StoredGateway};
use crate::admission::{Allow, Place, Policy};
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::commands::Command;
use crate::error::Result;
use crate::identity::{clients, codes, declared, enroll_tokens};
use crate::inbox::InstanceId;
use crate::records::rows::{FrontRow, ManifestRow, PolicyRow};
use crate::records::{Change, Records, change, look};
use crate::space::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An instance, and the commands that it declared.
pub type Manifest = (InstanceId, Vec<Command>);

/// Of a bearer secret only what recognises it is kept.
pub type Fingerprint = [u8; 32];

/// An OAuth client of the built-in token endpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Client {
    /// Its id.
    pub client_id: String,
    /// The tenant it proves.
    pub tenant: String,
    /// What recognises its secret.
    #[serde(skip)]
    pub secret_fingerprint: Fingerprint,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
}

/// A token that lets one gateway enrol, once.
#[derive(Clone, Debug)]
pub struct EnrollToken {
    /// What recognises it.
    pub fingerprint: Fingerprint,
    /// The tenant it is for.
    pub tenant: String,
    /// The only gateway it is for; `None` for any new one.
    pub gateway_id: Option<String>,
    /// Until when it is good.
    pub expires_at: UnixMillis,
}

/// Who may speak in a place that a code opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeAllow {
    /// Whoever types the code.
    Typist,
    /// As the operator said.
    Given(Allow),
}

/// A code that makes a route where it is typed, once.
#[derive(Clone, Debug)]
pub struct LinkCode {
    /// What recognises it.
    pub fingerprint: Fingerprint,
    /// The tenant that gets the place.
    pub tenant: String,
    /// Its instance that answers there, if not its default.
    pub instance: Option<InstanceId>,
    /// Who may speak there.
    pub allow: CodeAllow,
    /// Whether messages that do not address the bot are delivered too.
    pub free: bool,
    /// Until when it is good.
    pub expires_at: UnixMillis,
}

/// Clients, tokens, codes, policies: the rules of [`crate::identity`], asked of any records.
pub trait AccessStore: Records {
    /// Makes a client; not found without its tenant.
    fn create_client(&self, client: Client, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("create a client"), move |view| clients::create(view, &client, &by))
    }

    /// Every client, oldest first.
    fn clients(&self) -> BoxFuture<'_, Result<Vec<Client>>> {
        look(self, "read the clients", |view| {
            let mut found = view.all::<Client>()?;
            found.sort_by_key(|client| client.created_at);
            Ok(found)
        })
    }

    /// The client with this id.
    fn client(&self, client_id: &str) -> BoxFuture<'_, Result<Option<Client>>> {
        let client_id = client_id.to_owned();
        look(self, "find a client", move |view| view.get((&client_id,)))
    }

    /// Marks a client as revoked; not found if there is none.
    fn revoke_client(&self, client_id: &str, by: &Actor) -> BoxFuture<'_, Result<Client>> {
        let (client_id, by) = (client_id.to_owned(), by.clone());
        change(self, Change::to("revoke a client").class(Class::of(&by)), move |view| {
            clients::revoke(view, &client_id, &by)
        })
    }

    /// Gives a client another secret; the one it had is void. Not found if there
    /// is none, a conflict if it was revoked.
    fn rotate_client(
        &self,
        client_id: &str,
        secret: Fingerprint,
        by: &Actor,
    ) -> BoxFuture<'_, Result<Client>> {
        let (client_id, by) = (client_id.to_owned(), by.clone());
        change(self, Change::to("rotate a client"), move |view| {
            clients::rotate(view, &client_id, secret, &by)
        })
    }

    /// Keeps an enrolment token; answers whether it is to replace a gateway
    /// that exists. Not found without its tenant, a conflict if that gateway was revoked.
    fn mint_enroll_token(&self, token: EnrollToken, by: &Actor) -> BoxFuture<'_, Result<bool>> {
        let by = by.clone();
        change(self, Change::to("keep an enrolment token"), move |view| {
            enroll_tokens::mint(view, &token, &by)
        })
    }

    /// Uses up the token and, in the same commit, enrols `gateway`, or gives it
    /// a new secret where the token was made to replace it (its old ones are
    /// good until `old_until`). A refusal uses nothing up: forbidden if the token
    /// is unknown, used, expired, another tenant's or another gateway's; a
    /// conflict if the id is taken.
    fn enroll(
        &self,
        token: Fingerprint,
        gateway: NewGateway,
        old_until: UnixMillis,
        by: &Actor,
    ) -> BoxFuture<'_, Result<StoredGateway>> {
        let by = by.clone();
        change(self, Change::to("enrol a gateway"), move |view| {
            enroll_tokens::enroll(view, &token, &gateway, old_until, &by)
        })
    }

    /// Keeps a link code; not found without its tenant.
    fn mint_link_code(&self, code: LinkCode, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("keep a code"), move |view| codes::mint(view, &code, &by))
    }

    /// Uses up a code and, in the same commit, makes the route of `place` for
    /// every bot or the one named; answers its tenant. Forbidden if the code is
    /// unknown, used or expired; too many if that happened too often to this person; a
    /// conflict, with the code still good, if the place is taken. Used by them at this
    /// place the last time, it is answered as it was then.
    fn use_link_code(
        &self,
        code: Fingerprint,
        place: &Place,
        bot: Option<&str>,
        typist: &str,
        by: &Actor,
    ) -> BoxFuture<'_, Result<String>> {
        let (place, bot, typist) = (place.clone(), bot.map(str::to_owned), typist.to_owned());
        let by = by.clone();
        change(self, Change::to("use a code"), move |view| {
            codes::use_up(view, &code, &place, bot.as_deref(), &typist, &by)
        })
    }

    /// The tenant of `place` if this person linked it by this code, the last time they did.
    fn linked_before(
        &self,
        code: Fingerprint,
        place: &Place,
        bot: Option<&str>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<Option<String>>> {
        let (place, bot, by) = (place.clone(), bot.map(str::to_owned), by.clone());
        look(self, "find a code that was used", move |view| {
            codes::used_before(view, &code, &place, bot.as_deref(), &by)
        })
    }

    /// Replaces what an instance declared for a platform.
    fn set_policy(
        &self,
        instance: InstanceId,
        platform: &str,
        policy: Policy,
        by: &Actor,
    ) -> BoxFuture<'_, Result<()>> {
        let (platform, by) = (platform.to_owned(), by.clone());
        change(self, Change::to("keep a policy").of(instance), move |view| {
            declared::set_policy(view, instance, &platform, &policy, &by)
        })
    }

    /// Every policy.
    fn policies(&self) -> BoxFuture<'_, Result<Vec<(InstanceId, String, Policy)>>> {
        look(self, "read the policies", |view| {
            let rows = view.all::<PolicyRow>()?.into_iter();
            Ok(rows.map(|row| (row.instance, row.platform.clone(), row.into())).collect())
        })
    }

    /// Replaces the bots an instance answers for.
    fn set_fronts(&self, instance: InstanceId, fronts: Vec<(String, String)>) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("keep what a gateway fronts").of(instance), move |view| {
            declared::set_fronts(view, instance, &fronts)
        })
    }

    /// Replaces the commands that an instance declared.
    fn set_manifest(&self, instance: InstanceId, commands: Vec<Command>) -> BoxFuture<'_, Result<()>> {
        change(self, Change::to("keep the commands of a gateway").of(instance), move |view| {
            declared::set_manifest(view, instance, &commands)
        })
    }

    /// The commands that every instance declared.
    fn manifests(&self) -> BoxFuture<'_, Result<Vec<Manifest>>> {
        look(self, "read the commands of gateways", |view| {
            Ok(view.all::<ManifestRow>()?.into_iter().map(|row| (row.instance, row.commands.0)).collect())
        })
    }

    /// The bots every instance answers for, as (platform, bot).
    fn fronts(&self) -> BoxFuture<'_, Result<Vec<(InstanceId, String, String)>>> {
        look(self, "read what gateways front", |view| {
            Ok(view.all::<FrontRow>()?.into_iter().map(|row| (row.instance, row.platform, row.bot)).collect())
        })
    }
}

impl<R: Records + ?Sized> AccessStore for R {}
