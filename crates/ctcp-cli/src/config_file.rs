//! Options from a TOML file, under the names of the long options, and from the environment.
//!
//! ```text
//!  --config FILE, else CTCP_CONFIG, else for client commands ~/.config/ctcp/client.toml if it exists
//!     |
//!     v  option of this command            --> a word before those of the command line, unless the command line
//!                                              or the environment has the option
//!        option of another command          -> ignored: one file serves all commands
//!        unknown option, table, wrong value -> FILE:LINE:COLUMN: the error
//! ```
//!
//! The file is converted to words of the command line, so one parser checks everything, and all messages name the same
//! options. A relative path in the file is relative to the file's folder.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::args::Cli;
use crate::error::CliError;

/// The largest count of a flag in a file, more than any flag needs.
const TIMES_MAX: i64 = 9;

/// The variable that names the file if the command line does not.
const VARIABLE: &str = "CTCP_CONFIG";

/// The hint for users who left out a required option.
const WHERE_ELSE: &str =
    "options can also be in a file (see --config) or in the environment (CTCP_SERVER for --server)";

/// Long options that only apply to the command line itself.
const NEVER_IN_A_FILE: [&str; 3] = ["config", "help", "version"];

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The words to parse, and the origin of options that are not from the command line.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) words: Vec<OsString>,
    /// Whether the command takes options from a file.
    takes_file: bool,
    origins: Vec<Origin>,
}

/// An option with its value and origin.
#[derive(Debug)]
struct Origin {
    /// In the form `--name`.
    option: String,
    /// `None` stands for any value.
    value: Option<String>,
    place: String,
}

/// Returns the words of the command line with those of the file, if there is one, inserted after the command's name.
pub(crate) fn with_config(words: Vec<OsString>, environment: Environment<'_>) -> Result<Words, CliError> {
    let commands = Cli::command();
    let command = words.get(1).and_then(|name| commands.find_subcommand(name));
    let Some(command) = command.filter(|it| has_option(it, "config") && !asks_for_help(&words)) else {
        return Ok(Words { words, takes_file: false, origins: Vec::new() });
    };
    let mut origins = of_environment(command, &words, environment);
    let Some(file) = ConfigFile::find(command, &words, environment)? else {
        return Ok(Words { words, takes_file: true, origins });
    };
    let table = DeTable::parse(&file.text).map_err(|error| {
        let place = file.place(error.span().map_or(0, |span| span.start));
        CliError::usage(format!("{place}: {}", error.message()))
    })?;
    let mut extended: Vec<OsString> = words.iter().take(2).cloned().collect();
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        let place = file.place(key.span().start);
        if NEVER_IN_A_FILE.contains(&name) {
            return Err(CliError::usage(format!("{place}: `{name}` belongs on the command line")));
        }
        if matches!(value.get_ref(), DeValue::Table(_)) {
            let place = file.place(value.span().start);
            let what = "write keys without [sections], all at the top level of the file";
            return Err(CliError::usage(format!("{place}: `{name}` is a table: {what}")));
        }
        let Some(argument) = command.get_arguments().find(|it| it.get_long() == Some(name)) else {
            check_other(&commands, name).map_err(|what| CliError::usage(format!("{place}: {what}")))?;
            continue;
        };
        let option = Named { option: format!("--{name}"), argument };
        if is_given(&words, &option) || argument.get_env().is_some_and(|it| has(environment, it)) {
            continue;
        }
        file.append(&mut extended, &mut origins, &option, value)?;
    }
    extended.extend(words.into_iter().skip(2));
    Ok(Words { words: extended, takes_file: true, origins })
}

