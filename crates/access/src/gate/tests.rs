//! The decision, header by header.

use super::*;
use proptest::prelude::*;

fn gate() -> Gate {
    let settings = Settings {
        trusted_clients: vec!["192.168.1.0/24".into(), "127.0.0.1".into()],
        cors_domains: vec!["http://good.page".into()],
        trusted_proxies: vec!["10.0.0.1".into()],
        own_name: "voron.my.domain".into(),
        ..Settings::default()
    };
    let (gate, warnings) = Gate::new(&settings);
    assert!(warnings.is_empty());
    gate
}

fn facts(peer: &str) -> Facts<'static> {
    Facts {
        peer: peer.parse().unwrap(),
        forwarded_for: None,
        real_ip: None,
        has_forwarded: false,
        origin: None,
        host: Some("printer:7125"),
        fetch_site: None,
        referer: None,
        user_agent: None,
    }
}

#[test]
fn nobody_is_trusted_unless_configured() {
    let (gate, _) = Gate::new(&Settings::default());
    assert_eq!(gate.admit(&facts("127.0.0.1")).identity, Identity::Stranger);
}

/// Header forms against the decision: design.md section 7, forwarded addresses.
#[test]
fn forwarded_addresses_count_only_from_configured_proxies() {
    let gate = gate();
    let cases = [
        // peer, X-Forwarded-For, X-Real-Ip, trusted, address
        ("192.168.1.9", None, None, true, "192.168.1.9"),
        ("8.8.8.8", None, None, false, "8.8.8.8"),
        ("8.8.8.8", Some("192.168.1.9"), None, false, "8.8.8.8"),
        ("8.8.8.8", None, Some("127.0.0.1"), false, "8.8.8.8"),
        ("192.168.1.9", Some("192.168.1.10"), None, false, "192.168.1.9"),
        ("10.0.0.1", Some("192.168.1.9"), None, true, "192.168.1.9"),
        ("10.0.0.1", Some("192.168.1.9, 8.8.8.8"), None, false, "8.8.8.8"),
        ("10.0.0.1", Some("8.8.8.8, 192.168.1.9"), None, true, "192.168.1.9"),
        ("10.0.0.1", Some("192.168.1.9, 10.0.0.1"), None, true, "192.168.1.9"),
        ("10.0.0.1", Some("8.8.8.8"), Some("192.168.1.9"), false, "10.0.0.1"),
        ("10.0.0.1", Some("8.8.8.8, 192.168.1.9"), Some("192.168.1.9"), true, "192.168.1.9"),
        ("10.0.0.1", None, Some("192.168.1.9"), true, "192.168.1.9"),
        ("10.0.0.1", Some("rubbish"), None, false, "10.0.0.1"),
        ("10.0.0.1", Some(""), None, false, "10.0.0.1"),
        ("10.0.0.1", None, None, false, "10.0.0.1"),
        ("10.0.0.1", Some("10.0.0.1"), None, false, "10.0.0.1"),
        ("10.0.0.1", Some("192.168.1.9, 10.0.0.1"), Some("10.0.0.1"), false, "10.0.0.1"),
        ("::ffff:192.168.1.9", None, None, true, "192.168.1.9"),
    ];
    for (peer, forwarded_for, real_ip, trusted, address) in cases {
        let admission = gate.admit(&Facts { forwarded_for, real_ip, ..facts(peer) });
        assert_eq!(admission.identity == Identity::Trusted, trusted, "{peer} {forwarded_for:?} {real_ip:?}");
        assert_eq!(admission.address, address.parse::<IpAddr>().unwrap(), "{peer} {forwarded_for:?} {real_ip:?}");
    }
    assert_eq!(gate.admit(&Facts { has_forwarded: true, ..facts("192.168.1.9") }).identity, Identity::Stranger);
}

/// Containers often show everybody who comes from outside as one address of their own network.
#[test]
fn a_proxy_that_shows_everybody_as_another_proxy_makes_nobody_trusted() {
    let lists = || vec!["172.16.0.0/12".to_owned()];
    let gate = Gate::new(&Settings { trusted_clients: lists(), trusted_proxies: lists(), ..Settings::default() }).0;
    for (forwarded_for, real_ip) in [("172.17.0.1", None), ("172.17.0.1", Some("172.17.0.1")), ("172.17.0.9, 172.17.0.1", None)] {
        let admission = gate.admit(&Facts { forwarded_for: Some(forwarded_for), real_ip, ..facts("172.17.0.2") });
        assert_eq!(admission.identity, Identity::Stranger, "{forwarded_for}");
    }
}

/// The proxy of usual installations: it stands on the same machine and sets both headers.
fn behind_nginx() -> Gate {
    let trusted_clients = vec!["192.168.1.0/24".into(), "127.0.0.1".into(), "::1".into()];
    Gate::new(&Settings { trusted_clients, loopback_is_proxy: true, ..Settings::default() }).0
}

