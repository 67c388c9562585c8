//! Bringing the files of an event here: from the provider that has them, before the event goes to
//! its agent.

use super::keep::{Claims, Taken};
use super::{Media, no_such_file};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::InstanceId;
use angelia_core::media::{
    Attached, Brought, FileId, Handed, Holder, KEPT_FOR, KeptFile, MediaStore, safe_name,
};
use angelia_platforms::Platform;
use std::time::Duration;
use tokio::time::Instant;

angelia_contract::limits! {
    /// Some albums. Lines with more do not go together; of one that has more itself the agent is told that some are missing.
    pub(crate) const FILES_OF_EVENT: usize = 32, count "files of one message that are fetched";
    /// Its chat waits for them. Then the message goes without those that are not here, and says so.
    const FETCH_WITHIN: Duration = Duration::from_secs(120), time "for which the files of a message are fetched";
}
/// The pauses before further attempts.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8)];

impl Media {
    /// Brings the files of an event to where its instance can ask for them; what came of each.
    pub(crate) async fn bring(
        &self,
        tenant: &str,
        instance: InstanceId,
        bot: Option<&dyn Platform>,
        files: &[Attached],
    ) -> Vec<Brought> {
        let (mut brought, until) = (Vec::with_capacity(files.len()), Instant::now() + FETCH_WITHIN);
        for (number, file) in files.iter().enumerate() {
            let came = match bot {
                _ if number >= FILES_OF_EVENT => {
                    Err(Error::new(Kind::TooMany, "one message has too many files"))
                }
                None => Err(Error::not_found("the bot that it was sent to is not configured any more")),
                Some(bot) => self.bring_one(tenant, instance, bot, file, until).await,
            };
            brought.push(came.unwrap_or_else(|error| missing(file, &error)));
        }
        brought
    }

    async fn bring_one(
        &self,
        tenant: &str,
        instance: InstanceId,
        bot: &dyn Platform,
        file: &Attached,
        until: Instant,
    ) -> Result<Brought> {
        // What was brought for another socket is found again.
        let id = FileId::named(&[&instance.0.to_string(), bot.platform(), bot.id(), &file.at]);
        let holder = Holder::Instance(instance);
        if let Some(kept) = self.ports.records.use_file(&id, &holder).await? {
            let KeptFile { name, media_type, size, .. } = kept;
            return Ok(Brought::Here { file: id, name, media_type, size });
        }
        if let Some((from, file)) = bot.keeps(&file.at) {
            return self.bring_kept(tenant, instance, id, (from, file)).await;
        }
        let fetched = tokio::time::timeout_at(until, async {
            let mut pauses = PAUSES.iter();
            loop {
                match (self.fetch(tenant, instance, &id, bot, file).await, pauses.next()) {
                    (Err(error), Some(pause)) if error.kind() == Kind::Unavailable => {
                        tracing::debug!(%error, "a file is fetched again");
                        tokio::time::sleep(*pause).await;
                    }
                    (outcome, _) => break outcome,
                }
            }
        });
        let slow = |_| Error::unavailable("it took too long to fetch it");
        let Taken { file, size, name, media_type } = fetched.await.map_err(slow)??;
        Ok(Brought::Here { file, name, media_type, size })
    }

    /// Hands on what is here already, from a room to its agent.
    async fn bring_kept(
        &self,
        tenant: &str,
        instance: InstanceId,
        named: FileId,
        (from, file): (Holder, FileId),
    ) -> Result<Brought> {
        let (tenant, to) = (tenant.to_owned(), Holder::Instance(instance));
        let handed =
            Handed { file, from, tenant, to, named: named.clone(), called: None, kept_for: KEPT_FOR };
        let kept = self.ports.records.hand_on(handed).await?;
        let KeptFile { name, media_type, size, .. } = kept.ok_or_else(no_such_file)?;
        Ok(Brought::Here { file: named, name, media_type, size })
    }

    async fn fetch(
        &self,
        tenant: &str,
        instance: InstanceId,
        id: &FileId,
        bot: &dyn Platform,
        file: &Attached,
    ) -> Result<Taken> {
        let fetched = bot.fetch_file(&file.at).await?;
        let claims = Claims {
            file: Some(id.clone()),
            name: file.name.clone().or(fetched.name).unwrap_or_default(),
            media_type: file.media_type.clone().or(fetched.media_type),
        };
        self.keep(tenant, self.for_instance(instance), claims, fetched.bytes).await
    }
}

/// A file that did not come, in words for its agent.
fn missing(file: &Attached, error: &Error) -> Brought {
    let kind = file.media_type.as_deref().unwrap_or_default();
    Brought::Missing {
        name: safe_name(file.name.as_deref().unwrap_or_default(), kind),
        why: error.to_string(),
        too_large: error.kind() == Kind::TooLarge,
    }
}
