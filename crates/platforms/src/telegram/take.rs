//! Taking updates in: in order, committed with how far they were read.

use super::Telegram;
use super::address::Me;
use super::commands::Own;
use super::parse::Raw;
use super::replies::Answer;
use super::update::{Digest, Sighting};
use crate::ingress::Ingress;
use angelia_core::admission::DropReason;
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::store::Intake;
use std::collections::VecDeque;
use std::sync::Arc;

impl Telegram {
    /// Takes updates in and out of the line. With an error the rest is still in
    /// line: what was not committed has to be taken again.
    pub(super) async fn take(
        self: &Arc<Self>,
        ingress: &Ingress,
        me: &Me,
        line: &mut VecDeque<Raw>,
    ) -> Result<()> {
        while !line.is_empty() {
            let batch = self.batch(ingress, me, line).await?;
            // What only the connector can do is alone in its batch.
            let own = batch.first().and_then(|digest| Some((digest.own.as_ref()?, digest.sighting.as_ref())));
            let number = line.front().and_then(|raw| raw.id);
            let answer = match own {
                Some((own, who)) => {
                    let settled = self.settle_once(ingress, number, own, who).await;
                    settled.inspect_err(|_| self.forget_batch(&batch))?
                }
                None => None,
            };
            self.commit(ingress, &batch).await?;
            line.drain(..batch.len());
            if let (Some(answer), Some(Digest { sighting: Some(who), .. })) = (answer, batch.first()) {
                let target = Target { chat_id: who.chat_id.clone(), thread_id: who.thread_id.clone() };
                self.answer(target, answer);
            }
        }
        Ok(())
    }

    /// Does what an update calls for, unless that was done and only its commit
    /// failed: a code that was used would be found used.
    async fn settle_once(
        &self,
        ingress: &Ingress,
        number: Option<i64>,
        own: &Own,
        who: Option<&Sighting>,
    ) -> Result<Option<Answer>> {
        let mut settled = self.settled.lock().await;
        if let Some((last, answer)) = &*settled
            && Some(*last) == number
        {
            return Ok(answer.clone());
        }
        let answer = self.settle(ingress, own, who).await?;
        *settled = number.map(|number| (number, answer.clone()));
        Ok(answer)
    }

    /// What can be committed next: updates up to one that the connector has to
    /// do something about, or that one alone.
    async fn batch(&self, ingress: &Ingress, me: &Me, line: &VecDeque<Raw>) -> Result<Vec<Digest>> {
        let mut batch: Vec<Digest> = Vec::with_capacity(line.len());
        for raw in line {
            let digest = self.digest(ingress, me, raw).await.inspect_err(|_| self.forget_batch(&batch))?;
            let own = digest.own.is_some();
            if own && !batch.is_empty() {
                // It is read again when its turn comes.
                self.directory.unlearn(&digest.intake.chats);
                break;
            }
            batch.push(digest);
            if own {
                break;
            }
        }
        Ok(batch)
    }

    async fn commit(&self, ingress: &Ingress, batch: &[Digest]) -> Result<()> {
        let intakes: Vec<Intake> = batch.iter().map(|digest| digest.intake.clone()).collect();
        let taken = ingress.take_in(&self.bot, intakes).await.inspect_err(|_| self.forget_batch(batch))?;
        for (digest, taken) in batch.iter().zip(taken) {
            let reason = if taken.no_instance { Some(DropReason::NoInstance) } else { digest.dropped };
            if let (Some(sighting), Some(reason)) = (&digest.sighting, reason) {
                sighting.dropped(ingress, reason);
            }
        }
        Ok(())
    }

    fn forget_batch(&self, batch: &[Digest]) {
        batch.iter().for_each(|digest| self.directory.unlearn(&digest.intake.chats));
    }
}
