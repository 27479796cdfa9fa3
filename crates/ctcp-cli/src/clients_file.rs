//! The file of clients (`--clients FILE`): which clients may connect, and their names.
//!
//! ```text
//! # A comment.
//! NEhKOKEXb1gzO0dmvVzZcGGpgYgx2Mj7nSeuNIF2tGk=  anna's laptop
//! 5nSeuNIF2tGkNEhKOKEXb1gzO0dmvVzZcGGpgYgx2Mg=                  # no name, only a comment
//! ```
//!
//! Each line has a public key and optionally the client's name; text after `#` is a comment.

mod follow;

use std::collections::BTreeMap;

use ctcp::{ClientPolicy, Endpoint, PublicKey};
use ctcp_proxy::server::ReverseProxy;

pub(crate) use follow::{ClientList, Hangups};

/// The longest name in characters. The name is in every log line about its client and a label of its metrics.
const NAME_LENGTH_MAX: usize = 64;

/// Clients by key, with their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clients(BTreeMap<PublicKey, Option<String>>);

impl Clients {
    /// Clients without names.
    pub(crate) fn unnamed(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self(keys.into_iter().map(|key| (key, None)).collect())
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Returns the number of the first invalid line and what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut clients = Self::default();
        for (number, line) in text.lines().enumerate() {
            let words = line.split_once('#').map_or(line, |(before, _)| before).trim();
            if words.is_empty() {
                continue;
            }
            let (word, name) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
            let (key, name) = read_client(word, name.trim()).map_err(|what| (number + 1, what))?;
            clients.insert(key, name);
        }
        Ok(clients)
    }

    /// Adds the clients of another list. Its names apply to clients without a name in this one.
    pub(crate) fn with(mut self, others: &Self) -> Self {
        for (key, name) in &others.0 {
            self.insert(*key, name.clone());
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The policy that admits exactly these clients.
    pub(crate) fn policy(&self) -> ClientPolicy {
        ClientPolicy::Listed(self.0.keys().copied().collect())
    }

    /// Sets the clients' names in the endpoint and the proxy.
    pub(crate) fn name_in(&self, endpoint: &Endpoint, proxy: &ReverseProxy) {
        endpoint.set_client_names(self.names());
        proxy.clients().set_names(self.names().map(|(key, name)| (key.to_string(), name)));
    }

    /// The clients that have names.
    fn names(&self) -> impl Iterator<Item = (PublicKey, String)> {
        self.0.iter().filter_map(|(key, name)| Some((*key, name.clone()?)))
    }

    /// The names of the clients that are in this list and not in `other`.
    fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = String> {
        let missing = self.0.iter().filter(|(key, _)| !other.0.contains_key(*key));
        missing.map(|(key, name)| name.clone().unwrap_or_else(|| key.short()))
    }

    /// Adds a client. If a key occurs twice, its first name is used.
    fn insert(&mut self, key: PublicKey, name: Option<String>) {
        let present = self.0.entry(key).or_default();
        *present = present.take().or(name);
    }
}

fn read_client(word: &str, name: &str) -> Result<(PublicKey, Option<String>), String> {
    let key = word.parse().map_err(|_| format!("`{}` is not a public key", word.escape_debug()))?;
    if name.chars().count() > NAME_LENGTH_MAX {
        return Err(format!("the name of a client has at most {NAME_LENGTH_MAX} characters"));
    }
    if name.chars().any(char::is_control) {
        return Err("the name of a client has no control characters".to_owned());
    }
    Ok((key, (!name.is_empty()).then(|| name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey([byte; 32])
    }

    #[test]
    fn a_line_has_a_key_and_an_optional_name_and_comment() {
        let (one, two, three) = (key(1), key(2), key(3));
        let text =
            format!("# laptops\n\n{one} anna's laptop  # since May\n  {two}\n{two}\tberta\n{three}# none\n");
        let clients = Clients::parse(&text).expect("a good file");
        let names: Vec<_> = clients.names().collect();
        assert_eq!(names, [(one, "anna's laptop".to_owned()), (two, "berta".to_owned())]);
        let ClientPolicy::Listed(keys) = clients.policy() else { panic!("not a list") };
        assert_eq!(keys, [one, two, three].into());
        assert!(Clients::unnamed([one]).with(&clients).names().any(|(_, name)| name == "anna's laptop"));
    }

    #[test]
    fn an_invalid_line_is_reported_by_its_number() {
        let good = key(1);
        for (line, wanted) in [
            ("anna", "`anna` is not a public key"),
            ("\u{1b}[2J", "`\\u{1b}[2J` is not a public key"),
            (&format!("{good} {}", "x".repeat(65)), "at most 64 characters"),
            (&format!("{good} a\u{1b}[2Jb"), "no control characters"),
        ] {
            let (number, what) = Clients::parse(&format!("{good}\n\n{line}\n")).expect_err(line);
            assert_eq!(number, 3);
            assert!(what.contains(wanted), "{what}");
        }
    }
}
