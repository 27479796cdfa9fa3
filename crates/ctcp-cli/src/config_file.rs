//! `--config FILE`: a TOML file with the names of the long options. What is on the command line wins.
//!
//! The file is turned into words that stand in front of the others' place on the command line, so that one parser checks
//! both and every message speaks of the same options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, CommandFactory};
use toml::Value;

use crate::args::Cli;
use crate::error::CliError;

/// Most times a flag can be said in a file: more than any flag counts.
const TIMES_MAX: i64 = 9;

/// The words to be parsed, and which of them came from a file.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) words: Vec<OsString>,
    source: Option<Source>,
}

/// A file and the options it gave, as `--name`.
#[derive(Debug)]
struct Source {
    file: PathBuf,
    options: Vec<String>,
}

/// The words of the command line with those of the `--config` file, if there is one, behind the command's name.
pub(crate) fn with_config(words: Vec<OsString>) -> Result<Words, CliError> {
    let Some(file) = config_of(&words) else { return Ok(Words { words, source: None }) };
    let text = std::fs::read_to_string(&file)
        .map_err(|error| CliError::failure(format!("cannot read {}: {error}", file.display())))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        CliError::usage(format!("{}:{line}: {}", file.display(), error.message()))
    })?;
    let command = Cli::command();
    let command = words.get(1).and_then(|name| command.find_subcommand(name));
    let mut extended: Vec<OsString> = words.iter().take(2).cloned().collect();
    let mut options = Vec::new();
    for (name, value) in &table {
        let option = format!("--{name}");
        let argument = command.and_then(|it| it.get_arguments().find(|it| it.get_long() == Some(name)));
        if is_given(&words, &option, argument) {
            continue;
        }
        append(&mut extended, &option, argument, value)
            .map_err(|wanted| CliError::usage(format!("{}: `{name}` must be {wanted}", file.display())))?;
        options.push(option);
    }
    extended.extend(words.into_iter().skip(2));
    Ok(Words { words: extended, source: Some(Source { file, options }) })
}

impl Words {
    /// What the parser found, with the file's name if it is about one of the file's options.
    pub(crate) fn explain(&self, error: clap::Error) -> CliError {
        let Some(Source { file, options }) = &self.source else { return CliError::Arguments(error) };
        let is_of_file = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(argument)) => {
                let name = argument.split([' ', '=']).next().unwrap_or_default();
                options.iter().any(|option| option == name)
            }
            _ => false,
        };
        if !is_of_file {
            return CliError::Arguments(error);
        }
        let text = error.to_string();
        let text = text.split("\n\nUsage").next().unwrap_or_default();
        let text = text.split("\n\nFor more").next().unwrap_or_default();
        // How to pass it as a value is a matter of the command line.
        let is_about_files = |line: &&str| !line.is_empty() && !line.starts_with("tip: to pass ");
        let parts: Vec<&str> = text.lines().map(str::trim).filter(is_about_files).collect();
        let text = parts.join("; ");
        CliError::usage(format!("{}: {}", file.display(), text.strip_prefix("error: ").unwrap_or(&text)))
    }
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

/// Whether the command line has the option, in its long or short form.
fn is_given(words: &[OsString], option: &str, argument: Option<&Arg>) -> bool {
    let short = argument.and_then(Arg::get_short);
    let is_flag = argument.is_some_and(is_flag);
    words.iter().filter_map(|word| word.to_str()).any(|word| {
        let is_long = word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let is_short = short.zip(cluster).is_some_and(|(short, cluster)| {
            cluster.starts_with(short)
                || is_flag && cluster.contains(short) && cluster.chars().all(char::is_alphabetic)
        });
        is_long || is_short
    })
}

fn is_flag(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Count | ArgAction::SetTrue)
}

