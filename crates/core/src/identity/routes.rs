//! Routes as records: adding, moving and removing them. Finding one is `admission/route.rs`.

use super::tenants;
use crate::admission::{Allow, Approve, Context, Place, Route, Threads};
use crate::audit::{Actor, AuditEntry};
use crate::directory::BotKey;
use crate::error::{Error, Result};
use crate::records::View;
use crate::records::rows::RouteRow;

/// Adds a route; a conflict if the place is taken.
pub fn add(view: &mut View<'_>, route: &Route, action: &'static str, by: &Actor) -> Result<()> {
    let row = RouteRow::from(route.clone());
    if view.get::<RouteRow>((&row.place, &row.bot))?.is_some() {
        let place = &row.place;
        return Err(Error::conflict(format!(
            "{place} already has a route; --replace puts this one in its place, angelia route remove takes it away"
        )));
    }
    write(view, &row, action, by)
}

/// Puts a route in the place of the one there is, if there is one: at no moment the place has none.
pub fn replace(view: &mut View<'_>, route: &Route, by: &Actor) -> Result<()> {
    let row = RouteRow::from(route.clone());
    let is_there = view.get::<RouteRow>((&row.place, &row.bot))?.is_some();
    write(view, &row, if is_there { "route.replace" } else { "route.add" }, by)
}

fn write(view: &mut View<'_>, row: &RouteRow, action: &'static str, by: &Actor) -> Result<()> {
    tenants::find(view, &row.tenant)?;
    let place = &row.place;
    let allowed = match &row.allow {
        Allow::Any => "allow any".to_owned(),
        Allow::People(people) => format!("allow {}", people.join(",")),
    };
    let busy = row.while_busy.map(|mode| format!(", while_busy {}", mode.as_str()));
    let approve = (row.options.approve == Approve::Any).then_some(", approve any");
    let context = Some(row.options.context).filter(|context| *context != Context::default());
    let context = context.map(|context| format!(", context {context}"));
    let threads = (row.options.threads == Threads::Auto).then_some(", threads auto");
    let terms = allowed
        + busy.as_deref().unwrap_or_default()
        + approve.unwrap_or_default()
        + context.as_deref().unwrap_or_default()
        + threads.unwrap_or_default();
    view.put(row);
    view.audit(&AuditEntry::done(by, action, &row.tenant, &place.to_string()).with(terms));
    Ok(())
}

/// Removes a route; `false` if the place has none.
pub fn remove(view: &mut View<'_>, place: &Place, bot: Option<&str>, by: &Actor) -> Result<bool> {
    let Some(row) = view.get::<RouteRow>((place, bot.unwrap_or_default()))? else { return Ok(false) };
    view.delete(&row);
    view.audit(&AuditEntry::done(by, "route.remove", &row.tenant, &place.to_string()));
    Ok(true)
}

/// A chat got another id: its routes and those of its topics, of this bot and of every
/// bot, go along. What the new id has of its own stays, and the old one goes. Whatever cannot
/// be read is found before anything is written.
pub fn follow(view: &mut View<'_>, bot: &BotKey, from: &str, to: &str, by: &Actor) -> Result<()> {
    let (old, new) = (format!("{}:{from}", bot.platform), format!("{}:{to}", bot.platform));
    let is_of_chat = |place: &str| match place.strip_prefix(&old) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    };
    let mut moves = Vec::new();
    for row in view.all_named::<RouteRow>(is_of_chat)? {
        if !row.bot.is_empty() && *row.bot != *bot.bot {
            continue;
        }
        let place = row.place.to_string();
        let target = format!("{new}{}", place.strip_prefix(&old).unwrap_or_default());
        let moved = match target.parse::<Place>() {
            Err(why) => Err(format!("gone: {why}")),
            Ok(moved) if view.get::<RouteRow>((&moved, &row.bot))?.is_some() => {
                Err(format!("gone: {target} has a route already"))
            }
            Ok(moved) => Ok((moved, format!("to {target}"))),
        };
        moves.push((row, moved));
    }
    for (row, moved) in moves {
        view.delete(&row);
        let entry = AuditEntry::done(by, "route.move", &row.tenant, &row.place.to_string());
        let detail = match moved {
            Err(gone) => gone,
            Ok((place, to)) => {
                view.put(&RouteRow { place, ..row });
                to
            }
        };
        view.audit(&entry.with(detail));
    }
    Ok(())
}
