//! `--config FILE`: a TOML file with the names of the long options. What is on the command line wins.
//!
//! The file is turned into words that stand in front of the others' place on the command line, so that one parser checks
//! both and every message speaks of the same options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::Value;

use crate::error::CliError;

/// The words of the command line with those of the `--config` file, if there is one, behind the command's name.
pub(crate) fn with_config(words: Vec<OsString>) -> Result<Vec<OsString>, CliError> {
    let Some(file) = config_of(&words) else { return Ok(words) };
    let text = std::fs::read_to_string(&file)
        .map_err(|error| CliError::failure(format!("cannot read {}: {error}", file.display())))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        CliError::usage(format!("{}: {}", file.display(), error.message()))
    })?;
    let mut extended: Vec<OsString> = words.iter().take(2).cloned().collect();
    for (name, value) in &table {
        let option = format!("--{name}");
        if is_given(&words, &option) {
            continue;
        }
        append(&mut extended, &option, value).map_err(|what| {
            CliError::usage(format!("{}: the value of `{name}` is {what}", file.display()))
        })?;
    }
    extended.extend(words.into_iter().skip(2));
    Ok(extended)
}

fn config_of(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter().map_while(|word| word.to_str()).take_while(|&word| word != "--");
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(file) = word.strip_prefix("--config=") {
            return Some(Path::new(file).to_path_buf());
        }
    }
    None
}

fn is_given(words: &[OsString], option: &str) -> bool {
    words
        .iter()
        .filter_map(|word| word.to_str())
        .any(|word| word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')))
}

fn append(words: &mut Vec<OsString>, option: &str, value: &Value) -> Result<(), &'static str> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(true) => {
            words.push(option.into());
            return Ok(());
        }
        Value::Boolean(false) => return Ok(()),
        Value::Array(values) => return values.iter().try_for_each(|value| append(words, option, value)),
        Value::Datetime(_) => return Err("a date"),
        Value::Table(_) => return Err("a table"),
    };
    words.push(format!("{option}={text}").into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(toml: &str, words: &[&str]) -> Result<Vec<String>, CliError> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ctcp.toml");
        std::fs::write(&file, toml).expect("a file");
        let config = format!("--config={}", file.display());
        let words = words.iter().map(OsString::from).chain([OsString::from(&config)]).collect();
        let extended = with_config(words)?;
        Ok(extended
            .into_iter()
            .filter_map(|word| word.into_string().ok())
            .filter(|word| *word != config)
            .collect())
    }

    #[test]
    fn the_file_gives_options_and_the_command_line_wins() {
        let toml = "socks = '127.0.0.1:1'\nforward = ['a=b', 'c=d']\nquiet = true\nverbose = false";
        let words = extended(toml, &["ctcp", "client", "--socks", "127.0.0.1:2"]).expect("valid");
        assert_eq!(
            words,
            ["ctcp", "client", "--forward=a=b", "--forward=c=d", "--quiet", "--socks", "127.0.0.1:2"]
        );
    }

    #[test]
    fn what_is_no_option_value_is_refused() {
        assert!(matches!(extended("[socks]\na = 1", &["ctcp", "client"]), Err(CliError::Usage(_))));
        assert!(matches!(extended("socks = ", &["ctcp", "client"]), Err(CliError::Usage(_))));
    }
}