impl Words {
    /// Converts the parser's error; adds the origin if the error is about an option that is not from the command line.
    pub(crate) fn explain(&self, mut error: clap::Error) -> CliError {
        if self.takes_file && error.kind() == ErrorKind::MissingRequiredArgument {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![WHERE_ELSE.into()]));
        }
        let context = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let argument = context(ContextKind::InvalidArg).unwrap_or_default();
        let name = argument.split([' ', '=']).next().unwrap_or_default();
        let value = context(ContextKind::InvalidValue);
        let mut origins = self.origins.iter().filter(|origin| origin.option == name);
        let origin = origins.find(|it| it.value.is_none() || value.is_none() || it.value.as_deref() == value);
        let Some(Origin { place, .. }) = origin else { return CliError::Arguments(error) };
        let text = error.to_string();
        let text = text.split("\n\nUsage").next().unwrap_or_default();
        let text = text.split("\n\nFor more").next().unwrap_or_default();
        // Tips about passing values apply to the command line only.
        let is_about_files = |line: &&str| !line.is_empty() && !line.starts_with("tip: to pass ");
        let parts: Vec<&str> = text.lines().map(str::trim).filter(is_about_files).collect();
        let text = parts.join("; ");
        CliError::usage(format!("{place}: {}", text.strip_prefix("error: ").unwrap_or(&text)))
    }
}

/// An option of the file that belongs to this command.
struct Named<'a> {
    /// In the form `--name`.
    option: String,
    argument: &'a Arg,
}

impl Named<'_> {
    fn is_flag(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::Count | ArgAction::SetTrue)
    }

    fn counts(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::Count)
    }

    fn is_path(&self) -> bool {
        self.argument.get_value_parser().type_id() == TypeId::of::<PathBuf>()
    }
}

/// A file of options.
struct ConfigFile {
    path: PathBuf,
    text: String,
}

