use super::*;

const LOCAL: &str = "192.168.1.5:8118";

fn get(path: &str, host: Option<&str>) -> Page {
    let mut request = Request::get(path);
    if let Some(host) = host {
        request = request.header(HOST, host);
    }
    answer(&request.body(()).unwrap(), LOCAL.parse().unwrap(), LocalStatus::default)
}

// DNS rebinding: a page of evil.example whose name now resolves to this machine.
#[test]
fn pages_are_served_only_for_host_names_of_this_machine() {
    for (host, status) in [
        ("127.0.0.1:8118", 200),
        ("127.1.2.3", 200),
        ("[::1]:8118", 200),
        ("localhost:8118", 200),
        ("LOCALHOST", 200),
        ("proxy.localhost.:8118", 200),
        ("192.168.1.5:8118", 200),
        ("[::ffff:192.168.1.5]:8118", 200),
        ("192.168.1.5:9999", 200), // a forward of ssh
        ("192.168.1.6:8118", 421),
        ("evil.example:8118", 421),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("notlocalhost", 421),
        ("0.0.0.0:8118", 421),
        ("127.0.0.1@evil.example", 421),
        ("\"; evil();\"", 421),
        ("", 421),
    ] {
        for path in ["/", "/proxy.pac"] {
            assert_eq!(get(path, Some(host)).status.as_u16(), status, "{host:?} {path}");
        }
    }
    assert_eq!(get("/", None).status, StatusCode::BAD_REQUEST);
    let old = Request::get("/").version(Version::HTTP_10).body(()).unwrap();
    assert_eq!(answer(&old, LOCAL.parse().unwrap(), LocalStatus::default).status, StatusCode::OK);
    let two = Request::get("/").header(HOST, "localhost").header(HOST, "evil.example").body(()).unwrap();
    assert_eq!(answer(&two, LOCAL.parse().unwrap(), LocalStatus::default).status, StatusCode::BAD_REQUEST);
}

