//! The text files of the repository, read once.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

use super::rust::RustSource;

/// A text file, its path relative to the root and with `/` between the parts.
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The file parsed as Rust, if it is a Rust file.
    pub(crate) rust: Option<RustSource>,
}

/// Everything that git tracks or would add.
pub(crate) struct Tree {
    pub(crate) files: Vec<TextFile>,
    /// All paths, binary files included.
    pub(crate) paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the files that git tracks or would add; without git, everything except build products.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut paths = match listed_by_git(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        // git also lists files that are deleted in the work tree.
        paths.retain(|path| root.join(path).is_file());
        let mut files = Vec::new();
        for path in &paths {
            if let Ok(text) = String::from_utf8(std::fs::read(root.join(path))?) {
                files.push(TextFile::new(path.clone(), text));
            }
        }
        Ok(Self { files, paths })
    }

    /// A tree of the given paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self {
            files: files.iter().map(|(path, text)| TextFile::new((*path).into(), (*text).into())).collect(),
            paths: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
        }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns true if `path` is a file, or a folder that contains a file.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.paths.contains(path) || self.paths.iter().any(|known| known.starts_with(&folder))
    }

    pub(crate) fn with_extension<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a TextFile> {
        self.files
            .iter()
            .filter(move |file| Path::new(&file.path).extension().is_some_and(|found| found == extension))
    }

    /// Every Rust file with its analysis.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&TextFile, &RustSource)> {
        self.files.iter().filter_map(|file| file.rust.as_ref().map(|rust| (file, rust)))
    }
}

impl TextFile {
    fn new(path: String, text: String) -> Self {
        let rust = path.ends_with(".rs").then(|| RustSource::new(&path, &text));
        Self { path, text, rust }
    }

    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn listed_by_git(root: &Path) -> Option<BTreeSet<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let paths: BTreeSet<String> = text.split('\0').filter(|path| !path.is_empty()).map(Into::into).collect();
    (!paths.is_empty()).then_some(paths)
}

fn walked(root: &Path) -> io::Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}{name}");
            if entry.file_type()?.is_dir() {
                if !["target", "artifacts", ".git"].contains(&name.as_str()) {
                    folders.push(format!("{path}/"));
                }
            } else {
                paths.insert(path);
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_and_a_plain_walk_find_this_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = "xtask/src/source/tree.rs";
        assert!(Tree::read(&root).expect("a readable tree").file(path).is_some());
        assert!(walked(&root).expect("a readable tree").contains(path));
    }

    #[test]
    fn a_folder_exists_if_it_contains_a_file() {
        let tree = Tree::of(&[("docs/papers/ctcp.md", "")]);
        assert!(tree.has("docs/papers") && tree.has("docs/papers/") && tree.has("docs/papers/ctcp.md"));
        assert!(!tree.has("docs/pap"));
    }
}
