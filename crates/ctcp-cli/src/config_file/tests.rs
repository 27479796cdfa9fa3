use clap::Parser;

use super::*;

/// A folder with a file, and an environment.
struct Setup {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, OsString)>,
}

impl Setup {
    fn new(toml: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::write(folder.path().join("ctcp.toml"), toml).expect("a file");
        Self { folder, variables: Vec::new() }
    }

    fn file(&self) -> String {
        self.folder.path().join("ctcp.toml").display().to_string()
    }

    fn read(&self, words: &[&str]) -> Result<Words, CliError> {
        let words = words.iter().map(OsString::from).collect();
        with_config(words, &|name| {
            self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        })
    }

    /// Adds `--config` with its file and returns the words without it.
    fn extended(&self, words: &[&str]) -> Result<Vec<String>, CliError> {
        let config = format!("--config={}", self.file());
        let words = self.read(&[words, &[&config]].concat())?.words;
        let words = words.into_iter().filter_map(|word| word.into_string().ok());
        Ok(words.filter(|word| *word != config).collect())
    }

    fn refused(&self, words: &[&str]) -> String {
        match self.extended(words) {
            Err(CliError::Usage(said)) => said.replace(&self.file(), "FILE"),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the parser's error, as `Ok` if it names the file.
    fn explained(&self, words: &[&str]) -> Result<String, String> {
        let config = format!("--config={}", self.file());
        let words = self.read(&[words, &[&config]].concat()).expect("TOML");
        match words.explain(Cli::try_parse_from(&words.words).expect_err("wrong")) {
            CliError::Usage(said) => Ok(said.replace(&self.file(), "FILE")),
            other => Err(format!("{other:?}")),
        }
    }
}

#[test]
fn the_file_gives_options_and_the_command_line_wins() {
    let toml = "socks = '127.0.0.1:1'\nforward = ['a=b', 'c=d']\nquiet = true\nverbose = false";
    let words = Setup::new(toml).extended(&["ctcp", "client", "--socks", "127.0.0.1:2"]).expect("valid");
    assert_eq!(
        words,
        ["ctcp", "client", "--forward=a=b", "--forward=c=d", "--quiet", "--socks", "127.0.0.1:2"]
    );
}

#[test]
fn one_file_serves_all_commands_and_each_takes_what_it_knows() {
    let toml = "server = 'a:1'\nsocks = '127.0.0.1:1'\nlisten = '0.0.0.0:1'\noutput = '/x'\njson = true\nprofile = 'tcp'";
    let setup = Setup::new(toml);
    for (command, taken) in [
        ("client", &["--profile=tcp", "--server=a:1", "--socks=127.0.0.1:1"][..]),
        ("connect", &["--profile=tcp", "--server=a:1"]),
        ("get", &["--json", "--output=/x", "--profile=tcp", "--server=a:1"]),
        ("put", &["--json", "--profile=tcp", "--server=a:1"]),
        ("server", &["--listen=0.0.0.0:1", "--profile=tcp"]),
    ] {
        assert_eq!(setup.extended(&["ctcp", command]).expect("valid"), [&["ctcp", command], taken].concat());
    }
    // A command without `--config` is not changed.
    assert_eq!(setup.extended(&["ctcp", "demo"]).expect("untouched"), ["ctcp", "demo"]);
}

#[test]
fn the_commands_of_a_client_find_their_file_and_a_server_does_not() {
    let mut setup = Setup::new("");
    let folder = setup.folder.path().join(".config/ctcp");
    std::fs::create_dir_all(&folder).expect("a directory");
    std::fs::write(folder.join("client.toml"), "profile = 'tcp'").expect("a file");
    let read = |setup: &Setup, command| setup.read(&["ctcp", command]).map(|words| words.words.len());
    assert_eq!(read(&setup, "get").expect("no home"), 2);
    setup.variables =
        vec![("HOME", setup.folder.path().into()), ("APPDATA", setup.folder.path().join(".config").into())];
    for (command, count) in [("client", 3), ("connect", 3), ("get", 3), ("put", 3), ("server", 2)] {
        assert_eq!(read(&setup, command).expect("valid"), count, "{command}");
    }
    if !cfg!(windows) {
        setup.variables.push(("XDG_CONFIG_HOME", setup.folder.path().join("none").into()));
        assert_eq!(read(&setup, "get").expect("not there"), 2);
        setup.variables.push(("CTCP_CONFIG", folder.join("client.toml").into()));
        assert_eq!(read(&setup, "server").expect("valid"), 3);
        let _ = setup.variables.pop();
        setup.variables.push(("CTCP_CONFIG", folder.join("other.toml").into()));
        assert!(matches!(read(&setup, "get"), Err(CliError::Failure(_))), "a named file must exist");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let mut setup = Setup::new("server = 'a:1'\nprofile = 'tcp'");
    setup.variables = vec![("CTCP_SERVER", "b:2".into())];
    assert_eq!(setup.extended(&["ctcp", "get"]).expect("valid"), ["ctcp", "get", "--profile=tcp"]);
}

#[test]
fn relative_paths_are_relative_to_the_folder_of_the_file() {
    let setup = Setup::new("key = 'keys/a.key'\nclients = '/etc/clients'\nprofile = 'tcp'\nfiles='~/shared'");
    let words = setup.extended(&["ctcp", "server"]).expect("valid");
    let key = setup.folder.path().join("keys/a.key");
    assert!(words.contains(&format!("--key={}", key.display())), "{words:?}");
    assert!(words.contains(&"--clients=/etc/clients".to_owned()), "{words:?}");
    assert!(words.contains(&"--profile=tcp".to_owned()), "{words:?}");
    if let Some(home) = std::env::home_dir() {
        assert!(words.contains(&format!("--files={}", home.join("shared").display())), "{words:?}");
    }
}

#[test]
fn a_flag_is_repeated_as_often_as_the_file_says_and_the_short_form_on_the_command_line_wins() {
    let setup = Setup::new("verbose = 2");
    assert_eq!(
        setup.extended(&["ctcp", "client"]).expect("valid"),
        ["ctcp", "client", "--verbose", "--verbose"]
    );
    for word in ["-v", "-vv", "-qv", "--verbose"] {
        let words = ["ctcp", "client", word];
        assert_eq!(setup.extended(&words).expect("valid"), words);
    }
    let once = Setup::new("verbose = true").extended(&["ctcp", "get"]);
    assert_eq!(once.expect("valid"), ["ctcp", "get", "--verbose"]);
    let words = ["ctcp", "get", "-oresult"];
    assert_eq!(Setup::new("output = 'other'").extended(&words).expect("valid"), words);
}

#[test]
fn errors_in_the_file_are_reported_with_line_and_column() {
    for (toml, wanted) in [
        ("verbose = 'much'", "FILE:1:11: `verbose` must be true, false or how many times"),
        ("verbose = -1", "FILE:1:11: `verbose` must be true, false or how many times"),
        ("\n quiet = 1", "FILE:2:10: `quiet` must be true or false"),
        ("socks = true", "FILE:1:9: `socks` must be a string"),
        ("forward = ['a=b',\n true]", "FILE:2:2: `forward` must be a string"),
        ("quiet = true\nsocks = ", "FILE:2:9: "),
        (
            "quiet = true\n[server]\nlisten = 'a:1'",
            "FILE:2:1: `server` is a table: write keys without [sections]",
        ),
        ("[clients]\nfile = 'x'", "FILE:1:1: `clients` is a table"),
        ("quiet = true\nsoks = 'a:1'", "FILE:2:1: there is no key `soks`; did you mean `socks`?"),
        ("lissten = 'a:1'", "FILE:1:1: there is no key `lissten`; did you mean `listen`?"),
        ("nonsense = 'a:1'", "FILE:1:1: there is no key `nonsense`"),
        ("config = 'x'", "FILE:1:1: `config` belongs on the command line"),
        ("help = true", "FILE:1:1: `help` belongs on the command line"),
    ] {
        let said = Setup::new(toml).refused(&["ctcp", "client"]);
        assert!(said.starts_with(wanted), "{toml}: {said}");
    }
}

#[test]
fn a_file_that_is_not_text_is_reported_with_its_line() {
    let setup = Setup::new("");
    let path = setup.folder.path().join("binary.toml");
    std::fs::write(&path, b"quiet = true\n\xff\x00").expect("a file");
    let words = ["ctcp", "client", "--config", path.to_str().expect("a path")];
    let Err(CliError::Usage(said)) = setup.read(&words) else { panic!("the file is not text") };
    assert!(said.contains("binary.toml:2: this is not a text file"), "{said}");
}

#[test]
fn tables_are_refused_although_the_command_line_has_the_option() {
    let said = Setup::new("[server]\nhost = 'a'").refused(&["ctcp", "client", "--server", "a:1"]);
    assert!(said.starts_with("FILE:1:1: `server` is a table"), "{said}");
}

#[test]
fn parser_errors_about_the_file_have_their_place_and_others_do_not() {
    for (toml, wanted) in [
        ("socks = '1080'", "FILE:1:9: invalid value '1080' for '--socks"),
        ("forward = ['1=a:1',\n'b']", "FILE:2:1: invalid value 'b' for '--forward"),
    ] {
        let said = Setup::new(toml).explained(&["ctcp", "client"]).expect("of the file");
        assert!(said.starts_with(wanted), "{said}");
        assert!(!said.contains('\n') && !said.contains("-- --"), "{said}");
    }
    let fine = Setup::new("socks = '127.0.0.1:1'");
    assert!(fine.explained(&["ctcp", "client", "--htpp=a"]).is_err());
    assert!(fine.explained(&["ctcp", "client"]).is_err());
}

#[test]
fn help_is_shown_even_if_the_file_is_invalid() {
    for word in ["--help", "-h"] {
        assert!(Setup::new("nonsense").extended(&["ctcp", "client", word]).is_ok());
    }
}
