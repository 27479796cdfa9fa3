//! Reads what `ctcp client --metrics` serves.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(2);

/// The text of all metrics. Must run in the namespace of the address.
pub(crate) fn read_metrics(address: SocketAddr) -> io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(WITHIN))?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    connection.read_to_string(&mut text)?;
    Ok(text)
}

/// The value of a counter in such a text, over all its labels.
pub(crate) fn counter(text: &str, name: &str) -> u64 {
    let values = text.lines().filter_map(|line| {
        let (key, value) = line.rsplit_once(' ')?;
        let key = key.split_once('{').map_or(key, |(key, _)| key);
        (key.strip_suffix("_total") == Some(name)).then(|| value.parse::<u64>().ok())?
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_the_sum_over_its_labels() {
        let text = "HTTP/1.1 200 OK\r\n\n# HELP a_b text 9\na_b_total{path=\"1\"} 4\na_b_total{path=\"2\"} 5\na_b_c_total 7\n";
        assert_eq!((counter(text, "a_b"), counter(text, "a_b_c"), counter(text, "c")), (9, 7, 0));
    }
}
