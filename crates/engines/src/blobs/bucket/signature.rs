//! How a request proves to a bucket whose it is: AWS Signature Version 4, in a header.
//!
//! What is signed is the method, the address, a few headers and the SHA-256 of the body: whoever is
//! in between can change nothing, not even over plain http. The signature is good for a quarter of an
//! hour, and the secret itself never travels.

use angelia_core::clock::UnixMillis;
use angelia_core::secret::{Secret, hex};
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

/// What everything else in an address is spelled out as.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Whose requests they are.
#[derive(Clone, Debug)]
pub(super) struct Signer {
    pub(super) access_key_id: String,
    pub(super) secret: Secret,
    pub(super) region: String,
}

/// A request as it is signed.
pub(super) struct Unsigned<'a> {
    pub(super) method: &'a str,
    /// As it is sent.
    pub(super) path: &'a str,
    /// As [`query`] spells it.
    pub(super) query: &'a str,
    /// The headers to sign, by small names in their order; among them the host, the date and the
    /// SHA-256 of the body.
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body_hash: &'a str,
}

/// A query in the only form that is signed: spelled out, and in order.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    let mut pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// A moment as requests name it, such as `20130524T000000Z`.
pub(super) fn date(at: UnixMillis) -> String {
    let at = OffsetDateTime::from_unix_timestamp(at.0 / 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (month, day) = (u8::from(at.month()), at.day());
    format!("{:04}{month:02}{day:02}T{:02}{:02}{:02}Z", at.year(), at.hour(), at.minute(), at.second())
}

/// The SHA-256 of something, as requests name it.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

impl Signer {
    /// The value of `Authorization` for a request that is dated `date`.
    pub(super) fn authorization(&self, request: &Unsigned<'_>, date: &str) -> String {
        let Unsigned { method, path, query, headers, body_hash } = request;
        let signed: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let signed = signed.join(";");
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let request = format!("{method}\n{path}\n{query}\n{lines}\n{signed}\n{body_hash}");
        let day = date.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let text = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hash(request.as_bytes()));
        let signature = hex(&mac(&self.key(day), &text));
        let id = &self.access_key_id;
        format!("{ALGORITHM} Credential={id}/{scope},SignedHeaders={signed},Signature={signature}")
    }

    /// The key of a day.
    fn key(&self, day: &str) -> [u8; 32] {
        let first = Secret::new(format!("AWS4{}", self.secret.expose()));
        let of_day = mac(first.expose().as_bytes(), day);
        [&*self.region, "s3", "aws4_request"].iter().fold(of_day, |key, part| mac(&key, part))
    }
}

fn mac(key: &[u8], text: &str) -> [u8; 32] {
    #[allow(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
    const DATE: &str = "20130524T000000Z";

    fn signature(method: &str, path: &str, query: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let signer = Signer {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            region: "us-east-1".into(),
        };
        let body_hash = hash(body);
        let mut headers = [headers, &[("x-amz-content-sha256", &*body_hash), ("x-amz-date", DATE)]].concat();
        headers.sort_unstable();
        let request = Unsigned { method, path, query, headers: &headers, body_hash: &body_hash };
        let authorization = signer.authorization(&request, DATE);
        authorization.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    /// The examples of Amazon's own description, "Signature Calculations for the Authorization Header".
    #[test]
    fn requests_are_signed_as_amazon_describes_it() {
        let part = signature("GET", "/test.txt", "", &[HOST, ("range", "bytes=0-9")], b"");
        assert_eq!(part, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
        let headers =
            [HOST, ("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        let put = signature("PUT", "/test%24file.text", "", &headers, b"Welcome to Amazon S3.");
        assert_eq!(put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
        let list = signature("GET", "/", &query(&[("prefix", "J"), ("max-keys", "2")]), &[HOST], b"");
        assert_eq!(list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    }

    #[test]
    fn dates_and_queries_are_spelled_as_they_are_signed() {
        assert_eq!(date(UnixMillis(1_369_353_600_999)), DATE);
        assert_eq!(
            query(&[("start-after", "a/b c"), ("list-type", "2")]),
            "list-type=2&start-after=a%2Fb%20c"
        );
    }
}
