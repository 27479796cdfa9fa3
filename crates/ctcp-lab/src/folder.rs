//! The folder of the results. A file under its final name is always complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ctcp_cli::error::CliError;

/// A folder that is writable.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates the folder if necessary and tests writing, so that a long computation does not fail at its end.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let folder = Self { path: path.to_owned() };
        fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))?;
        let probe = folder.temporary("probe");
        File::create(&probe)
            .and_then(|_| fs::remove_file(&probe))
            .map_err(|error| cannot_write(path, &error))?;
        Ok(folder)
    }

    /// Writes a file under a temporary name and renames it once it is on the disk.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, CliError> {
        self.write_together(&[(name, text)])?;
        Ok(self.path.join(name))
    }

    /// Writes the files of one result, as names and texts. They are renamed only after all are on the disk.
    pub(crate) fn write_together(&self, files: &[(&str, &str)]) -> Result<(), CliError> {
        let written = files.iter().try_for_each(|(name, text)| {
            write_all(&self.temporary(name), text)
                .map_err(|error| cannot_write(&self.path.join(name), &error))
        });
        let renamed = written.and_then(|()| {
            files.iter().try_for_each(|(name, _)| {
                let file = self.path.join(name);
                fs::rename(self.temporary(name), &file).map_err(|error| cannot_write(&file, &error))
            })
        });
        if renamed.is_err() {
            // Incomplete files are of no use, and only the first error matters.
            for (name, _) in files {
                let _ = fs::remove_file(self.temporary(name));
            }
        }
        renamed
    }

    /// Removes a file, if it exists.
    pub(crate) fn remove(&self, name: &str) -> Result<(), CliError> {
        let file = self.path.join(name);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(&file, &error)),
            _ => Ok(()),
        }
    }

    /// Prints the folder of the results, with `--json` to standard error.
    #[expect(clippy::print_stdout, clippy::print_stderr, reason = "the folder is part of the output")]
    pub(crate) fn say(&self, is_json: bool) {
        let said = format!("The files are in {}", self.path.display());
        if is_json {
            eprintln!("{said}");
        } else {
            println!("{said}");
        }
    }

    /// A hidden name that is unique to this process.
    fn temporary(&self, name: &str) -> PathBuf {
        self.path.join(format!(".{name}.{}.part", std::process::id()))
    }
}

fn write_all(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    CliError::failure(format!("cannot write {}: {error}; choose another folder with --out", path.display()))
}
