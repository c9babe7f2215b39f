//! What it costs to know a caller: `cargo run --release -p access --example authenticate`. Numbers in docs/performance.md.

#![allow(clippy::print_stdout, reason = "it reports")]

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use access::accounts::{LoggedIn, Login};
use access::{Accounts, Credential, Facts, Gate, Options, PasswordHash, SCHEMA, Settings, Shown, StoredUser, Users};
use rpc::{Call, Connections, Role, UserSource};
use runtime::Secret;
use store::Store;

const RUNS: u32 = 2000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::in_memory(&[SCHEMA])?;
    let began = Instant::now();
    let password = PasswordHash::of("p")?;
    println!("hash a password            {:>9.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let anna = StoredUser { name: "anna".into(), source: UserSource::Core, role: Role::Admin, password, created_on: 0.0 };
    Users::new(store.clone()).import(anna).await?;
    let accounts = Accounts::new(&store, Arc::new(Connections::default()), Options::default(), None);
    accounts.load().await;

    // A token that is seen for the first time: as many sessions as fit, each checked once.
    let mut tokens = Vec::new();
    for _ in 0..50 {
        let login = Login { username: "anna".into(), password: Secret::new("p".into()), source: UserSource::Core };
        let LoggedIn { token, .. } = accounts.log_in(&Call::internal(), login).await?;
        tokens.push(token);
    }
    let began = Instant::now();
    for token in &tokens {
        black_box(accounts.authenticate(Credential::AccessToken(token))?);
    }
    println!("token, first time          {:>9.2} µs", began.elapsed().as_secs_f64() * 1e6 / 50.0);

    let (gate, _) = Gate::new(&Settings { trusted_clients: vec!["10.0.0.0/8".into()], ..Settings::default() });
    let bearer = format!("Bearer {}", tokens[0]);
    for (what, peer, authorization) in [("trusted address", "10.0.0.1", None), ("token, known", "192.168.0.1", Some(bearer.as_str()))] {
        let peer: IpAddr = peer.parse()?;
        let began = Instant::now();
        for _ in 0..RUNS {
            let facts = Facts {
                peer,
                forwarded_for: None,
                real_ip: None,
                has_forwarded: false,
                origin: None,
                host: Some("printer.local"),
                fetch_site: None,
                referer: None,
                user_agent: None,
            };
            let admission = accounts.admit(gate.admit(&facts), &Shown { authorization, ..Shown::default() });
            assert!(black_box(admission).identity.is_authorised());
        }
        println!("{what:<26} {:>9.2} µs", began.elapsed().as_secs_f64() * 1e6 / f64::from(RUNS));
    }
    Ok(())
}
