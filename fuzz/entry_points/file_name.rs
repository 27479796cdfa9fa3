//! Names of files and of targets: accepted names cannot lead out of a directory.

use std::path::{Component, Path};

use ctcp_proxy::address::TargetAddress;
use ctcp_proxy::files::FileName;

pub fn run(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(name) = text.parse::<FileName>() {
        let mut components = Path::new(name.as_str()).components();
        assert!(components.all(|component| matches!(component, Component::Normal(_))), "{name:?}");
        assert!(!name.as_str().contains(['\0', '\\']), "{name:?}");
        let (directories, leaf) = name.split();
        let joined: Vec<&str> = directories.chain([leaf]).collect();
        assert_eq!(joined.join("/"), name.as_str());
    }
    if let Ok(target) = text.parse::<TargetAddress>() {
        assert_eq!(target.to_string().parse(), Ok(target));
    }
}
