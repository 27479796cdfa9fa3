//! `ctcp server`.

use crate::args::ServerArgs;
use crate::error::CliError;

/// In the making.
pub(crate) async fn run(args: &ServerArgs) -> Result<(), CliError> {
    Err(CliError::failure(format!("not built yet: {args:?}")))
}
