//! A whole `angelia.toml`, as a target for a fuzzer.

use super::Config;
use super::load::Loader;
use std::path::Path;

/// The text of a file. What is taken can be printed, and when that is read again it is
/// printed the same. (It need not be equal: what was left open is printed as it is in force.)
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(config) = read(text) else { return };
    let _ = (config.warning(), config.check_exposure(false).is_ok());
    let printed = config.print();
    let again = read(&printed).unwrap_or_else(|| panic!("what is printed cannot be read:\n{printed}"));
    assert_eq!(again.print(), printed, "what is printed means something else");
}

fn read(text: &str) -> Option<Config> {
    let mut loader = Loader::default();
    loader.read_text(Path::new("angelia.toml"), text);
    loader.check_together();
    for fault in &loader.faults {
        assert!(!fault.to_string().is_empty());
    }
    loader.faults.is_empty().then_some(loader.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_configurations_is_survived() {
        angelia_corpus::replay("config", config);
    }
}
