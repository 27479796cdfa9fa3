//! The head of a coded stream at the proxy's server: a parsed head survives encoding and parsing.

use ctcp_proxy::request::Request;

use super::ready;

pub fn run(data: &[u8]) {
    let mut reader = data;
    if let Ok(request) = ready::result(Request::read(&mut reader)) {
        let written = request.encode();
        let mut reader = &written[..];
        let again = ready::result(Request::read(&mut reader)).expect("what was encoded");
        assert_eq!(again, request);
        assert!(reader.is_empty());
    }
}
