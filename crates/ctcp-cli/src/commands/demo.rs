//! `ctcp demo`.

mod link;
mod web;

use crate::args::DemoArgs;
use crate::error::CliError;

/// In the making.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), CliError> {
    Err(CliError::failure(format!("not built yet: {args:?}")))
}
