//! What servers remember of who is known here, as facts: all of them at a start, and
//! after that those that lines of the change feed are about (docs/decisions/0033, 0038).
//!
//! A fact says how something is, not what was done to it. So it does no harm to be told one
//! twice, and several changes of one record may be told as the last of them.

use super::{gateways, instances};
use crate::admission::{Policy, Route};
use crate::commands::Command;
use crate::error::{Error, Kind, Result};
use crate::inbox::InstanceId;
use crate::records::rows::{
    FrontRow, GatewayRow, InstanceRow, ManifestRow, PersonRow, PolicyRow, RouteRow, SecretRow, TenantRow,
};
use crate::records::{Changed, Record, View};
use crate::store::StoredGateway;
use std::collections::{BTreeMap, BTreeSet};

/// A bot that an instance answers for: platform and bot id, which may be empty for any.
pub type Front = (String, String);

/// How something is now; `None` where it is gone.
#[derive(Clone, Debug)]
pub enum Fact {
    /// Which instance of a tenant gets what no route assigns.
    Default(String, Option<InstanceId>),
    /// An instance.
    Instance(InstanceId, Option<KnownInstance>),
    /// A gateway with its secrets, by its tenant and id.
    Gateway(String, String, Option<StoredGateway>),
    /// A route, by its place and the bot that it is for.
    Route(String, Option<String>, Option<Route>),
    /// The bots that an instance answers for.
    Fronts(InstanceId, BTreeSet<Front>),
    /// The commands that an instance declared.
    Manifest(InstanceId, Vec<Command>),
    /// What an instance declared for a platform.
    Policy(InstanceId, String, Option<Policy>),
    /// Nobody of that name has a key of a web-chat room any more: room and name. Those who have
    /// one are not remembered.
    Uninvited(String, String),
}

/// What is remembered of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownInstance {
    /// Whose it is.
    pub tenant: String,
    /// Whether it waits for the first gateway of its tenant.
    pub waits_for_first: bool,
}

/// Everything that servers remember.
pub fn all(view: &mut View<'_>) -> Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for row in view.all::<TenantRow>()? {
        facts.push(Fact::Default(row.tenant, row.default_instance));
    }
    for row in view.all::<InstanceRow>()? {
        facts.push(Fact::Instance(row.instance, Some(known(row))));
    }
    for gateway in gateways::all(view)? {
        facts.push(Fact::Gateway(gateway.tenant.clone(), gateway.gateway_id.clone(), Some(gateway)));
    }
    for route in view.all::<RouteRow>()?.into_iter().map(Route::from) {
        facts.push(Fact::Route(route.place.to_string(), route.bot.clone(), Some(route)));
    }
    let mut fronts = BTreeMap::<InstanceId, BTreeSet<Front>>::new();
    for row in view.all::<FrontRow>()? {
        fronts.entry(row.instance).or_default().insert((row.platform, row.bot));
    }
    facts.extend(fronts.into_iter().map(|(instance, fronts)| Fact::Fronts(instance, fronts)));
    for row in view.all::<ManifestRow>()? {
        facts.push(Fact::Manifest(row.instance, row.commands.0));
    }
    for row in view.all::<PolicyRow>()? {
        facts.push(Fact::Policy(row.instance, row.platform.clone(), Some(row.into())));
    }
    Ok(facts)
}

/// What some lines of the feed are about.
#[derive(Debug, Default)]
pub struct News {
    /// How it is now.
    pub facts: Vec<Fact>,
    /// Records that cannot be read. What is known of them stays: one damaged row must not
    /// keep a server from hearing of everybody else.
    pub unreadable: Vec<Error>,
}

