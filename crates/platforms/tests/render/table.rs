//! The readable table: what is written, and what people see.

use std::fmt::Write as _;
use std::path::Path;

use angelia_platforms::telegram::render::{Entity, Part, render};
use toml::{Table, Value};

/// One row.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) markdown: String,
    text: String,
    entities: Vec<String>,
}

/// All rows.
pub(crate) fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/render/cases.toml");
    let table: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let word = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = table["case"].as_array().unwrap().iter();
    rows.map(|row| Case {
        name: word(row, "name"),
        markdown: word(row, "markdown"),
        text: word(row, "text"),
        entities: row.get("entities").and_then(Value::as_array).map_or_else(Vec::new, |entities| {
            entities.iter().map(|entity| entity.as_str().unwrap().to_owned()).collect()
        }),
    })
    .collect()
}

/// An entity as the table shows it: `bold[0..4] word`, `text_link[0..2](https://…) us`.
fn shown(entity: &Entity, text: &str) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let (start, end) = (entity.offset as usize, (entity.offset + entity.length) as usize);
    let covered = String::from_utf16(&units[start..end]).unwrap();
    let kind = serde_json::to_value(entity.kind).unwrap();
    let detail = entity.url.as_ref().or(entity.language.as_ref());
    let detail = detail.map_or_else(String::new, |detail| format!("({detail})"));
    format!("{}[{start}..{end}]{detail} {}", kind.as_str().unwrap(), covered.replace('\n', "⏎"))
}

/// A row as it should stand in the table.
fn row(name: &str, markdown: &str, part: &Part) -> String {
    let mut row = format!("[[case]]\nname = {}\n", quoted(name));
    for (key, value) in [("markdown", markdown), ("text", &part.text)] {
        writeln!(row, "{key} = {}", quoted(value)).unwrap();
    }
    if !part.entities.is_empty() {
        row.push_str("entities = [\n");
        for entity in &part.entities {
            writeln!(row, "  {},", quoted(&shown(entity, &part.text))).unwrap();
        }
        row.push_str("]\n");
    }
    row
}

/// A text as TOML: as it is where that can be read, escaped where it cannot.
fn quoted(value: &str) -> String {
    let strange = |c: char| {
        let unseen = c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
            || c != ' ' && c.is_whitespace();
        unseen && c != '\n'
    };
    if value.contains(strange) || value.contains("''") || value.ends_with('\'') {
        let escape = |c: char| match c {
            '\n' => "\\n".to_owned(),
            '"' | '\\' => format!("\\{c}"),
            c if strange(c) => format!("\\u{:04X}", c as u32),
            c => c.to_string(),
        };
        return format!("\"{}\"", value.chars().map(escape).collect::<String>());
    }
    match value {
        _ if value.contains('\n') => format!("'''\n{value}'''"),
        _ if value.contains('\'') => format!("'''{value}'''"),
        _ => format!("'{value}'"),
    }
}

#[test]
fn every_case_is_shown_as_the_table_says() {
    let cases = cases();
    let mut wrong = String::new();
    for case in &cases {
        let parts = render(&case.markdown);
        assert_eq!(parts.len(), 1, "{}", case.name);
        let entities: Vec<String> =
            parts[0].entities.iter().map(|entity| shown(entity, &parts[0].text)).collect();
        if parts[0].text != case.text || entities != case.entities {
            writeln!(wrong, "{}", row(&case.name, &case.markdown, &parts[0])).unwrap();
        }
    }
    assert!(wrong.is_empty(), "these rows are shown otherwise:\n\n{wrong}");
    assert!(cases.len() >= 100, "{}", cases.len());
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "every case has a name of its own");
}
