//! `ctcp get` and `ctcp put`.

use crate::args::{GetArgs, PutArgs};
use crate::error::CliError;

/// In the making.
pub(crate) async fn get(args: &GetArgs) -> Result<(), CliError> {
    Err(CliError::failure(format!("not built yet: {args:?}")))
}

/// In the making.
pub(crate) async fn put(args: &PutArgs) -> Result<(), CliError> {
    Err(CliError::failure(format!("not built yet: {args:?}")))
}
