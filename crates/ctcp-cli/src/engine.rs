//! Which kernels the process multiplies with: the fastest, unless `CTCP_ENGINE` names others.
//!
//! All of them give equal bytes; the switch is for measurements and for processors that err.

use ctcp_coding::gf256::Engine;

use crate::error::CliError;

/// The variable of the environment.
const VARIABLE: &str = "CTCP_ENGINE";

/// Forces the engine that the environment names, if it names one.
///
/// # Errors
/// When this processor has no such engine.
pub fn force_from_environment() -> Result<(), CliError> {
    match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => named(&name).map(Engine::force).map_err(|error| match error {
            CliError::Usage(message) => CliError::usage(format!("{VARIABLE}: {message}")),
            other => other,
        }),
        _ => Ok(()),
    }
}

/// The engine called `name`.
///
/// # Errors
/// Which there are, when there is none of that name.
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
    fn an_engine_that_is_not_there_is_answered_with_those_that_are() {
        assert_eq!(named("scalar").expect("everywhere").name(), "scalar");
        let Err(CliError::Usage(message)) = named("abacus") else { panic!("no such engine") };
        assert!(message.contains("abacus") && message.contains("naive, scalar"), "{message}");
    }
}
