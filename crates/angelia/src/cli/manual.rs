//! `angelia man` and `angelia completions`: what a shell and a manual make of
//! the grammar, generated from it so that neither can lag behind.

use super::Cli;
use crate::show;
use angelia_core::error::{Error, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};
use std::path::Path;

/// How help texts head their examples.
const EXAMPLES: [&str; 2] = ["Example:", "Examples:"];
/// How the help of the whole command heads them.
const EXIT_CODES: &str = "Exit codes: ";

/// Prints the completion script of a shell.
pub(super) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "angelia", &mut script);
    show::text(&String::from_utf8_lossy(&script))
}

/// Prints the manual's first page, or writes every page into a directory.
pub(super) fn man(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else {
        let first = pages().into_iter().next().map(|page| page.text).unwrap_or_default();
        return show::text(&first);
    };
    let cannot = |path: &Path, e: io::Error| {
        Error::unavailable(format!("cannot write {}: {e}; name a directory that is yours", path.display()))
            .caused_by(e)
    };
    std::fs::create_dir_all(folder).map_err(|e| cannot(folder, e))?;
    let pages = pages();
    for page in &pages {
        let path = folder.join(&page.file);
        std::fs::write(&path, &page.text).map_err(|e| cannot(&path, e))?;
    }
    show::text(&format!("{} pages written to {}\n", pages.len(), folder.display()))
}

/// A page of the manual.
struct Page {
    file: String,
    text: String,
}

/// Every page: the whole command first, then its commands, each with those in it.
fn pages() -> Vec<Page> {
    // The manual itself is the help.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, None, &mut pages);
    pages
}

fn add(command: &clap::Command, above: Option<&str>, pages: &mut Vec<Page>) {
    let man = Man::new(command.clone());
    // Writing to memory cannot fail.
    let text = render(&man, command, above).unwrap_or_default();
    pages.push(Page { file: man.get_filename(), text });
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        add(inner, Some(name(command)), pages);
    }
}

/// What a page is called: `angelia-gateway-create`.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The usual sections. The generator's own title loses its place where there
/// is no date, its description joins the lines of a table, and what follows
/// the help would be called EXTRA: those three are made here.
fn render(man: &Man, command: &clap::Command, above: Option<&str>) -> io::Result<String> {
    let name = name(command);
    let mut text = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    writeln!(text, r#".TH "{name}" "1" "" "Angelia {version}" "Angelia Manual""#)?;
    man.render_name_section(&mut text)?;
    // A choice of many options is one word, too long for lines of even length.
    writeln!(text, ".ad l")?;
    man.render_synopsis_section(&mut text)?;
    writeln!(text, ".ad b")?;
    describe(command).to_writer(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    conclude(command, above).to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What the help says: paragraphs, and indented lines as they stand.
fn describe(command: &clap::Command) -> Roff {
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    let mut as_it_stands = false;
    for line in about.lines() {
        let indented = line.starts_with(' ');
        if indented != as_it_stands {
            roff.control(if indented { "nf" } else { "fi" }, []);
            as_it_stands = indented;
        }
        if line.trim().is_empty() {
            roff.control("PP", [])
        } else {
            roff.text([roman(line)])
        };
    }
    if as_it_stands {
        roff.control("fi", []);
    }
    roff
}

/// Examples, exit codes, and the page above this one.
fn conclude(command: &clap::Command, above: Option<&str>) -> Roff {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    if let Some(codes) = after.strip_prefix(EXIT_CODES) {
        roff.control("SH", ["EXIT STATUS"]).text([roman(codes)]);
    } else if !after.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        // The heading says what these lines say.
        for line in after.lines().filter(|line| !EXAMPLES.contains(line)) {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    if let Some(above) = above {
        roff.control("SH", ["SEE ALSO"]).text([bold(above), roman("(1)")]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::collections::BTreeSet;

    /// The names of a command and all in it, as their pages are called.
    fn names(command: &clap::Command, name: &str, found: &mut BTreeSet<String>) {
        found.insert(format!("{name}.1"));
        for inner in command.get_subcommands() {
            names(inner, &format!("{name}-{}", inner.get_name()), found);
        }
    }

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let mut wanted = BTreeSet::new();
        names(&Cli::command(), "angelia", &mut wanted);
        let pages = pages();
        let made: BTreeSet<_> = pages.iter().map(|page| page.file.clone()).collect();
        assert_eq!(made, wanted);
        assert_eq!(pages.len(), made.len(), "one page each");
        assert_eq!(pages[0].file, "angelia.1");
        assert!(pages[0].text.contains("EXIT STATUS"), "{}", pages[0].text);
        for page in &pages {
            let above = page
                .text
                .split_once("SEE ALSO")
                .and_then(|(_, it)| it.split("\\fB").nth(1)?.split_once("\\fR"));
            let above = above.map(|(name, _)| format!("{}.1", name.replace('\\', "")));
            assert!(above.is_none_or(|file| made.contains(&file)), "{}: {}", page.file, page.text);
            assert_eq!(page.text.contains("SEE ALSO"), page.file != "angelia.1");
            let teaches =
                ["SUBCOMMANDS", "EXAMPLES"].iter().any(|it| page.text.contains(&format!(".SH {it}")));
            assert!(teaches, "{}: {}", page.file, page.text);
        }
    }

    #[test]
    fn a_directory_gets_the_pages_and_a_file_in_its_place_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("share/man1");
        man(Some(&into)).unwrap();
        assert!(
            std::fs::read_to_string(into.join("angelia-gateway-create.1"))
                .unwrap()
                .contains("gateway create")
        );
        let error = man(Some(&into.join("angelia.1"))).unwrap_err().to_string();
        assert!(error.contains("angelia.1"), "{error}");
    }

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "angelia", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(["gateway", "completions", "json"].iter().all(|word| script.contains(word)), "{shell}");
        }
    }
}
