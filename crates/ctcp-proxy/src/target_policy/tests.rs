use proptest::prelude::*;

use super::*;

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn policy(allow: &[&str], deny: &[&str]) -> TargetPolicy {
    let own: IpAddr = "198.41.0.4".parse().unwrap();
    TargetPolicy::new(rules(allow), rules(deny)).unwrap().with_own_addresses(move |ip| Ok(ip == own))
}

fn check(policy: &TargetPolicy, address: &str, port: u16) -> Result<(), Refusal> {
    policy.check(None, address.parse().unwrap(), port)
}

#[test]
fn without_rules_the_internet_is_open_and_special_addresses_are_closed() {
    use Special as S;
    let policy = policy(&[], &[]);
    for (address, special) in [
        ("93.184.216.34", None),
        ("2606:2800:220:1::1", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("100.63.255.255", None),
        ("100.128.0.0", None),
        ("0.0.0.0", Some(S::Unspecified)),
        ("0.1.2.3", Some(S::Unspecified)),
        ("::", Some(S::Unspecified)),
        ("127.0.0.1", Some(S::Loopback)),
        ("127.255.255.254", Some(S::Loopback)),
        ("::1", Some(S::Loopback)),
        ("169.254.1.1", Some(S::LinkLocal)),
        ("fe80::1", Some(S::LinkLocal)),
        ("169.254.169.254", Some(S::Metadata)),
        ("168.63.129.16", Some(S::Metadata)),
        ("168.63.129.15", None),
        ("168.63.129.17", None),
        ("100.100.100.200", Some(S::Metadata)),
        ("fd00:ec2::254", Some(S::Metadata)),
        ("fe80::a9fe:a9fe", Some(S::Metadata)),
        ("febf::1", Some(S::LinkLocal)),
        ("10.0.0.1", Some(S::Private)),
        ("172.16.0.1", Some(S::Private)),
        ("172.31.255.255", Some(S::Private)),
        ("192.168.1.1", Some(S::Private)),
        ("fd00::1", Some(S::Private)),
        ("fec0::1", Some(S::Private)),
        ("100.64.0.1", Some(S::CarrierNat)),
        ("100.127.255.255", Some(S::CarrierNat)),
        ("224.0.0.1", Some(S::Multicast)),
        ("239.255.255.255", Some(S::Multicast)),
        ("ff02::1", Some(S::Multicast)),
        ("255.255.255.255", Some(S::Broadcast)),
        ("240.0.0.1", Some(S::Reserved)),
        ("192.0.2.1", Some(S::Documentation)),
        ("198.51.100.1", Some(S::Documentation)),
        ("203.0.113.1", Some(S::Documentation)),
        ("2001:db8::1", Some(S::Documentation)),
        ("3fff::1", Some(S::Documentation)),
        ("198.18.0.1", Some(S::Reserved)),
        ("192.0.0.8", Some(S::Reserved)),
        ("2001:20::1", Some(S::Reserved)),
        ("100::1", Some(S::Reserved)),
        ("64:ff9b:1::7f00:1", Some(S::Reserved)),
        ("5f00::1", Some(S::Reserved)),
        ("198.41.0.4", Some(S::Own)),
    ] {
        assert_eq!(
            check(&policy, address, 80),
            special.map_or(Ok(()), |s| Err(Refusal::Special(s))),
            "{address}"
        );
    }
}

#[test]
fn ipv4_inside_ipv6_is_found() {
    use Special as S;
    let policy = policy(&[], &[]);
    for (address, special) in [
        ("::ffff:127.0.0.1", Some(S::Loopback)),
        ("::ffff:10.1.2.3", Some(S::Private)),
        ("::ffff:169.254.169.254", Some(S::Metadata)),
        ("::ffff:168.63.129.16", Some(S::Metadata)),
        ("64:ff9b::168.63.129.16", Some(S::Metadata)),
        ("::ffff:198.41.0.4", Some(S::Own)),
        ("::ffff:93.184.216.34", None),
        ("::127.0.0.1", Some(S::Loopback)),
        ("::10.0.0.1", Some(S::Private)),
        ("::2", Some(S::Unspecified)),
        ("64:ff9b::127.0.0.1", Some(S::Loopback)),
        ("64:ff9b::192.168.0.1", Some(S::Private)),
        ("64:ff9b::93.184.216.34", None),
        ("2002:7f00:1::1", Some(S::Loopback)),
        ("2002:c0a8:101::1", Some(S::Private)),
        ("2002:c629:4::", Some(S::Own)),
        ("2002:5db8:d822::1", None),
        // Teredo: server 10.0.0.1, then client 127.0.0.1 in inverted bits.
        ("2001:0:0a00:0001::1", Some(S::Private)),
        ("2001:0:5db8:d822:0:0:80ff:fffe", Some(S::Loopback)),
        ("2001:0:5db8:d822:0:0:a247:27dd", None),
        ("2606:2800::5efe:10.0.0.1", Some(S::Private)),
        ("2606:2800::200:5efe:127.0.0.1", Some(S::Loopback)),
    ] {
        assert_eq!(
            check(&policy, address, 80),
            special.map_or(Ok(()), |s| Err(Refusal::Special(s))),
            "{address}"
        );
    }
}

#[test]
fn an_explicit_allow_opens_a_special_address_in_every_form_and_closes_the_rest() {
    let policy = policy(&["10.0.0.0/8:80", "127.0.0.1"], &[]);
    assert_eq!(check(&policy, "10.1.1.1", 80), Ok(()));
    assert_eq!(check(&policy, "::ffff:10.1.1.1", 80), Ok(()));
    assert_eq!(check(&policy, "64:ff9b::10.1.1.1", 80), Ok(()));
    assert_eq!(check(&policy, "127.0.0.1", 9999), Ok(()));
    assert_eq!(check(&policy, "10.1.1.1", 81), Err(Refusal::Special(Special::Private)));
    assert_eq!(check(&policy, "127.0.0.2", 80), Err(Refusal::Special(Special::Loopback)));
    assert_eq!(check(&policy, "::1", 80), Err(Refusal::Special(Special::Loopback)));
    assert_eq!(check(&policy, "93.184.216.34", 80), Err(Refusal::NotListed));
    // 6to4 through an allowed private router still needs a rule itself.
    assert_eq!(check(&policy, "2002:a01:101::1", 80), Err(Refusal::NotListed));
}

#[test]
fn a_network_that_is_wider_than_a_special_range_does_not_open_it() {
    let own = "198.41.0.4";
    for (rule, closed, open) in [
        (
            "0.0.0.0/0",
            &["127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", own][..],
            "93.184.216.34",
        ),
        ("0.0.0.0/1", &["127.0.0.1", "10.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"], "93.184.216.34"),
        ("128.0.0.0/1", &["169.254.1.1", "192.168.1.1", "168.63.129.16", own], "193.0.0.1"),
        ("168.63.0.0/16", &["168.63.129.16"], "168.63.129.17"),
        ("198.41.0.0/24", &[own], "198.41.0.5"),
        ("100.64.0.0/10", &["100.100.100.200"], "100.64.0.1"),
        ("169.254.0.0/16", &["169.254.169.254", "::ffff:169.254.169.254"], "169.254.1.1"),
        ("fc00::/7", &["fd00:ec2::254"], "fd00::1"),
        ("::/0", &["::1", "::", "fe80::1", "fd00::1", "64:ff9b:1::7f00:1", "::ffff:127.0.0.1"], "2606::1"),
        ("::/3", &["::1", "::", "::7f00:1", "64:ff9b:1::7f00:1", "64:ff9b::7f00:1"], "1::1"),
        ("64:ff9b:1::/48", &["64:ff9b:1::7f00:1", "64:ff9b:1::a9fe:a9fe"], "64:ff9b:1::5db8:d822"),
        ("8000::/1", &["fe80::1", "fd00::1", "ff02::1"], "9000::1"),
        ("::ffff:0:0/96", &["127.0.0.1", "::ffff:10.0.0.1", own], "::ffff:93.184.216.34"),
        (
            "64:ff9b::/96",
            &["127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254"],
            "64:ff9b::93.184.216.34",
        ),
        ("2002::/16", &["2002:7f00:1::1", "2002:c629:4::"], "2002:5db8:d822::1"),
    ] {
        let policy = policy(&[rule], &[]);
        for address in closed {
            let judged = check(&policy, address, 1);
            assert!(matches!(judged, Err(Refusal::Special(_))), "{rule} opens {address}: {judged:?}");
        }
        assert_eq!(check(&policy, open, 1), Ok(()), "{rule} does not open {open}");
    }
}

#[test]
fn a_rule_inside_a_special_range_opens_what_it_names() {
    for (rule, address) in [
        ("127.0.0.0/8", "127.9.9.9"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("::1", "::1"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("169.254.169.254", "169.254.169.254"),
        ("168.63.129.16/32", "168.63.129.16"),
        ("198.41.0.4", "198.41.0.4"),
        ("fe80::/10", "fe80::1"),
        ("fd12::/16", "fd12::1"),
    ] {
        assert_eq!(check(&policy(&[rule], &[]), address, 22), Ok(()), "{rule}");
    }
}

#[test]
fn public_allows_the_internet_and_other_rules_add_to_it() {
    let additions = policy(&["public", "10.0.0.0/8:22", "127.0.0.1:22"], &["93.184.216.0/24"]);
    for (address, port, judged) in [
        ("8.8.8.8", 443, Ok(())),
        ("2606:2800::1", 443, Ok(())),
        ("::ffff:8.8.8.8", 443, Ok(())),
        ("10.1.2.3", 22, Ok(())),
        ("127.0.0.1", 22, Ok(())),
        ("10.1.2.3", 80, Err(Refusal::Special(Special::Private))),
        ("127.0.0.1", 80, Err(Refusal::Special(Special::Loopback))),
        ("192.168.1.1", 22, Err(Refusal::Special(Special::Private))),
        ("198.41.0.4", 22, Err(Refusal::Special(Special::Own))),
        ("168.63.129.16", 80, Err(Refusal::Special(Special::Metadata))),
        ("93.184.216.34", 80, Err(Refusal::Denied("93.184.216.0/24".parse().unwrap()))),
    ] {
        assert_eq!(check(&additions, address, port), judged, "{address}:{port}");
    }
    let web = policy(&["public:443"], &[]);
    assert_eq!(check(&web, "8.8.8.8", 443), Ok(()));
    assert_eq!(check(&web, "8.8.8.8", 80), Err(Refusal::NotListed));
    let inside = policy(&["10.0.0.0/8"], &["public"]);
    assert_eq!(check(&inside, "10.0.0.1", 80), Ok(()));
    assert!(matches!(check(&inside, "8.8.8.8", 80), Err(Refusal::Denied(_))));
}

#[test]
fn an_address_that_may_be_the_servers_own_is_refused_until_that_is_known() {
    let emfile = 24;
    let policy = TargetPolicy::new(rules(&["public", "10.0.0.0/8", "10.0.0.7"]), Vec::new()).unwrap();
    let policy = policy.with_own_addresses(move |_| Err(io::Error::from_raw_os_error(emfile)));
    for address in ["93.184.216.34", "10.0.0.1", "2606:2800::1"] {
        assert_eq!(check(&policy, address, 80), Err(Refusal::Unchecked(emfile)), "{address}");
    }
    assert_eq!(check(&policy, "10.0.0.7", 80), Ok(()), "a rule allows it");
}

#[test]
fn deny_beats_allow_in_every_form() {
    let policy = policy(&["0.0.0.0/0", "::/0"], &["10.0.0.0/8", "[2606:2800::/32]:443", "*.evil.example"]);
    for (address, port, is_denied) in [
        ("10.1.1.1", 80, true),
        ("::ffff:10.1.1.1", 80, true),
        ("::10.1.1.1", 80, true),
        ("64:ff9b::10.1.1.1", 80, true),
        ("2002:a01:101::1", 80, true),
        ("11.1.1.1", 80, false),
        ("2606:2800::1", 443, true),
        ("2606:2800::1", 80, false),
    ] {
        let denied = matches!(check(&policy, address, port), Err(Refusal::Denied(_)));
        assert_eq!(denied, is_denied, "{address}:{port}");
    }
    let address = "93.184.216.34".parse().unwrap();
    for (name, is_denied) in [
        ("www.evil.example", true),
        ("WWW.Evil.Example", true),
        ("www.evil.example.", true),
        ("a.b.evil.example", true),
        ("evil.example", false),
        ("notevil.example", false),
        (".evil.example", false),
    ] {
        assert_eq!(policy.check(Some(name), address, 80).is_err(), is_denied, "{name}");
    }
}

#[test]
fn a_deny_rule_written_in_ipv6_form_denies_the_ipv4_address() {
    for form in ["::ffff:93.184.216.0/120", "64:ff9b::93.184.216.0/120", "[::ffff:93.184.216.34]:80"] {
        let policy = policy(&[], &[form]);
        assert!(matches!(check(&policy, "93.184.216.34", 80), Err(Refusal::Denied(_))), "{form}");
    }
}

#[test]
fn a_rule_for_a_name_allows_the_name_and_never_a_special_address() {
    let policy = policy(&["*.example.com:443", "exact.example"], &[]);
    let public = "93.184.216.34".parse().unwrap();
    let private = "10.0.0.1".parse().unwrap();
    assert_eq!(policy.check(Some("www.example.com"), public, 443), Ok(()));
    assert_eq!(policy.check(Some("exact.example"), public, 1), Ok(()));
    assert_eq!(policy.check(Some("www.example.com"), public, 80), Err(Refusal::NotListed));
    assert_eq!(policy.check(Some("sub.exact.example"), public, 1), Err(Refusal::NotListed));
    assert_eq!(policy.check(None, public, 443), Err(Refusal::NotListed));
    assert_eq!(policy.check(Some("www.example.com"), private, 443), Err(Refusal::Special(Special::Private)));
}

#[test]
fn rules_are_parsed_and_formatted() {
    for (text, written) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("10.0.0.0/8:443", "10.0.0.0/8:443"),
        (" 0.0.0.0/0 ", "0.0.0.0/0"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("[2001:db8::/32]", "2001:db8::/32"),
        ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
        ("[::1]:80", "[::1/128]:80"),
        ("::/0", "::/0"),
        ("*.Example.com", "*.example.com"),
        ("*.example.com.:443", "*.example.com:443"),
        ("example.com:80", "example.com:80"),
        ("localhost", "localhost"),
        ("database:5432", "database:5432"),
        ("*.internal", "*.internal"),
        ("public", "public"),
        (" public:443 ", "public:443"),
    ] {
        let rule: Rule = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(rule.to_string(), written);
        assert_eq!(written.parse::<Rule>(), Ok(rule));
    }
}

#[test]
fn invalid_rules_are_refused_with_the_reason() {
    use RuleError as E;
    let neither = |text: &str| E::Neither(text.to_owned());
    for (text, error) in [
        ("", E::Empty),
        ("  ", E::Empty),
        ("foo", E::OneWord("foo".into())),
        ("10.0.0.1/8", E::HostBits("10.0.0.0/8".into())),
        ("10.0.0.0/33", E::Prefix("33".into())),
        ("10.0.0.0/", E::Prefix(String::new())),
        ("10.0.0.0/+8", E::Prefix("+8".into())),
        ("::/129", E::Prefix("129".into())),
        ("10.0.0.0/8:0", E::Port("0".into())),
        ("10.0.0.0/8:http", E::Port("http".into())),
        ("10.0.0.0/8:", E::Port(String::new())),
        ("[::1]80", neither("[::1]80")),
        ("[::1", neither("[::1")),
        ("[10.0.0.0/8]:80", neither("[10.0.0.0/8]:80")),
        ("*", neither("*")),
        ("*.", neither("*.")),
        ("a.*.com", neither("a.*.com")),
        ("300.1.1.1", neither("300.1.1.1")),
        ("10.0.0/8", neither("10.0.0/8")),
        ("example.com/24", neither("example.com/24")),
        ("a..b", neither("a..b")),
    ] {
        assert_eq!(text.parse::<Rule>(), Err(error.clone()), "{text:?}");
        assert!(!error.to_string().is_empty());
    }
}

proptest! {
    #[test]
    fn random_text_never_panics_and_a_parsed_rule_survives_formatting(text in "[-0-9a-f.:/\\[\\]*xz]{0,30}") {
        if let Ok(rule) = text.parse::<Rule>() {
            prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
        }
    }

    #[test]
    fn every_form_of_an_ipv4_address_is_checked_as_the_address(bits: u32, port in 1u16..) {
        let policy = policy(&[], &["93.0.0.0/8:80"]);
        let plain = std::net::Ipv4Addr::from_bits(bits);
        let judged = policy.check(None, plain.into(), port);
        let mapped = plain.to_ipv6_mapped();
        let nat64 = std::net::Ipv6Addr::from_bits(0x0064_ff9b << 96 | u128::from(bits));
        prop_assert_eq!(&policy.check(None, mapped.into(), port), &judged);
        prop_assert_eq!(&policy.check(None, nat64.into(), port), &judged);
    }

    #[test]
    fn no_address_panics(bits: u128, port: u16) {
        let policy = policy(&["10.0.0.0/8", "*.a.example"], &["::/1"]);
        let _ = policy.check(Some("x.a.example"), std::net::Ipv6Addr::from_bits(bits).into(), port);
    }
}
