//! Tests of ends, cut connections, bodies and kept streams.

use super::*;

#[tokio::test]
async fn a_response_that_is_cut_off_resets_the_application() {
    for (version, begin) in [
        ("1.1", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
        ("1.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
        ("1.0", "HTTP/1.1 200 OK\r\n\r\nhalf"),
    ] {
        let Setup { mut application, mut targets, served, counters } = setup();
        say(&mut application, &format!("GET http://h/ HTTP/{version}\r\n\r\n")).await;
        let (_, mut target) = targets.recv().await.unwrap();
        head(&mut target).await;
        say(&mut target, begin).await;
        head(&mut application).await;
        let mut read = Vec::new();
        while !read.windows(4).any(|window| window == b"half") {
            read.push(application.read_u8().await.unwrap());
        }
        drop(target);
        let error = application.read_to_end(&mut read).await.expect_err("no clean end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        served.await.unwrap().map(|_| ()).unwrap_err();
        while counters.streams_failed.value() == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(target_os = "linux")] // elsewhere the reset discards the kernel's queue
#[tokio::test]
async fn a_slow_application_gets_what_arrived_of_a_response_before_the_connection_was_lost() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connect = tokio::net::TcpStream::connect(listener.local_addr().unwrap());
    let (application, near) = tokio::join!(connect, listener.accept());
    let Setup { mut application, mut targets, served, .. } =
        setup_over(application.unwrap(), near.unwrap().0);
    say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
    let (_, mut target) = targets.recv().await.unwrap();
    head(&mut target).await;
    say(&mut target, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n").await;
    let mut sent = 0;
    while let Ok(written) = timeout(Duration::from_millis(100), target.write(&[b'x'; 1000])).await {
        sent += written.unwrap();
    }
    target.lose();
    sleep(Duration::from_millis(100)).await;
    head(&mut application).await;
    let mut read = Vec::new();
    let error = application.read_to_end(&mut read).await.expect_err("no clean end");
    assert_eq!((error.kind(), read.len()), (io::ErrorKind::ConnectionReset, sent));
    served.await.unwrap().map(|_| ()).unwrap_err();
}

/// This includes data that hyper has not written yet when the response fails.
#[tokio::test]
async fn a_failed_response_is_written_as_far_as_it_arrived() {
    let Setup { mut application, mut targets, .. } = setup();
    say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
    let (_, mut target) = targets.recv().await.unwrap();
    head(&mut target).await;
    say(&mut target, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n").await;
    say(&mut target, &"x".repeat(5 * memory::PIPE_BYTES)).await;
    target.lose();
    sleep(Duration::from_millis(50)).await;
    head(&mut application).await;
    let mut read = Vec::new();
    application.read_to_end(&mut read).await.expect_err("no clean end");
    // The reset may discard the content of the last pipe.
    assert!(read.len() >= 4 * memory::PIPE_BYTES, "{}", read.len());
}

#[tokio::test]
async fn a_target_learns_that_the_application_has_left() {
    let Setup { application, mut targets, .. } = setup();
    let mut application = Some(application);
    say(application.as_mut().unwrap(), "GET http://h/ HTTP/1.1\r\n\r\n").await;
    let (_, mut target) = targets.recv().await.unwrap();
    head(&mut target).await;
    drop(application.take());
    let error = target.read_u8().await.expect_err("reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

    // An application that only ended its half gets its response; the target sees the end.
    let Setup { mut application, mut targets, .. } = setup();
    say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
    application.shutdown().await.unwrap();
    let (_, mut target) = targets.recv().await.unwrap();
    head(&mut target).await;
    assert_eq!(rest(&mut target).await, "");
    say(&mut target, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    assert!(rest(&mut application).await.ends_with("\r\n\r\nhi"));
}

#[tokio::test]
async fn a_truncated_request_body_is_never_complete_at_the_target() {
    for begin in ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"] {
        let Setup { mut application, mut targets, .. } = setup();
        say(&mut application, &format!("POST http://h/ HTTP/1.1\r\n{begin}")).await;
        let (_, mut target) = targets.recv().await.unwrap();
        head(&mut target).await;
        application.shutdown().await.unwrap();
        let mut got = Vec::new();
        let error = timeout(PATIENCE, target.read_to_end(&mut got)).await.unwrap().expect_err("no clean end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn bodies_stream_both_ways_and_a_slow_reader_blocks_the_writer() {
    const SIZE: usize = 3_000_000;
    let content: Vec<u8> = (0..SIZE).map(|index| (index / 7) as u8).collect();
    for is_chunked in [false, true] {
        let Setup { application, mut targets, .. } = setup();
        let (mut reader, mut writer) = tokio::io::split(application);
        let framing = if is_chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {SIZE}")
        };
        say(&mut writer, &format!("POST http://h/ HTTP/1.1\r\n{framing}\r\n\r\n")).await;
        let (_, mut target) = targets.recv().await.unwrap();
        let to_send = content.clone();
        let (progress, seen) = tokio::sync::watch::channel(0);
        let upload = tokio::spawn(async move {
            for part in to_send.chunks(10_000) {
                if is_chunked {
                    say(&mut writer, &format!("{:x}\r\n", part.len())).await;
                }
                writer.write_all(part).await.unwrap();
                if is_chunked {
                    say(&mut writer, "\r\n").await;
                }
                progress.send_modify(|sent| *sent += part.len());
            }
            if is_chunked {
                say(&mut writer, "0\r\n\r\n").await;
            }
            writer
        });
        sleep(Duration::from_millis(300)).await;
        let sent = *seen.borrow();
        assert!(sent < 8 * HEAD_BYTES_MAX, "no one reads, and {sent} bytes were accepted");
        let head = head(&mut target).await;
        assert_eq!(head.to_ascii_lowercase().contains("transfer-encoding: chunked"), is_chunked, "{head}");
        let (mut from, mut to) = tokio::io::split(target);
        say(&mut to, &format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n")).await;
        let echo = async {
            tokio::io::copy(&mut from, &mut to).await.unwrap();
        };
        let download = async {
            let head = self::head(&mut reader).await;
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
            let mut body = Vec::new();
            if is_chunked {
                read_chunks(&mut reader, &mut body).await;
            } else {
                body.resize(SIZE, 0);
                reader.read_exact(&mut body).await.unwrap();
            }
            body
        };
        let body = timeout(4 * PATIENCE, async {
            tokio::select! { body = download => body, () = echo => panic!("the target sees no end") }
        })
        .await
        .expect("the transfer makes progress");
        assert!(body == content);
        drop(upload.await.unwrap());
    }
}

async fn read_chunks(reader: &mut (impl AsyncRead + Unpin), body: &mut Vec<u8>) {
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(reader.read_u8().await.unwrap());
        }
        let size = usize::from_str_radix(core::str::from_utf8(&line).unwrap().trim_end(), 16).unwrap();
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..]).await.unwrap();
        assert_eq!(text(reader, 2).await, "\r\n");
        if size == 0 {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_waits_for_100_continue_waits_for_the_targets() {
    const REQUEST: &str = "POST http://h/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    for says_so in [true, false] {
        let Setup { mut application, mut targets, .. } = setup();
        say(&mut application, REQUEST).await;
        let (_, mut target) = targets.recv().await.unwrap();
        assert!(head(&mut target).await.contains("Expect: 100-continue\r\n"));
        let asked = tokio::time::Instant::now();
        timeout(Duration::from_millis(500), application.read_u8()).await.expect_err("no go-ahead yet");
        if says_so {
            say(&mut target, "HTTP/1.1 100 Continue\r\n\r\n").await;
        }
        assert_eq!(head(&mut application).await, "HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(asked.elapsed() >= Duration::from_secs(1), !says_so);
        say(&mut application, "body").await;
        assert_eq!(text(&mut target, 4).await, "body");
        say(&mut target, "HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(head(&mut application).await, "HTTP/1.1 204 No Content\r\n\r\n");
    }
    let Setup { mut application, mut targets, .. } = setup();
    say(&mut application, REQUEST).await;
    let (_, mut target) = targets.recv().await.unwrap();
    head(&mut target).await;
    say(&mut target, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n").await;
    let head = head(&mut application).await;
    assert!(head.starts_with("HTTP/1.1 417 ") && head.contains("connection: close\r\n"), "{head}");
    // Further data may or may not be the body, so it is not parsed as a request.
    say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
    assert!(targets.recv().await.is_none(), "the connection takes no further request");
}

#[tokio::test]
async fn a_request_on_a_closed_kept_stream_is_repeated_if_it_is_idempotent() {
    for (method, length) in [("GET", ""), ("POST", "Content-Length: 0\r\n")] {
        let Setup { mut application, mut targets, .. } = setup();
        say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
        let (_, mut first) = targets.recv().await.unwrap();
        head(&mut first).await;
        say(&mut first, "HTTP/1.1 204 No Content\r\n\r\n").await;
        head(&mut application).await;
        say(&mut application, &format!("{method} http://h/2 HTTP/1.1\r\n{length}\r\n")).await;
        assert!(head(&mut first).await.starts_with(method)); // the target closes after it received the request
        first.shutdown().await.unwrap();
        if method == "GET" {
            let (_, mut second) = targets.recv().await.unwrap();
            assert!(head(&mut second).await.starts_with("GET /2 "));
            say(&mut second, "HTTP/1.1 204 No Content\r\n\r\n").await;
            assert!(head(&mut application).await.starts_with("HTTP/1.1 204 "));
        } else {
            assert!(head(&mut application).await.starts_with("HTTP/1.1 502 "));
        }
    }
    // A stream that was closed before is not used again, whatever the method.
    let Setup { mut application, mut targets, .. } = setup();
    say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
    let (_, mut first) = targets.recv().await.unwrap();
    head(&mut first).await;
    say(&mut first, "HTTP/1.1 200 OK\r\n\r\nall").await;
    first.shutdown().await.unwrap();
    assert!(head(&mut application).await.contains("transfer-encoding: chunked"));
    let mut body = Vec::new();
    read_chunks(&mut application, &mut body).await;
    say(&mut application, "POST http://h/2 HTTP/1.1\r\nContent-Length: 0\r\n\r\n").await;
    let (_, mut second) = targets.recv().await.unwrap();
    assert!(head(&mut second).await.starts_with("POST /2 "));
}