impl ConfigFile {
    /// Finds the file that this command reads, if any.
    fn find(
        command: &Command,
        words: &[OsString],
        environment: Environment<'_>,
    ) -> Result<Option<Self>, CliError> {
        let named =
            config_of(words).or_else(|| environment(VARIABLE).filter(|it| !it.is_empty()).map(PathBuf::from));
        // A server has no default file, because it shares no options with other commands.
        let usual = || has_option(command, "server").then(|| client_file(environment)).flatten();
        let is_named = named.is_some();
        let Some(path) = named.or_else(usual) else { return Ok(None) };
        match std::fs::read(&path).map(String::from_utf8) {
            Ok(Ok(text)) => Ok(Some(Self { path, text })),
            Ok(Err(error)) => {
                let at = error.utf8_error().valid_up_to();
                let line = 1 + error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
                let text = format!("{}:{line}: this is not a text file in UTF-8", path.display());
                Err(CliError::usage(text))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => Ok(None),
            Err(error) => Err(CliError::failure(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// `FILE:LINE:COLUMN` of a byte.
    fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().map_or(0, |line| line.chars().count());
        format!("{}:{line}:{column}", self.path.display())
    }

    /// Appends the option's words and records their origin.
    fn append(
        &self,
        words: &mut Vec<OsString>,
        origins: &mut Vec<Origin>,
        option: &Named<'_>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), CliError> {
        let place = self.place(value.span().start);
        let wrong = |wanted: &str| {
            let name = option.option.trim_start_matches('-');
            CliError::usage(format!("{place}: `{name}` must be {wanted}"))
        };
        let flag = option.option.clone();
        let times = match value.get_ref() {
            DeValue::Boolean(is_on) if option.is_flag() => i64::from(*is_on),
            DeValue::Integer(times) if option.counts() => {
                let times = times.as_str().parse().ok().filter(|times| (0..=TIMES_MAX).contains(times));
                times.ok_or_else(|| wrong("true, false or a number of times (0 to 9)"))?
            }
            _ if option.counts() => return Err(wrong("true, false or a number of times (0 to 9)")),
            _ if option.is_flag() => return Err(wrong("true or false")),
            DeValue::Array(values) => {
                return values.iter().try_for_each(|value| self.append(words, origins, option, value));
            }
            value => {
                let value = plain(value).ok_or_else(|| wrong("a string, a number or a list of them"))?;
                let value = if option.is_path() { self.beside(value) } else { value.into() };
                origins.push(Origin { option: flag, value: value.to_str().map(str::to_owned), place });
                let mut word = OsString::from(format!("{}=", option.option));
                word.push(value);
                words.push(word);
                return Ok(());
            }
        };
        origins.push(Origin { option: flag.clone(), value: None, place });
        words.extend((0..times).map(|_| OsString::from(&flag)));
        Ok(())
    }

    /// Resolves a path in the file: relative to the file's folder, or with `~/` to the home folder.
    fn beside(&self, path: &str) -> OsString {
        let home = path.strip_prefix("~/").and_then(|rest| std::env::home_dir().map(|home| home.join(rest)));
        let folder = self.path.parent().unwrap_or_else(|| Path::new(""));
        home.unwrap_or_else(|| folder.join(path)).into_os_string()
    }
}

/// Returns one value as it would be written on the command line.
fn plain<'a>(value: &'a DeValue<'_>) -> Option<&'a str> {
    match value {
        DeValue::String(text) => Some(text),
        DeValue::Integer(number) => Some(number.as_str()),
        DeValue::Float(number) => Some(number.as_str()),
        DeValue::Array(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

/// The default file of the client commands.
fn client_file(environment: Environment<'_>) -> Option<PathBuf> {
    let folder = |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = if cfg!(windows) {
        folder("APPDATA")
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))
    };
    folder.map(|folder| folder.join("ctcp").join("client.toml"))
}

/// The options that the environment sets, for messages about them.
fn of_environment(command: &Command, words: &[OsString], environment: Environment<'_>) -> Vec<Origin> {
    let origin = |argument: &Arg| {
        let (name, variable) = (argument.get_long()?, argument.get_env()?);
        let option = Named { option: format!("--{name}"), argument };
        let is_used = has(environment, variable) && !is_given(words, &option);
        let place = variable.to_string_lossy().into_owned();
        is_used.then_some(Origin { option: option.option, value: None, place })
    };
    command.get_arguments().filter_map(origin).collect()
}

fn has(environment: Environment<'_>, variable: &OsStr) -> bool {
    variable.to_str().is_some_and(|name| environment(name).is_some())
}

fn has_option(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(name))
}

/// Checks that a key unknown to this command belongs to another one; the error suggests the nearest known key.
fn check_other(commands: &Command, name: &str) -> Result<(), String> {
    let with_file = || commands.get_subcommands().filter(|other| has_option(other, "config"));
    if with_file().any(|other| has_option(other, name)) {
        return Ok(());
    }
    let nearest = with_file().find_map(|other| nearest(other, name));
    let nearest = nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default();
    Err(format!("there is no key `{name}`{nearest}"))
}

/// The option of the command whose name is most similar, if any; the parser suggests it.
fn nearest(command: &Command, name: &str) -> Option<String> {
    let words = [command.get_name().to_owned(), format!("--{name}")];
    let error = command.clone().try_get_matches_from(words).err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(option) => Some(option.trim_start_matches('-').to_owned()),
        _ => None,
    }
}

/// Help is shown even if the file is invalid.
fn asks_for_help(words: &[OsString]) -> bool {
    options(words).any(|word| word == "--help" || word == "-h")
}

/// The words before `--` that are valid text.
fn options(words: &[OsString]) -> impl Iterator<Item = &str> {
    words.iter().filter_map(|word| word.to_str()).take_while(|&word| word != "--")
}

fn config_of(words: &[OsString]) -> Option<PathBuf> {
    let mut words = options(words);
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

/// Returns true if the command line has the option, in its long or short form.
fn is_given(words: &[OsString], named: &Named<'_>) -> bool {
    let (option, short, is_flag) = (&named.option, named.argument.get_short(), named.is_flag());
    options(words).any(|word| {
        let is_long =
            word == option || word.strip_prefix(option.as_str()).is_some_and(|rest| rest.starts_with('='));
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let is_short = short.zip(cluster).is_some_and(|(short, cluster)| {
            cluster.starts_with(short)
                || is_flag && cluster.contains(short) && cluster.chars().all(char::is_alphabetic)
        });
        is_long || is_short
    })
}

#[cfg(test)]
mod tests;
