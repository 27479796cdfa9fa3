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
            "{name} is not a key file: make one with `ctcp keygen --out FILE`"
        )));
    }
    let bytes = std::fs::read(file)
        .map_err(|error| CliError::failure(format!("cannot read the key {name}: {error}")))?;
    let key = str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
        CliError::failure(format!(
            "{name} does not contain a private key (one line of base64): make one with `ctcp keygen --out FILE`"
        ))
    })?;
    check_mode(file, &metadata)?;
    Ok(key)
}

/// Refuses a key that others than its owner can read, as ssh does: they may have it already. A key that its group can read
/// is one that somebody gave to a service, as containers and service managers do; that is only said.
#[cfg(unix)]
fn check_mode(file: &Path, metadata: &std::fs::Metadata) -> Result<(), CliError> {
    use std::os::unix::fs::MetadataExt;
    let (name, mode) = (file.display(), metadata.mode() & 0o777);
    let advice =
        format!("make it private with `chmod 600 {name}`, and make a new key if others use this machine");
    if mode & 0o007 != 0 {
        return Err(CliError::failure(format!(
            "any user of this machine can read or change the key {name} (mode {mode:03o}): {advice}"
        )));
    }
    if mode & 0o070 != 0 {
        warn!("the group of the key file {name} can read or change it (mode {mode:03o}): {advice}");
    }
    Ok(())
}

/// There are no modes here.
#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<(), CliError> {
    Ok(())
}

/// Reads a client's private key. A server must know it, so none is made here: the name may be a mistake.
pub(crate) fn read_of_client(file: &Path) -> Result<SecretKey, CliError> {
    if is_missing(file) {
        let name = file.display();
        return Err(CliError::failure(format!(
            "there is no key file {name}: make one with `ctcp keygen --out {name}`, and let its public key in at the server (--client)"
        )));
    }
    read(file)
}

/// Reads a server's private key, or makes one in a file that does not exist and says so. A new key is as good as any, and is
/// printed for the clients.
pub(crate) fn read_or_make(file: &Path) -> Result<SecretKey, CliError> {
    if is_missing(file) {
        let key = make(file)?;
        info!("{} did not exist: made a new key there", file.display());
        return Ok(key);
    }
    read(file)
}

/// Whether nothing has this name, not even a link.
fn is_missing(file: &Path) -> bool {
    std::fs::symlink_metadata(file).is_err_and(|error| error.kind() == ErrorKind::NotFound)
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
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(CliError::failure(format!(
            "{} exists already, and keys are not overwritten: choose another file",
            file.display()
        ))),
        Err(error) => Err(CliError::failure(format!("cannot write the key {}: {error}", file.display()))),
    }
}

/// A new private key.
pub(crate) fn generate() -> Result<SecretKey, CliError> {
    ctcp::generate_key()
        .map_err(|error| CliError::failure(format!("cannot get random bytes from the system: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_key_is_read_again_and_never_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.key");
        assert!(read_of_client(&file).is_err() && !file.exists());
        let made = read_or_make(&file).expect("a key");
        for read in [read_or_make(&file), read_of_client(&file), read(&file)] {
            assert_eq!(read.expect("a key").public_key(), made.public_key());
        }
        assert!(make(&file).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_everybody_can_read_is_refused_with_what_to_do() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.key");
        make(&file).expect("a key");
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o640, true), (0o644, false), (0o606, false)] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("it is ours");
            match read(&file) {
                Ok(_) => assert!(is_read, "{mode:o}"),
                Err(CliError::Failure(said)) => {
                    assert!(
                        !is_read && said.contains("chmod 600") && said.contains(&format!("{mode:o}")),
                        "{said}"
                    );
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("b.key");
        for content in [&b"no key"[..], b"\xff\xfe\x00", b""] {
            std::fs::write(&file, content).expect("a file");
            let Err(CliError::Failure(said)) = read(&file) else { panic!("it is none") };
            assert!(said.contains("b.key does not contain a private key"), "{said}");
        }
        assert!(read(directory.path()).is_err());
        assert!(read(&directory.path().join("missing")).is_err());
    }
}
