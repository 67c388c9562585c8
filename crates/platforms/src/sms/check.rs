//! What a number's credential is good for, and whether its messages come here.

use super::api::Number;
use super::{NAME, Sms};
use crate::kit::health::Checkup;
use crate::kit::webhook::path;
use crate::kit::{ApiError, ErrorKind};
use angelia_core::error::Result;

impl Sms {
    /// Asks Twilio about the number.
    pub(super) async fn look_over(&self, public_url: &str) -> Result<Checkup> {
        let mut checkup = Checkup::default();
        match self.api.number(&self.config.id).await {
            Ok(Some(number)) => {
                let own = format!("{public_url}{}", path(NAME, &self.config.name));
                findings(&mut checkup, &number, &own);
            }
            Ok(None) => {
                checkup.good("the credential is good");
                checkup.bad(
                    format!("the account has no number {}", self.config.id),
                    "correct `id`, or `account_sid` if the number is in a subaccount: Twilio's console, Phone Numbers",
                );
            }
            Err(ApiError { kind: ErrorKind::Setup | ErrorKind::Refused(_), why }) => checkup.bad(
                why,
                "copy Account SID and Auth Token from Twilio's console, Account Info, into the configuration",
            ),
            Err(error) => return Err(error.into()),
        }
        Ok(checkup)
    }
}

fn findings(checkup: &mut Checkup, number: &Number, own: &str) {
    checkup.identity = Some(match &number.friendly_name {
        Some(name) if *name != number.phone_number => format!("{} ({name})", number.phone_number),
        _ => number.phone_number.clone(),
    });
    checkup.good("the credential is good, and the number is the account's");
    let next = format!(
        "in Twilio's console, Phone Numbers, this number, Messaging, \"A message comes in\": Webhook, \
         {own}, HTTP POST; if the number is in a Messaging Service, in that service's Integration (\"Defer to \
         sender's webhook\"). Until then messages are read back every five minutes"
    );
    let url = number.sms_url.as_deref().unwrap_or_default();
    let application = number.sms_application_sid.as_deref().is_some_and(|sid| !sid.is_empty());
    if application {
        checkup
            .limited("messages go to a TwiML application, which the webhook is not looked at beside", next);
    } else if url.is_empty() {
        checkup.limited("messages are posted nowhere", next);
    } else if url != own {
        checkup.limited(format!("messages are posted to {url}, and taken at {own}"), next);
    } else if number.sms_method.as_deref().is_some_and(|method| !method.eq_ignore_ascii_case("POST")) {
        checkup.limited(format!("messages go to {url}, but not by POST"), next);
    } else {
        checkup.good(format!(
            "messages are posted to {url}, unless the number is in a Messaging Service whose own webhook comes first"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::health::Verdict;

    #[test]
    fn findings_say_where_messages_go_and_what_to_do_next() {
        let own = "https://a.example.com/webhooks/sms/main";
        let number = |url: Option<&str>, method: &str| Number {
            phone_number: "+15550100".into(),
            sms_url: url.map(str::to_owned),
            sms_method: Some(method.into()),
            ..Number::default()
        };
        for (number, verdict) in [
            (number(Some("https://a.example.com/webhooks/sms/main"), "POST"), Verdict::Good),
            (number(Some("https://a.example.com/webhooks/sms/main"), "GET"), Verdict::Limited),
            (number(Some("https://a.example.com/webhooks/sms/other"), "POST"), Verdict::Limited),
            (number(Some("https://b.example.com/webhooks/sms/main"), "POST"), Verdict::Limited),
            (number(Some(""), "POST"), Verdict::Limited),
            (number(None, "POST"), Verdict::Limited),
        ] {
            let mut checkup = Checkup::default();
            findings(&mut checkup, &number, own);
            let found = &checkup.findings[1];
            assert_eq!(
                (found.verdict, found.next.is_some()),
                (verdict, verdict != Verdict::Good),
                "{found:?}"
            );
            assert!(checkup.is_usable());
        }
    }
}
