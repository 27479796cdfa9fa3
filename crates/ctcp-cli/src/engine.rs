//! The choice of kernels for the field arithmetic: the fastest, unless `CTCP_ENGINE` names another engine.
//!
//! All engines give the same results; the variable is for measurements and for processors with errors.

use ctcp_coding::gf256::Engine;

use crate::error::CliError;

/// The environment variable.
const VARIABLE: &str = "CTCP_ENGINE";

/// Uses the engine that the environment names, if it names one.
///
/// # Errors
/// Returns an error if this processor has no such engine.
pub fn force_from_environment() -> Result<(), CliError> {
    match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => named(&name).map(Engine::force).map_err(|error| match error {
            CliError::Usage(message) => CliError::usage(format!("{VARIABLE}: {message}")),
            other => other,
        }),
        _ => Ok(()),
    }
}

/// Looks up an engine by name.
///
/// # Errors
/// Returns an error that lists the available engines if there is none with this name.
pub fn named(name: &str) -> Result<Engine, CliError> {
    Engine::named(name).ok_or_else(|| {
        let known: Vec<_> = Engine::available().map(Engine::name).collect();
        CliError::usage(format!("this processor has no engine {name}; it has {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_about_an_unknown_engine_lists_the_available_ones() {
        assert_eq!(named("scalar").expect("everywhere").name(), "scalar");
        let Err(CliError::Usage(message)) = named("abacus") else { panic!("no such engine") };
        assert!(message.contains("abacus") && message.contains("naive, scalar"), "{message}");
    }
}
