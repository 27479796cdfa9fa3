//! `ctcp keygen` and `ctcp pubkey`.

use crate::args::{KeygenArgs, PubkeyArgs};
use crate::error::CliError;
use crate::key_file;

/// Creates a private key and prints its public key.
#[expect(clippy::print_stdout, reason = "the result")]
pub(crate) fn run(args: &KeygenArgs) -> Result<(), CliError> {
    println!("{}", key_file::make(&args.out)?.public_key());
    Ok(())
}

/// Prints the public key of a private key file.
#[expect(clippy::print_stdout, reason = "the result")]
pub(crate) fn show(args: &PubkeyArgs) -> Result<(), CliError> {
    println!("{}", key_file::read(&args.file)?.public_key());
    Ok(())
}
