//! A SOCKS5 greeting and request: the server never waits for more bytes than they declare, and answers as RFC 1928
//! requires.

use ctcp_proxy::socks5::{Asked, Socks5Error, handshake};

use super::ready;

pub fn run(data: &[u8]) {
    let mut answer = Vec::new();
    let mut stream = tokio::io::join(data, &mut answer);
    let result = ready::result(handshake(&mut stream));
    match result {
        Ok(asked) => {
            assert!(!matches!(asked, Asked::Connect(target) if target.port == 0));
            assert_eq!(answer, [5, 0]);
        }
        Err(Socks5Error::NoAcceptableMethod) => assert_eq!(answer, [5, 0xff]),
        Err(Socks5Error::Command(_) | Socks5Error::AddressType(_) | Socks5Error::Target(_)) => {
            assert_eq!(answer.len(), 2 + 10, "the greeting and the refusal are answered");
        }
        Err(_) => assert!(answer.is_empty() || answer == [5, 0]),
    }
}
