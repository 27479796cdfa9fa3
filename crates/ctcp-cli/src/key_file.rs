//! Private keys in files: one line of base64, readable by the owner only.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use ctcp::SecretKey;
use tracing::{info, warn};

use crate::error::CliError;

/// A key file is one line; more is something else.
const FILE_SIZE_MAX: u64 = 4096;

/// Reads a private key.
pub(crate) fn read(file: &Path) -> Result<SecretKey, CliError> {
    let name = file.display();
    let metadata = std::fs::metadata(file)
        .map_err(|error| CliError::failure(format!("cannot read the key {name}: {error}")))?;
    if !metadata.is_file() || metadata.len() > FILE_SIZE_MAX {
        return Err(CliError::failure(format!(
            "{name} is no key file: make one with `ctcp keygen --out FILE`"
        )));
    }
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::failure(format!("cannot read the key {name}: {error}")))?;
    text.trim().parse().map_err(|_| {
        CliError::failure(format!("{name} holds no private key: make one with `ctcp keygen --out FILE`"))
    })
}

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A new key is as good as any, and is printed for the clients.
    Server,
    /// A new key is one that no server knows yet.
    Client,
}

/// Reads a private key, or makes one in a file that does not exist and says so: the name may be a mistake.
pub(crate) fn read_or_make(file: &Path, role: Role) -> Result<SecretKey, CliError> {
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let key = make(file)?;
            let (name, public) = (file.display(), key.public_key());
            match role {
                Role::Server => info!("{name} did not exist: made a new key there"),
                Role::Client => warn!(
                    "{name} did not exist: made a new key there, which the server must let in with --client {public}"
                ),
            }
            Ok(key)
        }
        _ => read(file),
    }
}

/// Makes a private key in a new file with mode 0600. An existing file is never overwritten.
pub(crate) fn make(file: &Path) -> Result<SecretKey, CliError> {
    let key = generate()?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(file).and_then(|mut handle| {
        writeln!(handle, "{}", key.to_base64()).and_then(|()| handle.sync_all()).inspect_err(|_| {
            // Half a key is worse than none.
            let _ = std::fs::remove_file(file);
        })
    });
    match written {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(CliError::failure(format!("{} exists already: keys are not overwritten", file.display())))
        }
        Err(error) => Err(CliError::failure(format!("cannot write the key {}: {error}", file.display()))),
    }
}

/// A new private key.
pub(crate) fn generate() -> Result<SecretKey, CliError> {
    ctcp::generate_key().map_err(|error| CliError::failure(format!("the system gives no entropy: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_key_is_read_again_and_never_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.key");
        let made = read_or_make(&file, Role::Client).expect("a key");
        assert_eq!(read_or_make(&file, Role::Client).expect("a key").public_key(), made.public_key());
        assert!(make(&file).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("b.key");
        std::fs::write(&file, "no key").expect("a file");
        assert!(read(&file).is_err());
        assert!(read(directory.path()).is_err());
        assert!(read(&directory.path().join("missing")).is_err());
    }
}
