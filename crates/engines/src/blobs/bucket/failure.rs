//! What can go wrong with a bucket, and what to do about it. Nothing here names a key or an address
//! that was signed.

use angelia_core::error::Error;
use reqwest::StatusCode;
use std::error::Error as _;

/// Why a bucket did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nobody is there, or the connection broke.
    Unanswered(String),
    /// It did not answer in time.
    TooSlow,
    /// It answered what no bucket answers.
    Unreadable,
    /// It said no.
    Refused { status: u16, code: String, region: Option<String> },
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        // The innermost cause says what happened; what is around it repeats where.
        let error = error.without_url();
        let mut cause = error.source();
        let mut told = error.to_string();
        while let Some(inner) = cause {
            told = inner.to_string();
            cause = inner.source();
        }
        Self::Unanswered(told)
    }
}

impl Failure {
    /// Whether it may be otherwise in a moment.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Unanswered(_) => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            Self::TooSlow | Self::Unreadable => false,
        }
    }

    /// Whether there is no such object, in a bucket that is there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, code, .. } if code != NO_BUCKET)
    }

    /// Whether an object ends before what was asked for.
    pub(super) fn is_short(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == StatusCode::RANGE_NOT_SATISFIABLE)
    }

    /// What somebody is told who wanted to do `what` with this bucket at this server.
    pub(super) fn told(&self, what: &str, bucket: &str, host: &str) -> Error {
        let why = match self {
            Self::Unanswered(why) => {
                format!("{host} does not answer ({why}): see media.endpoint, and whether that server runs")
            }
            Self::TooSlow => format!("{host} does not answer in time: see how it and the way to it are"),
            Self::Unreadable => {
                format!("{host} does not answer as a bucket does: see whether media.endpoint speaks S3")
            }
            Self::Refused { status, code, region } => refused(*status, code, region.as_deref(), bucket, host),
        };
        Error::unavailable(format!("could not {what}: {why}"))
    }
}

const NO_BUCKET: &str = "NoSuchBucket";

fn refused(status: u16, code: &str, region: Option<&str>, bucket: &str, host: &str) -> String {
    match (status, code, region) {
        (301 | 307 | 400, _, Some(region)) => {
            format!("the bucket {bucket} is in another region: set media.region to {region:?}")
        }
        (301 | 307, ..) | (400, "AuthorizationHeaderMalformed", _) => format!(
            "{host} sends requests for the bucket {bucket} elsewhere: see media.region and media.endpoint"
        ),
        (_, NO_BUCKET, _) => {
            format!("there is no bucket {bucket} at {host}: make it, or name another in media.url")
        }
        (_, "InvalidAccessKeyId", _) => format!("{host} does not know the key of media.access_key_id"),
        (_, "SignatureDoesNotMatch", _) => {
            format!(
                "{host} takes the secret for wrong: media.secret_access_key does not fit media.access_key_id"
            )
        }
        (_, "RequestTimeTooSkewed", _) => {
            format!("the clocks of this machine and of {host} differ by too much: set the one that is wrong")
        }
        (401 | 403, ..) => format!(
            "{host} refuses it ({}): the key needs s3:ListBucket on the bucket {bucket}, and s3:GetObject, \
             s3:PutObject and s3:DeleteObject on what is in it",
            named(status, code)
        ),
        _ => format!("{host} answers {}", named(status, code)),
    }
}

fn named(status: u16, code: &str) -> String {
    if code.is_empty() { status.to_string() } else { format!("{status} {code}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: &str, region: Option<&str>) -> Failure {
        Failure::Refused { status, code: code.into(), region: region.map(str::to_owned) }
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        for (failure, next) in [
            (refusal(301, "PermanentRedirect", Some("eu-west-3")), "set media.region to \"eu-west-3\""),
            (refusal(400, "AuthorizationHeaderMalformed", None), "see media.region"),
            (refusal(404, "NoSuchBucket", None), "make it, or name another in media.url"),
            (refusal(403, "InvalidAccessKeyId", None), "media.access_key_id"),
            (refusal(403, "SignatureDoesNotMatch", None), "media.secret_access_key does not fit"),
            (refusal(403, "RequestTimeTooSkewed", None), "set the one that is wrong"),
            (refusal(403, "AccessDenied", None), "(403 AccessDenied): the key needs s3:ListBucket"),
            (refusal(507, "", None), "store.example answers 507"),
            (Failure::Unanswered("connection refused".into()), "see media.endpoint"),
            (Failure::TooSlow, "in time"),
            (Failure::Unreadable, "speaks S3"),
        ] {
            let told = failure.told("keep a file", "files", "store.example").to_string();
            assert!(told.starts_with("could not keep a file: ") && told.contains(next), "{told}");
        }
    }

    #[test]
    fn what_passes_is_tried_again_and_a_missing_object_is_no_missing_bucket() {
        assert!(refusal(503, "SlowDown", None).may_pass() && !refusal(403, "AccessDenied", None).may_pass());
        assert!(refusal(404, "NoSuchKey", None).is_missing() && refusal(404, "", None).is_missing());
        assert!(!refusal(404, "NoSuchBucket", None).is_missing());
        assert!(refusal(416, "InvalidRange", None).is_short());
    }
}
