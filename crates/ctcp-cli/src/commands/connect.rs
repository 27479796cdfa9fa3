//! `ctcp connect`.

use crate::args::ConnectArgs;
use crate::error::CliError;

/// In the making.
pub(crate) async fn run(args: &ConnectArgs) -> Result<(), CliError> {
    Err(CliError::failure(format!("not built yet: {args:?}")))
}