/// Appends the option's words; the error says what its value must be.
fn append(
    words: &mut Vec<OsString>,
    option: &str,
    argument: Option<&Arg>,
    value: &Value,
) -> Result<(), &'static str> {
    let counts = argument.is_some_and(|argument| matches!(argument.get_action(), ArgAction::Count));
    let times = match value {
        Value::Boolean(is_on) if argument.is_none_or(is_flag) => i64::from(*is_on),
        Value::Integer(times) if counts && (0..=TIMES_MAX).contains(times) => *times,
        _ if counts => return Err("true, false or how many times it is said (0 to 9)"),
        _ if argument.is_some_and(is_flag) => return Err("true or false"),
        Value::Array(values) => {
            return values.iter().try_for_each(|value| append(words, option, argument, value));
        }
        _ => {
            words.push(format!("{option}={}", plain(value)?).into());
            return Ok(());
        }
    };
    words.extend((0..times).map(|_| option.into()));
    Ok(())
}

/// One value as it would stand on the command line.
fn plain(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Array(_) | Value::Boolean(_) | Value::Datetime(_) | Value::Table(_) => {
            Err("a string, a number or a list of them")
        }
    }
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
        Ok(with_config(words)?
            .words
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

    #[test]
    fn a_flag_is_said_as_often_as_the_file_says_and_the_short_form_on_the_command_line_wins() {
        assert_eq!(
            extended("verbose = 2", &["ctcp", "client"]).expect("valid"),
            ["ctcp", "client", "--verbose", "--verbose"]
        );
        assert_eq!(
            extended("verbose = true", &["ctcp", "get"]).expect("valid"),
            ["ctcp", "get", "--verbose"]
        );
        for word in ["-v", "-vv", "-qv", "--verbose"] {
            let words = ["ctcp", "client", word];
            assert_eq!(extended("verbose = 2", &words).expect("valid"), words);
        }
        let words = ["ctcp", "get", "-oresult"];
        assert_eq!(extended("output = 'other'", &words).expect("valid"), words);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_refused_with_what_it_must_be() {
        for (toml, wanted) in [
            ("verbose = 'much'", "`verbose` must be true, false or how many times"),
            ("verbose = -1", "`verbose` must be true, false or how many times"),
            ("quiet = 1", "`quiet` must be true or false"),
            ("socks = true", "`socks` must be a string"),
            ("forward = ['a=b', true]", "`forward` must be a string"),
        ] {
            let Err(CliError::Usage(said)) = extended(toml, &["ctcp", "client"]) else { panic!("{toml}") };
            assert!(said.contains(wanted) && said.contains("ctcp.toml: "), "{said}");
        }
        let Err(CliError::Usage(said)) = extended("quiet = true\nsocks = ", &["ctcp", "client"]) else {
            panic!("no TOML")
        };
        assert!(said.contains("ctcp.toml:2: "), "{said}");
    }

    #[test]
    fn what_is_wrong_with_an_option_of_the_file_names_the_file_and_nothing_else_does() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ctcp.toml");
        let explained = |toml: &str, words: &[&str]| {
            std::fs::write(&file, toml).expect("a file");
            let config = format!("--config={}", file.display());
            let words = ["ctcp", "client"].iter().chain(words).map(OsString::from);
            let words = with_config(words.chain([config.into()]).collect()).expect("TOML");
            let error = <Cli as clap::Parser>::try_parse_from(&words.words).expect_err("wrong");
            words.explain(error)
        };
        for (toml, wanted) in [
            ("nonsense = 'a:1'", "unexpected argument '--nonsense' found"),
            ("sockz = 'a:1'", "unexpected argument '--sockz'"),
            ("socks = '1080'", "invalid value '1080' for '--socks"),
        ] {
            let CliError::Usage(said) = explained(toml, &[]) else { panic!("{toml}") };
            assert!(said.starts_with(&format!("{}: {wanted}", file.display())), "{said}");
            assert!(!said.contains('\n') && !said.contains("-- --"), "{said}");
        }
        assert!(matches!(explained("socks = '127.0.0.1:1'", &["--htpp=a"]), CliError::Arguments(_)));
        assert!(matches!(explained("socks = '127.0.0.1:1'", &[]), CliError::Arguments(_)));
    }
}