#[test]
fn there_are_two_pages_and_two_methods() {
    assert_eq!(get("/other", Some("localhost")).status, StatusCode::NOT_FOUND);
    assert_eq!(get("/?x", Some("localhost")).status, StatusCode::OK);
    let post = Request::post("/").header(HOST, "localhost").body(()).unwrap();
    let page = answer(&post, LOCAL.parse().unwrap(), LocalStatus::default);
    assert_eq!(page.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(page.headers.contains(&(hyper::header::ALLOW, "GET, HEAD")));
}

#[test]
fn the_pac_file_prefers_socks_where_the_browser_can_reach_it() {
    for (local, socks5, returned) in [
        ("127.0.0.1:8118", Some("127.0.0.1:1080"), "SOCKS5 127.0.0.1:1080; PROXY here:1"),
        ("127.0.0.1:8118", Some("[::1]:1080"), "SOCKS5 [::1]:1080; PROXY here:1"),
        ("192.168.1.5:8118", Some("0.0.0.0:1080"), "SOCKS5 192.168.1.5:1080; PROXY here:1"),
        ("192.168.1.5:8118", Some("127.0.0.1:1080"), "PROXY here:1"),
        ("127.0.0.1:8118", None, "PROXY here:1"),
    ] {
        let text = pac("here:1", local.parse().unwrap(), socks5.map(|address| address.parse().unwrap()));
        assert!(text.ends_with(&format!("  return \"{returned}\";\n}}\n")), "{text}");
    }
}

#[test]
fn the_status_page_shows_the_state_of_the_server() {
    let path = Some(PathHealth { rtt: Duration::from_micros(25_250), loss: 0.043, ..PathHealth::default() });
    let connected = ServerStatus {
        address: "server.example:4433 (now at 192.0.2.1:4433)".to_owned(),
        is_connected: true,
        path,
        downstream: 23.46e6,
        upstream: 1234.0,
        ..ServerStatus::default()
    };
    let silent = ServerStatus { silent: Some(Duration::from_secs(7)), ..connected.clone() };
    let down = ServerStatus {
        is_connected: false,
        last_error: Some("192.0.2.1:4433: no <answer>".to_owned()),
        path: None,
        ..silent.clone()
    };
    let refused = ServerStatus {
        last_error: Some("192.0.2.1:4433: the server refused: it is full".to_owned()),
        has_answered: true,
        ..down.clone()
    };
    for (server, has) in [
        (refused, &["\">Not connected: 192.0.2.1:4433: the server refused: it is full. Trying again."][..]),
        (
            connected,
            &[
                "Connected to the server.",
                "25.2 ms",
                "<td>loss towards the server</td><td class=\"value\">4.3 %</td>",
                "23.5 Mbit/s",
                "1.2 kbit/s",
                "192.0.2.1:4433",
            ][..],
        ),
        (silent, &["No answer for 7 s: the server is silent."]),
        (down, &["No answer for 7 s. Not connected: 192.0.2.1:4433: no &lt;answer&gt;. Trying again."]),
        (ServerStatus::default(), &["Connecting to the server."]),
    ] {
        let page = html(&LocalStatus { server, ..LocalStatus::default() }, UNIX_EPOCH);
        for text in has {
            assert!(page.contains(text), "{text} in {page}");
        }
        assert!(page.contains("<meta http-equiv=\"refresh\" content=\"2\">"));
    }
}

#[test]
fn the_status_page_lists_several_paths() {
    let path = |local: &str, state| PathSummary {
        local: Some(local.parse().unwrap()),
        remote: "192.0.2.1:4433".parse().unwrap(),
        state,
        rtt: (state != PathState::Opening).then_some(Duration::from_millis(40)),
        received: 12_345_678,
        sent: 999,
    };
    let paths = [
        path("198.51.100.1", PathState::Open),
        path("198.51.100.2", PathState::Avoided),
        path("2001:db8::3", PathState::Opening),
        path("198.51.100.4", PathState::Spare),
    ];
    let page_of = |paths: &[PathSummary]| {
        let server = ServerStatus { paths: paths.to_vec(), ..ServerStatus::default() };
        html(&LocalStatus { server, ..LocalStatus::default() }, UNIX_EPOCH)
    };
    let page = page_of(&paths);
    for row in [
        "<tr><td>198.51.100.1</td><td>192.0.2.1:4433</td><td>open</td><td>40.0 ms</td>\
         <td>12.3 MB</td><td>999 B</td></tr>",
        "<td>198.51.100.2</td><td>192.0.2.1:4433</td><td>no answer</td>",
        "<td>2001:db8::3</td><td>192.0.2.1:4433</td><td>opening</td><td>-</td>",
        "<td>198.51.100.4</td><td>192.0.2.1:4433</td><td>spare</td>",
    ] {
        assert!(page.contains(row), "{row} in {page}");
    }
    assert!(!page_of(&paths[..1]).contains("Paths"));
}

#[test]
fn sizes_have_units() {
    let status = LocalStatus { from_targets: 12_345_678, to_targets: 999, ..LocalStatus::default() };
    let page = html(&status, UNIX_EPOCH);
    for row in [
        "received from targets</td><td class=\"value\">12.3 MB<",
        "sent to targets</td><td class=\"value\">999 B<",
    ] {
        assert!(page.contains(row), "{page}");
    }
    assert_eq!([size(1_000), size(2_500_000_000), size(7_000_000_000_000)], ["1.0 kB", "2.5 GB", "7.0 TB"]);
}

#[test]
fn errors_show_their_time_and_are_escaped() {
    let now = UNIX_EPOCH + Duration::from_secs(1_000_000_000); // 01:46:40 UTC
    let failed = vec![Failed {
        target: "h:80".to_owned(),
        reason: "<script>alert('\"&')</script>\u{202e}\x1b".to_owned(),
        last: now - Duration::from_secs(41),
        times: 3,
    }];
    let page = html(&LocalStatus { failed, ..LocalStatus::default() }, now);
    assert!(
        page.contains("<td class=\"time\">01:45:59, 41 s ago</td><td class=\"what\">h:80</td>"),
        "{page}"
    );
    let reason = "&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;\\u{202e}\\u{1b} (3 times)</td>";
    assert!(page.contains(reason), "{page}");
    assert_eq!(
        (span(119), span(120), span(7200)),
        ("119 s".to_owned(), "2 min".to_owned(), "2 h".to_owned())
    );
}