#[test]
fn programs_on_the_machine_of_the_proxy_are_known_through_it() {
    let gate = behind_nginx();
    for (forwarded_for, real_ip, trusted) in [
        (Some("127.0.0.1"), Some("127.0.0.1"), true),
        (Some("127.0.0.1"), None, true),
        (None, Some("127.0.0.1"), true),
        (Some("::1"), Some("::1"), true),
        (Some("127.0.0.1, 127.0.0.1"), Some("127.0.0.1"), true),
        (Some("rubbish, 127.0.0.1"), Some("127.0.0.1"), false),
        (Some("8.8.8.8, 127.0.0.1"), Some("127.0.0.1"), false),
        (Some("8.8.8.8, 127.0.0.1"), None, false),
        (Some("127.0.0.1"), Some("8.8.8.8"), false),
    ] {
        let admission = gate.admit(&Facts { forwarded_for, real_ip, ..facts("127.0.0.1") });
        assert_eq!(admission.identity == Identity::Trusted, trusted, "{forwarded_for:?} {real_ip:?}");
    }
}

proptest! {
    /// Whatever somebody outside writes: the proxy adds his address, with or without the other header.
    #[test]
    fn a_forged_list_gains_nothing(
        forged in prop::collection::vec(prop_oneof![
            Just("127.0.0.1".to_owned()), Just("::1".to_owned()), Just("192.168.1.9".to_owned()), Just("::ffff:127.0.0.1".to_owned()), "[ -~]{0,20}",
        ], 0..5),
        has_real in any::<bool>(),
    ) {
        let list = format!("{}, 8.8.8.8", forged.join(","));
        let real_ip = has_real.then_some("8.8.8.8");
        let admission = behind_nginx().admit(&Facts { forwarded_for: Some(&list), real_ip, ..facts("127.0.0.1") });
        prop_assert_eq!(admission.identity, Identity::Stranger);
        prop_assert_eq!(admission.address, "8.8.8.8".parse::<IpAddr>().unwrap());
    }
}

#[test]
fn names_that_anybody_can_register_carry_no_trust() {
    let gate = gate();
    let with = |host| gate.admit(&Facts { host: Some(host), ..facts("127.0.0.1") }).identity == Identity::Trusted;
    for ours in [
        "127.0.0.1:7125",
        "[::1]:7125",
        "localhost",
        "printer",
        "printer.local:7125",
        "printer.fritz.box",
        "PRINTER.LAN",
        "pi.attlocal.net",
        "printer.speedport.ip:7125",
        "pi.mynetworksettings.com",
        "good.page",
        "Voron.my.domain:7125",
    ] {
        assert!(with(ours), "{ours}");
    }
    for foreign in [
        "evil.com",
        "printer.evil.com:7125",
        "local.evil.com",
        "127.0.0.1.evil.com",
        "evil.com.",
        "pi.box",
        "printer.evil.box",
        "evilfritz.box",
        "evil.tailnet.ts.net",
        "evil.voron.my.domain",
        "my.domain",
    ] {
        assert!(!with(foreign), "{foreign}");
    }
    let rebound = gate.admit(&Facts { host: Some("evil.com"), origin: Some("http://evil.com"), ..facts("127.0.0.1") });
    assert_eq!(rebound.identity, Identity::Stranger);
}

#[test]
fn a_name_that_costs_trust_is_explained_once() {
    let gate = gate();
    let explained = |peer, host: &'static str| gate.explain(&gate.admit(&Facts { host: Some(host), ..facts(peer) }), Some(host));
    assert!(explained("127.0.0.1", "pi.box") && !explained("192.168.1.9", "pi.box"));
    assert!(explained("127.0.0.1", "x.ts.net"), "each name for itself");
    assert!(!explained("127.0.0.1", "printer.local"), "nothing was lost");
    assert!(!explained("8.8.8.8", "other.box"), "there was no trust to lose");
    let refused = Facts { host: Some("a.box"), ..facts("127.0.0.1") };
    let known = Admission { identity: Identity::Trusted, ..gate.admit(&refused) };
    assert!(!gate.explain(&known, refused.host), "credentials let the caller in");
}

#[test]
fn pages_of_other_origins_do_not_borrow_the_trust_of_an_address() {
    let gate = gate();
    let with = |origin| gate.admit(&Facts { origin: Some(origin), ..facts("127.0.0.1") });
    assert_eq!(with("http://printer:7125").identity, Identity::Trusted);
    assert_eq!(with("http://good.page").identity, Identity::Trusted);
    assert!(with("http://good.page").cors_allowed);
    assert_eq!(with("http://192.168.1.7").identity, Identity::Trusted, "an address that is trusted itself");
    let evil = with("http://evil.page");
    assert_eq!(evil.identity, Identity::Stranger);
    assert!(evil.cross_site && !evil.cors_allowed);
    assert_eq!(with("null").identity, Identity::Stranger);
    let image = gate.admit(&Facts { fetch_site: Some("cross-site"), ..facts("127.0.0.1") });
    assert!(image.cross_site && image.identity == Identity::Trusted);
}

#[test]
fn a_browser_must_show_a_page_of_ours() {
    let gate = gate();
    let browser = Facts { user_agent: Some("Mozilla/5.0 (X11)"), ..facts("127.0.0.1") };
    assert!(gate.admit(&browser).unproven_page);
    assert!(gate.admit(&Facts { referer: Some("http://evil.page/printer:7125/"), ..browser }).unproven_page);
    for ours in [
        Facts { referer: Some("http://printer:7125/files/"), ..browser },
        Facts { origin: Some("http://printer:7125"), ..browser },
        Facts { origin: Some("http://good.page"), ..browser },
        Facts { fetch_site: Some("same-origin"), ..browser },
        Facts { user_agent: Some("python-requests/2"), ..browser },
    ] {
        assert!(!gate.admit(&ours).unproven_page, "{ours:?}");
    }
}
