use super::*;
use crate::id::{Role, StreamId};

fn pair(config: StreamsConfig) -> (Streams, Streams) {
    let (mut client, mut server) = (Streams::new(Role::Client, config), Streams::new(Role::Server, config));
    for side in [&mut client, &mut server] {
        side.set_peer_limits(config.max_data, config.max_stream_data, config.max_streams);
    }
    (client, server)
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    core::iter::from_fn(|| streams.poll_event()).collect()
}

#[test]
fn bytes_written_on_one_side_are_read_on_the_other_and_nothing_is_left_behind() {
    let (mut client, mut server) = pair(StreamsConfig::default());
    let id = client.open().unwrap();
    assert_eq!(client.write(id, b"question"), Ok(8));
    client.finish(id).unwrap();
    let mut symbol = Vec::new();
    assert!(client.fill_symbol(0, 1200, &mut symbol));
    assert!(!client.fill_symbol(1, 1200, &mut Vec::new()));

    server.on_symbol_decoded(&symbol).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Opened, StreamEvent::Readable(id)]);
    assert_eq!(server.accept(), Some(id));
    let mut out = [0; 100];
    assert_eq!(server.read(id, &mut out), Ok(ReadOutcome::Data(8)));
    assert_eq!(&out[..8], b"question");
    assert_eq!(server.read(id, &mut out), Ok(ReadOutcome::Finished));

    server.finish(id).unwrap();
    assert!(server.fill_symbol(0, 1200, &mut symbol));
    client.on_symbol_decoded(&symbol).unwrap();
    client.on_peer_decoded_below(1);
    server.on_peer_decoded_below(1);
    assert_eq!(events(&mut client), [StreamEvent::Readable(id), StreamEvent::Finished(id)]);
    assert_eq!(client.read(id, &mut out), Ok(ReadOutcome::Finished));
    assert_eq!(events(&mut server), [StreamEvent::Finished(id)]);
    assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
    assert_eq!(server.read(StreamId(0), &mut out), Err(ReadError::UnknownStream));
}
