//! What a bucket answers in XML: a page of its objects, or the code of a refusal.

use angelia_core::clock::UnixMillis;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Objects in the order of their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Their whole names, and when each was finished.
    pub(super) objects: Vec<(String, UnixMillis)>,
    /// Whether there are more behind them.
    pub(super) more: bool,
}

/// Reads a page; `None` if that is something else.
pub(super) fn page(xml: &[u8]) -> Option<Page> {
    let mut page = Page::default();
    let (mut name, mut is_page) = (None, false);
    walk(xml, |path, text| {
        match path {
            ["ListBucketResult"] => is_page = true,
            ["ListBucketResult", "IsTruncated"] => page.more = text == "true",
            ["ListBucketResult", "Contents", "Key"] => name = Some(text.to_owned()),
            ["ListBucketResult", "Contents", "LastModified"] => {
                let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
                let at = i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()?;
                page.objects.push((name.take()?, UnixMillis(at)));
            }
            _ => {}
        }
        Some(())
    })?;
    is_page.then_some(page)
}

/// The code of a refusal, such as `NoSuchBucket`.
pub(super) fn code(xml: &[u8]) -> Option<String> {
    let mut code = None;
    walk(xml, |path, text| {
        if path == ["Error", "Code"] {
            code = Some(text.to_owned());
        }
        Some(())
    })?;
    code.filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Tells of every element when it ends: the way to it, and its text. `None` if it is not XML, or
/// if `told` has seen enough.
fn walk(xml: &[u8], mut told: impl FnMut(&[&str], &str) -> Option<()>) -> Option<()> {
    let mut reader = Reader::from_str(std::str::from_utf8(xml).ok()?);
    let (mut way, mut text) = (Vec::<String>::new(), String::new());
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => {
                way.push(tag.local_name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(part) => text.push_str(&part.xml10_content()),
            Event::GeneralRef(part) => match part.resolve_char_ref().ok()? {
                Some(character) => text.push(character),
                None => text.push_str(resolve_predefined_entity(&part)?),
            },
            Event::End(_) => {
                told(&way.iter().map(String::as_str).collect::<Vec<_>>(), text.trim())?;
                way.pop();
                text.clear();
            }
            Event::Eof => return way.is_empty().then_some(()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_and_what_is_none_is_told_apart() {
        let read = page(
            b"<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
              <Name>b</Name><IsTruncated>true</IsTruncated>\
              <Contents><Key>a&amp;&#98;</Key><LastModified>1970-01-01T00:00:01.500Z</LastModified>\
              <Owner><ID>x</ID></Owner></Contents>\
              <Contents><Key>c</Key><LastModified>1970-01-01T01:00:00+01:00</LastModified></Contents>\
              </ListBucketResult>",
        );
        let objects = vec![("a&b".to_owned(), UnixMillis(1_500)), ("c".to_owned(), UnixMillis(0))];
        assert_eq!(read, Some(Page { objects, more: true }));
        for other in ["", "nothing", "<ListBucketResult>", "<html></html>", "<Error><Code>X</Code></Error>"] {
            assert_eq!(page(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn of_a_refusal_only_its_code_is_taken() {
        let xml = b"<Error><Code>NoSuchBucket</Code><Message>of somebody</Message></Error>";
        assert_eq!(code(xml).as_deref(), Some("NoSuchBucket"));
        assert_eq!(code(b"<Error><Code>two\nlines</Code></Error>"), None);
        assert_eq!(code(b"<html>"), None);
    }
}
