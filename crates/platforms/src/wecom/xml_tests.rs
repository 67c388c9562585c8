use super::*;
use proptest::prelude::*;

fn why(text: &str) -> &'static str {
    read(text.as_bytes()).unwrap_err().0
}

#[test]
fn a_message_is_read_as_it_was_written() {
    let fields = read(
        "\u{feff}<?xml version=\"1.0\"?>\n<xml><!-- x -->\n<ToUserName><![CDATA[ww1]]></ToUserName>\
         <Content><![CDATA[ a <b> & \u{1F600} ]]></Content><MsgId>7</MsgId><Empty/><None></None>\
         <Info><Count>2</Count><List><item>x</item></List></Info>\
         <Odd a=\"1\">1 &lt; 2 &amp;&#x4f60;&#65;</Odd></xml>\n"
            .as_bytes(),
    )
    .unwrap();
    assert_eq!(fields.get("ToUserName"), Some("ww1"));
    assert_eq!(fields.get("Content"), Some("a <b> & \u{1F600}"));
    assert_eq!(fields.exact("Content"), Some(" a <b> & \u{1F600} "));
    assert_eq!(fields.get("Odd"), Some("1 < 2 &你A"));
    assert_eq!((fields.get("Empty"), fields.get("None"), fields.get("Nowhere")), (None, None, None));
    assert_eq!((fields.get("Info"), fields.get("Count"), fields.get("item")), (None, None, None), "nested");
}

#[test]
fn what_is_hostile_is_refused() {
    let laughs =
        "<!DOCTYPE xml [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\">]><xml><Encrypt>&b;</Encrypt></xml>";
    assert_eq!(why(laughs), "it has a DTD");
    assert_eq!(why("<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><xml/>"), "it has a DTD");
    assert_eq!(why("<xml><Encrypt>&a;</Encrypt></xml>"), "it has an entity of its own");
    assert_eq!(why("<xml><Encrypt>&#0;</Encrypt></xml>"), "it refers to no character");
    assert_eq!(why("<xml><?php x ?></xml>"), "it has a processing instruction");
    assert_eq!(why(&format!("<xml>{}", "<a>".repeat(100_000))), "its elements are too deep in each other");
    assert_eq!(why(&format!("<xml>{}</xml>", "<a/>".repeat(100))), "it has too many fields");
    assert_eq!(read(b"<xml><a>\xff\xfe</a></xml>").unwrap_err().0, "it is not UTF-8");
    assert_eq!(why("<xml/><xml/>"), "its root is not one xml element");
    assert_eq!(why("<html></html>"), "its root is not one xml element");
    assert_eq!(why("<xml></xml>x"), "there is text outside of its root");
    for cut in
        ["", "<xml>", "<xml><a>", "<xml><a></xml>", "<xml><![CDATA[x</xml>", "<xml", "</xml>", "&#65;", "{}"]
    {
        assert!(read(cut.as_bytes()).is_err(), "{cut}");
    }
    // Large attributes cost no more than their bytes.
    let attribute =
        format!("<xml a=\"{}\"><Encrypt b='{}'>x</Encrypt></xml>", "y".repeat(100_000), "&a;".repeat(9));
    assert_eq!(read(attribute.as_bytes()).unwrap().get("Encrypt"), Some("x"));
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<xml>"),
        Just("</xml>"),
        Just("<a>"),
        Just("</a>"),
        Just("<Encrypt>"),
        Just("</Encrypt>"),
        Just("<![CDATA["),
        Just("]]>"),
        Just("<!DOCTYPE x ["),
        Just("<!ENTITY a \"b\">"),
        Just("]>"),
        Just("&a;"),
        Just("&#"),
        Just("x4f60;"),
        Just("&lt;"),
        Just("<!--"),
        Just("-->"),
        Just("<?"),
        Just("?>"),
        Just("<b c=\""),
        Just("\"/>"),
        Just("text 你好"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn is_sane(bytes: &[u8]) -> bool {
    match read(bytes) {
        Ok(Fields(fields)) => {
            let size: usize = fields.iter().map(|(name, text)| name.len() + text.len()).sum();
            fields.len() <= MAX_FIELDS && size <= bytes.len()
        }
        Err(_) => true,
    }
}

proptest! {
    #[test]
    fn nothing_panics_or_grows(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in pieces()) {
        prop_assert!(is_sane(&bytes));
        prop_assert!(is_sane(text.as_bytes()));
        let whole = format!("<xml>{text}</xml>");
        prop_assert!(is_sane(whole.as_bytes()));
    }

    #[test]
    fn any_text_comes_back(text in r"[^\x00\r\]]{0,60}") {
        let fields = read(format!("<xml><Content><![CDATA[{text}]]></Content></xml>").as_bytes()).unwrap();
        prop_assert_eq!(fields.exact("Content"), Some(text.as_str()));
    }
}
