//! The parameters of the handshake: parsed parameters survive encoding and parsing.

use ctcp_proto::wire::{Parameters, ServerAnswer};

pub fn run(data: &[u8]) {
    if let Ok(parameters) = Parameters::parse_from_client(data) {
        let mut written = Vec::new();
        parameters.write(&mut written);
        assert_eq!(Parameters::parse_from_client(&written), Ok(parameters));
    }
    let mut written = Vec::new();
    match Parameters::parse_from_server(data) {
        Ok(ServerAnswer::Accepted(parameters)) => parameters.write(&mut written),
        Ok(ServerAnswer::Refused(refusal)) => refusal.write(&mut written),
        Err(_) => return,
    }
    assert_eq!(Parameters::parse_from_server(&written), Parameters::parse_from_server(data));
}
