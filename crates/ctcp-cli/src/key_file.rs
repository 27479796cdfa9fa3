//! Private keys in files: one line of base64, readable by the owner only.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use ctcp::SecretKey;
use tracing::{info, warn};

use crate::error::CliError;

/// The maximum size of a key file, which has one line.
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

/// Refuses a key that all users can read, as ssh does, because they may have copied it. A key that its group can read
/// was probably given to a service by a container or service manager; this is only logged.
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

/// This system has no file modes.
#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<(), CliError> {
    Ok(())
}

/// Reads a client's private key. A missing key is not created, because the name may be a mistake and the server must
/// know the key.
pub(crate) fn read_of_client(file: &Path) -> Result<SecretKey, CliError> {
    if is_missing(file) {
        let name = file.display();
        return Err(CliError::failure(format!(
            "there is no key file {name}: make one with `ctcp keygen --out {name}`, and add its public key at the server (--client)"
        )));
    }
    read(file)
}

/// Reads a server's private key. A missing key is created and this is logged; its public half is printed for the
/// clients.
pub(crate) fn read_or_make(file: &Path) -> Result<SecretKey, CliError> {
    if is_missing(file) {
        let key = make(file)?;
        info!("{} did not exist: made a new key there", file.display());
        return Ok(key);
    }
    read(file)
}

/// Returns true if the name does not exist, not even as a link.
fn is_missing(file: &Path) -> bool {
    std::fs::symlink_metadata(file).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Creates a private key in a new file with mode 0600. An existing file is never overwritten.
pub(crate) fn make(file: &Path) -> Result<SecretKey, CliError> {
    let key = generate()?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(file).and_then(|mut handle| {
        writeln!(handle, "{}", key.to_base64()).and_then(|()| handle.sync_all()).inspect_err(|_| {
            // An incomplete key must not remain.
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

/// Generates a private key.
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
    fn a_key_that_all_users_can_read_is_refused_with_advice() {
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
    fn files_without_a_key_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("b.key");
        for content in [&b"no key"[..], b"\xff\xfe\x00", b""] {
            std::fs::write(&file, content).expect("a file");
            let Err(CliError::Failure(said)) = read(&file) else { panic!("the file holds no key") };
            assert!(said.contains("b.key does not contain a private key"), "{said}");
        }
        assert!(read(directory.path()).is_err());
        assert!(read(&directory.path().join("missing")).is_err());
    }
}
