//! Codes that make a route where somebody types them, once.

use super::{link_tries, routes, tenants};
use crate::admission::{Allow, Place, Route, RouteOptions};
use crate::audit::{Actor, AuditEntry};
use crate::error::{Error, Result};
use crate::records::View;
use crate::records::rows::RouteRow;
use crate::store::{CodeAllow, Fingerprint, LinkCode};

/// Keeps a code.
pub fn mint(view: &mut View<'_>, code: &LinkCode, by: &Actor) -> Result<()> {
    tenants::find(view, &code.tenant)?;
    view.audit(&AuditEntry::done(by, "route.code", &code.tenant, ""));
    view.add(code)
}

/// Uses up a code and makes the route of `place`; answers its tenant. A place
/// that is taken leaves the code good. Whoever was wrong too often is not listened to.
pub fn use_up(
    view: &mut View<'_>,
    code: &Fingerprint,
    place: &Place,
    bot: Option<&str>,
    typist: &str,
    by: &Actor,
) -> Result<String> {
    let (now, tries) = (view.now(), link_tries::of(view, by)?);
    if let Some(tenant) = used_before(view, code, place, bot, by)? {
        return Ok(tenant);
    }
    tries.check(now)?;
    let used = link_tries::used_at(code, place, bot);
    let found = view.get::<LinkCode>((code,))?.filter(|code| code.expires_at > now);
    let Some(code) = found else {
        let why = "unknown, used or expired code";
        view.audit_refusal(&AuditEntry::refused(by, "route.link", "", &place.to_string(), why));
        view.put_refusal(&tries.with_wrong(now));
        return Err(Error::forbidden("this code is unknown, used or expired"));
    };
    let allow = match &code.allow {
        CodeAllow::Typist => Allow::People(vec![typist.to_owned()]),
        CodeAllow::Given(allow) => allow.clone(),
    };
    let route = Route {
        place: place.clone(),
        bot: bot.map(str::to_owned),
        tenant: code.tenant.clone(),
        instance: code.instance,
        allow,
        free: code.free,
        while_busy: None,
        options: RouteOptions::default(),
    };
    routes::add(view, &route, "route.link", by)?;
    view.delete(&code);
    view.put(&tries.with_used(used, now));
    Ok(code.tenant)
}

/// The tenant of a place that this person linked by this code the last time they did: their
/// message came again, to whoever reads the bot by now, and is answered as it was.
pub fn used_before(
    view: &mut View<'_>,
    code: &Fingerprint,
    place: &Place,
    bot: Option<&str>,
    by: &Actor,
) -> Result<Option<String>> {
    if link_tries::of(view, by)?.used != Some(link_tries::used_at(code, place, bot)) {
        return Ok(None);
    }
    let route = view.get::<RouteRow>((place, bot.unwrap_or_default()))?;
    Ok(route.map(|route| route.tenant))
}
