use super::*;

#[test]
fn earlier_choices_are_preferred_wherever_the_connection_began() {
    assert_eq!(preference(0, 0), PREFERENCE_OF_FIRST);
    assert!(preference(0, 1) < PREFERENCE_OF_FIRST && preference(2, 1) > PREFERENCE_OF_FIRST);
    assert_eq!((preference(0, 1_000), preference(1_000, 0)), (0, u8::MAX));
}

#[cfg(target_os = "linux")]
#[test]
fn a_place_that_is_chosen_twice_counts_once() {
    let choices = ["lo", "auto", "127.0.0.1", "lo"].map(|text| text.parse().unwrap());
    let found = places(&choices, &["127.0.0.1:5".parse().unwrap()]);
    let lo = LocalPath::Interface("lo".to_owned());
    assert_eq!(found.iter().filter(|&place| *place == lo).count(), 1);
    assert_eq!(found.first(), Some(&lo));
}

#[test]
fn the_ids_of_a_connection_last_for_three_days() {
    assert_eq!(pause_of_ids(10), Duration::ZERO);
    let last: Duration = (0..255).map(pause_of_ids).sum();
    assert!(last > Duration::from_secs(3 * 24 * 3_600), "{last:?}");
}

#[test]
fn a_place_leads_to_the_servers_addresses_of_its_family() {
    let place = LocalPath::Address([127, 0, 0, 1].into());
    let servers = ["[::1]:5", "127.0.0.1:5", "127.0.0.2:6"].map(|text| text.parse().unwrap());
    let local = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(candidates(&place, &servers).unwrap(), [(local, servers[1]), (local, servers[2])]);
    assert!(candidates(&place, &servers[..1]).is_err());
}

#[test]
fn a_server_directs_no_path_into_a_network_behind_the_client() {
    let addresses =
        |texts: &[&str]| -> Vec<SocketAddr> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    let told = addresses(&[
        "198.51.100.1:5",
        "127.0.0.1:5",
        "10.0.0.1:5",
        "[fe80::1]:5",
        "255.255.255.255:5",
        "[2001:db8::1]:5",
        "[::ffff:127.0.0.1]:5",
    ]);
    let public = servers("192.0.2.1:5".parse().unwrap(), &told);
    assert_eq!(public, addresses(&["192.0.2.1:5", "198.51.100.1:5", "[2001:db8::1]:5"]));
    let private = servers("10.1.1.1:5".parse().unwrap(), &told);
    assert_eq!(private, addresses(&["10.1.1.1:5", "198.51.100.1:5", "10.0.0.1:5", "[2001:db8::1]:5"]));
}

#[test]
fn a_choice_is_an_address_an_interface_or_all() {
    if cfg!(target_os = "linux") {
        assert_eq!("auto".parse(), Ok(PathChoice::Auto));
        assert!(interfaces().contains(&"lo".to_owned()));
    }
    for text in ["192.0.2.1", "wlan0"] {
        assert_eq!(text.parse::<PathChoice>().unwrap().to_string(), text);
    }
    assert!("no good".parse::<PathChoice>().is_err());
    let choices = ["wlan0", "192.0.2.1"].map(|text| text.parse().unwrap());
    assert_eq!(places(&choices, &[]).len(), 2);
}

/// Elsewhere the loopback interface has one address.
#[cfg(target_os = "linux")]
mod on_linux {
    use ctcp::{ClientConfig, ClientPolicy, Endpoint, PathMode, ServerConfig, TransportConfig, generate_key};
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A client on 127.0.0.1 that uses several paths in this mode, and both ends of its connection.
    async fn connection(mode: PathMode) -> (Endpoint, ctcp::Connection, ctcp::Connection) {
        let key = generate_key().unwrap();
        let name = key.public_key();
        let server =
            Endpoint::server(ServerConfig::new("127.0.0.1:0".parse().unwrap(), key, ClientPolicy::Any));
        let server = server.unwrap();
        let mut transport = TransportConfig::default();
        transport.path_mode(mode).further_paths(true);
        let mut config = ClientConfig::new(generate_key().unwrap());
        config.bind("127.0.0.1:0".parse().unwrap()).transport(transport);
        let client = Endpoint::client(config).unwrap();
        let address = server.local_addr().unwrap();
        let (connection, accepted) =
            timeout(PATIENCE, async { tokio::join!(client.connect(address, name), server.accept()) })
                .await
                .expect("it connects");
        (client, connection.unwrap(), accepted.unwrap())
    }

    #[tokio::test]
    async fn each_choice_that_exists_has_a_path() {
        let choices = ["127.0.0.1", "nosuch0", "127.0.0.2", "127.0.0.3"].map(|text| text.parse().unwrap());
        let (client, connection, _accepted) = connection(PathMode::Backup).await;
        let keeper = PathKeeper::new(&choices, &client, &connection);
        let ending = async {
            let paths = loop {
                let paths = connection.paths();
                if paths.iter().filter(|path| path.is_usable()).count() == 3 {
                    break paths;
                }
                sleep(Duration::from_millis(5)).await;
            };
            connection.close(0, "");
            paths
        };
        let ((), paths) = timeout(PATIENCE, async { tokio::join!(keeper.keep(), ending) })
            .await
            .expect("it has three paths");
        let ends = paths.iter().map(|path| (path.local.unwrap().to_string(), path.is_spare));
        let wanted = [("127.0.0.1", false), ("127.0.0.2", true), ("127.0.0.3", true)];
        assert!(ends.eq(wanted.map(|(local, is_spare)| (local.to_owned(), is_spare))), "{paths:?}");
    }

    #[tokio::test]
    async fn a_path_is_opened_again_after_it_was_closed() {
        let choices = ["127.0.0.1", "127.0.0.2"].map(|text| text.parse().unwrap());
        let (client, connection, _accepted) = connection(PathMode::Aggregate).await;
        let mut keeper = PathKeeper::new(&choices, &client, &connection);
        let second = async |but: Option<PathId>| loop {
            let found = connection.paths().into_iter().find(|path| path.is_usable() && path.id.0 > 0);
            match found.filter(|path| Some(path.id) != but) {
                Some(path) => return path,
                None => sleep(Duration::from_millis(5)).await,
            }
        };
        timeout(PATIENCE, async {
            keeper.adjust();
            let opened = second(None).await;
            keeper.adjust(); // sees that it works
            connection.abandon_path(opened.id).unwrap();
            keeper.adjust();
            assert_eq!(second(Some(opened.id)).await.local, opened.local);
        })
        .await
        .expect("it has a second path again");
    }
}