/// What some lines of the feed are about, as it is at this moment. Each is told once; what
/// servers do not remember is left out.
pub fn read(view: &mut View<'_>, lines: &[Changed]) -> Result<News> {
    let mut news = News::default();
    let mut told = BTreeSet::new();
    for line in lines {
        // A secret is told with its gateway.
        let is_secret = line.records == SecretRow::TABLE.name;
        let records = if is_secret { GatewayRow::TABLE.name } else { &line.records };
        if told.insert((records, &line.key)) {
            match read_one(view, records, &line.key) {
                Ok(fact) => news.facts.extend(fact),
                Err(error) if error.kind() == Kind::Internal => news.unreadable.push(error),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(news)
}

fn read_one(view: &mut View<'_>, records: &str, key: &str) -> Result<Option<Fact>> {
    let fact = if records == TenantRow::TABLE.name {
        let Some([tenant]) = named(key) else { return Ok(None) };
        let row = view.get::<TenantRow>((&tenant,))?;
        Fact::Default(tenant, row.and_then(|row| row.default_instance))
    } else if records == InstanceRow::TABLE.name {
        let Some(instance) = numbered(key) else { return Ok(None) };
        Fact::Instance(instance, view.get::<InstanceRow>((instance,))?.map(known))
    } else if records == GatewayRow::TABLE.name {
        let Some([tenant, id]) = named(key) else { return Ok(None) };
        let row = view.get::<GatewayRow>((&tenant, &id))?;
        let gateway = row.map(|row| gateways::whole(view, row)).transpose()?;
        Fact::Gateway(tenant, id, gateway)
    } else if records == RouteRow::TABLE.name {
        let Some([place, bot]) = named(key) else { return Ok(None) };
        let row = view.get::<RouteRow>((&place, &bot))?;
        Fact::Route(place, Some(bot).filter(|bot| !bot.is_empty()), row.map(Route::from))
    } else if records == FrontRow::TABLE.name {
        let Some(instance) = numbered(key) else { return Ok(None) };
        let rows = view.find::<FrontRow>(&["instance"], (instance,))?;
        Fact::Fronts(instance, rows.into_iter().map(|row| (row.platform, row.bot)).collect())
    } else if records == ManifestRow::TABLE.name {
        let Some(instance) = numbered(key) else { return Ok(None) };
        let row = view.get::<ManifestRow>((instance,))?;
        Fact::Manifest(instance, row.map(|row| row.commands.0).unwrap_or_default())
    } else if records == PolicyRow::TABLE.name {
        let Ok((number, platform)) = serde_json::from_str::<(i64, String)>(key) else { return Ok(None) };
        let instance = InstanceId(number);
        let row = view.get::<PolicyRow>((instance, &platform))?;
        Fact::Policy(instance, platform, row.map(Policy::from))
    } else if records == PersonRow::TABLE.name {
        let Some([room, user]) = named(key) else { return Ok(None) };
        if !view.find::<PersonRow>(&["room", "user"], (&room, &user))?.is_empty() {
            return Ok(None);
        }
        Fact::Uninvited(room, user)
    } else {
        return Ok(None);
    };
    Ok(Some(fact))
}

fn known(row: InstanceRow) -> KnownInstance {
    KnownInstance { waits_for_first: instances::waits_for_first(&row.name), tenant: row.tenant }
}

/// The names in a line's key.
fn named<const N: usize>(key: &str) -> Option<[String; N]> {
    serde_json::from_str::<Vec<String>>(key).ok()?.try_into().ok()
}

/// The instance that a line's key is.
fn numbered(key: &str) -> Option<InstanceId> {
    serde_json::from_str::<(i64,)>(key).ok().map(|(number,)| InstanceId(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Old, UnixMillis};
    use crate::records::{Query, Row, Source, Table, Value};
    use std::time::Duration;

    /// Has a tenant that can be read, and instances that cannot.
    struct Damaged;

    impl Source for Damaged {
        fn find(&mut self, table: &'static Table, _: &Query) -> Result<Vec<Row>> {
            let row = if table.name == TenantRow::TABLE.name {
                TenantRow {
                    tenant: "acme".into(),
                    created_at: UnixMillis(0),
                    default_instance: None,
                    delivery_key: None,
                }
                .to_row()
            } else {
                vec![Value::Null]
            };
            Ok(vec![row])
        }

        fn count(&mut self, _: &'static Table, _: &Query) -> Result<u64> {
            Ok(1)
        }

        fn heads(&mut self, _: &'static Table) -> Result<Vec<Vec<u8>>> {
            Ok(Vec::new())
        }

        fn older_than(&mut self, _: Duration) -> Option<Old> {
            None
        }

        fn next_number(&mut self, _: &'static Table, _: i64) -> Result<i64> {
            Ok(1)
        }

        fn fits(&mut self, _: u64) -> bool {
            true
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_hides_no_other() {
        let line = |id, records: &Table, key: &str| {
            let (records, key) = (records.name.to_owned(), key.to_owned());
            Changed { id, records, key }
        };
        let lines = [line(1, InstanceRow::TABLE, "[7]"), line(2, TenantRow::TABLE, r#"["acme"]"#)];
        let news = read(&mut View::new(&mut Damaged, UnixMillis(0)), &lines).unwrap();
        assert!(matches!(&news.facts[..], [Fact::Default(tenant, None)] if tenant == "acme"), "{news:?}");
        assert_eq!(news.unreadable.len(), 1, "{news:?}");
    }
}
