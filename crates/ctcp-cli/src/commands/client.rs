//! `ctcp client`.

use crate::args::ClientArgs;
use crate::error::CliError;

/// In the making.
pub(crate) async fn run(args: &ClientArgs) -> Result<(), CliError> {
    Err(CliError::failure(format!("not built yet: {args:?}")))
}
