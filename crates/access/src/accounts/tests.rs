//! Accounts over a database in memory.

use std::num::NonZeroU32;

use ring::pbkdf2::{PBKDF2_HMAC_SHA256, derive};
use rpc::{Call, ConnectionKind, Role};
use runtime::Secret;

use super::*;
use crate::password::PasswordHash;
use crate::tables::StoredUser;
use crate::token::SigningKey;
use crate::{DirectoryError, SCHEMA};

struct Bench {
    store: Store,
    accounts: Arc<Accounts>,
    connections: Arc<Connections>,
}

async fn bench() -> Bench {
    over(Store::in_memory(&[SCHEMA]).unwrap(), Options { max_login_attempts: 1000, ..Options::default() }, None).await
}

async fn over(store: Store, options: Options, directory: Option<Arc<dyn Directory>>) -> Bench {
    let connections = Arc::new(Connections::default());
    let accounts = Accounts::new(&store, connections.clone(), options, directory);
    accounts.load().await;
    Bench { store, accounts, connections }
}

fn login(name: &str, password: &str, source: UserSource) -> Login {
    Login { username: name.into(), password: Secret::new(password.into()), source }
}

impl Bench {
    async fn create(&self, name: &str) -> LoggedIn {
        self.accounts.create_user(&Call::internal(), name.into(), Secret::new("p".into()), Role::Admin).await.unwrap()
    }

    async fn log_in(&self, name: &str, password: &str) -> Result<LoggedIn, ApiError> {
        self.accounts.log_in(&Call::internal(), login(name, password, UserSource::Core)).await
    }

    fn is_user(&self, token: &str) -> bool {
        self.accounts.authenticate(Credential::AccessToken(token)).is_ok()
    }

    fn as_user(&self, user: &LoggedIn) -> Call {
        Call::http(Identity::User(user.user.clone()), protocol::Form::Neutral, None)
    }

    /// A token with the right key and the given claims.
    fn forged(&self, user: &User, name: &str, kind: TokenType, issuer: &str, expires: i64) -> String {
        let session = self.accounts.state.read().sessions[&user.session].clone();
        SigningKey::from_seed(&session.stored.seed).unwrap().sign(&user.session, issuer, name, kind, 0, expires).unwrap()
    }
}

#[tokio::test]
async fn tokens_count_until_their_end_and_for_their_purpose() {
    let bench = bench().await;
    let anna = bench.create("anna").await;
    let issuer = Options::default().issuer;
    let far = 99_999_999_999;
    for (name, kind, issuer, expires, counts) in [
        ("anna", TokenType::Access, issuer.as_str(), far, true),
        ("anna", TokenType::Access, issuer.as_str(), 1000, false),
        ("anna", TokenType::Refresh, issuer.as_str(), far, false),
        ("anna", TokenType::Access, "http://elsewhere", far, false),
        ("bob", TokenType::Access, issuer.as_str(), far, false),
    ] {
        let token = bench.forged(&anna.user, name, kind, issuer, expires);
        // The second look finds what the first one remembered.
        assert_eq!([bench.is_user(&token), bench.is_user(&token)], [counts, counts], "{name} {issuer} {expires}");
    }
    let expired = bench.forged(&anna.user, "anna", TokenType::Refresh, &issuer, 1000);
    assert_eq!(bench.accounts.refresh(&expired).err().unwrap().kind, ErrorKind::Unauthorized);
}

#[tokio::test]
async fn a_logout_ends_remembered_tokens_oneshots_and_connections() {
    let bench = bench().await;
    let (anna, bob) = (bench.create("anna").await, bench.create("bob").await);
    let peer = Peer { address: "10.0.0.1".parse().unwrap(), is_trusted: false };
    let oneshot = bench.accounts.oneshot(&Identity::User(anna.user.clone()), Some(&peer)).unwrap();
    let [annas, bobs] = [&anna, &bob].map(|user| {
        let registered = bench.connections.register(ConnectionKind::Websocket, Identity::Stranger, Some(peer));
        bench.accounts.authenticate_connection(&registered.connection, Credential::AccessToken(&user.token)).unwrap();
        registered
    });
    assert!(bench.is_user(&anna.token) && bench.is_user(&bob.token));
    bench.accounts.log_out(&bench.as_user(&anna)).await.unwrap();
    assert!(!bench.is_user(&anna.token) && bench.is_user(&bob.token));
    assert!(bench.accounts.refresh(&anna.refresh_token).is_err() && bench.accounts.refresh(&bob.refresh_token).is_ok());
    assert_eq!(bench.accounts.take_oneshot(&oneshot, &peer), None);
    assert_eq!((annas.connection.is_authorised(), bobs.connection.is_authorised()), (false, true));
    // One that was opened with an identity which ended meanwhile.
    let late = bench.connections.register(ConnectionKind::Websocket, Identity::User(anna.user.clone()), Some(peer));
    bench.accounts.confirm(&late.connection);
    assert!(!late.connection.is_authorised());
    assert_eq!(bench.accounts.log_out(&Call::internal()).await.unwrap_err().kind, ErrorKind::BadRequest);
}

#[tokio::test]
async fn imported_passwords_are_replaced_by_better_hashes_once() {
    let store = Store::in_memory(&[SCHEMA]).unwrap();
    let mut hash = [0; 32];
    derive(PBKDF2_HMAC_SHA256, NonZeroU32::new(100_000).unwrap(), &[7; 32], b"old", &mut hash);
    let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
    let password = PasswordHash::from_pbkdf2_hex(&hex(&[7; 32]), &hex(&hash)).unwrap();
    let user = StoredUser { name: "anna".into(), source: UserSource::Core, role: Role::Admin, password, created_on: 1.0 };
    assert!(Users::new(store.clone()).import(user.clone()).await.unwrap());
    let bench = over(store, Options::default(), None).await;
    assert!(bench.log_in("anna", "new").await.is_err());
    bench.log_in("anna", "old").await.unwrap();
    let stored = Users::new(bench.store.clone()).all().await.unwrap().remove(0);
    assert!(stored.password != user.password && !stored.password.is_outdated());
    bench.log_in("anna", "old").await.unwrap();
    assert_eq!(Users::new(bench.store.clone()).all().await.unwrap()[0], stored);
}

#[tokio::test]
async fn what_is_stored_comes_back() {
    let first = bench().await;
    let anna = first.create("anna").await;
    first.accounts.set_role("anna", Role::Viewer).await.unwrap();
    let key = first.accounts.create_key(NewKey { name: "k".into(), role: Role::Operator, expires_on: None }).await.unwrap();
    let second = over(first.store.clone(), Options::default(), None).await;
    assert_eq!(second.accounts.api_key().unwrap(), first.accounts.api_key().unwrap());
    let who = |credential| second.accounts.authenticate(credential).unwrap().role();
    assert_eq!((who(Credential::AccessToken(&anna.token)), who(Credential::ApiKey(&key))), (Some(Role::Viewer), Some(Role::Operator)));
    second.accounts.note_use().await;
    second.accounts.delete_user(&Call::internal(), "anna").await.unwrap();
    let third = over(first.store.clone(), Options::default(), None).await;
    assert!(third.accounts.list_users().is_empty() && !third.is_user(&anna.token));
}

#[tokio::test]
async fn a_user_has_so_many_sessions_and_the_stalest_gives_way() {
    let bench = bench().await;
    let first = bench.create("anna").await;
    bench.accounts.state.read().sessions[&first.user.session].last_used.note(f64::MAX);
    let owner = bench.accounts.list_users().remove(0);
    let mut tokens = Vec::new();
    for _ in 0..64 {
        tokens.push(bench.accounts.begin_session(&owner, &Call::internal()).await.unwrap().1.access);
    }
    assert_eq!(bench.accounts.state.read().sessions.len(), 64);
    assert!(bench.is_user(&first.token) && !bench.is_user(&tokens[0]) && bench.is_user(&tokens[63]));
}

#[tokio::test]
async fn keys_expire() {
    let bench = bench().await;
    let soon = now() + 0.2;
    let key = bench.accounts.create_key(NewKey { name: "k".into(), role: Role::Admin, expires_on: Some(soon) }).await.unwrap();
    let counts = || bench.accounts.authenticate(Credential::ApiKey(&key)).is_ok();
    assert!(counts());
    while now() < soon {
        tokio::task::yield_now().await;
    }
    assert!(!counts());
}

#[tokio::test]
async fn expired_sessions_are_forgotten() {
    let bench = over(Store::in_memory(&[SCHEMA]).unwrap(), Options { login_timeout: 0, ..Options::default() }, None).await;
    let anna = bench.create("anna").await;
    assert_eq!(bench.accounts.list_sessions(&bench.as_user(&anna), None).unwrap().len(), 1);
    bench.accounts.note_use().await;
    assert!(bench.accounts.list_sessions(&bench.as_user(&anna), None).unwrap().is_empty());
    assert!(bench.accounts.sessions.all().await.unwrap().is_empty());
}

#[tokio::test]
async fn unreadable_tables_let_nobody_in() {
    let options = Options { force_logins: true, ..Options::default() };
    let bench = over(Store::in_memory(&[]).unwrap(), options, None).await;
    assert!(bench.accounts.needs_login(), "whether there are users is not known");
    assert_eq!(bench.accounts.api_key().unwrap_err().kind, ErrorKind::Unavailable);
    assert!(bench.accounts.authenticate(Credential::ApiKey("")).is_err());
    assert_eq!(bench.log_in("anna", "p").await.err().unwrap().kind, ErrorKind::Unauthorized);
}

#[tokio::test]
async fn where_a_login_is_needed_anyway_the_name_is_not_to_blame() {
    let bench = over(Store::in_memory(&[SCHEMA]).unwrap(), Options { force_logins: true, ..Options::default() }, None).await;
    let by_address = crate::Admission {
        identity: Identity::Stranger,
        address: "127.0.0.1".parse().unwrap(),
        is_trusted_address: true,
        is_foreign_name: true,
        unproven_page: false,
        cross_site: false,
        cors_allowed: false,
    };
    let blames_the_name = || bench.accounts.admit(by_address.clone(), &crate::Shown::default()).is_foreign_name;
    assert!(blames_the_name(), "without users the address would do");
    bench.create("anna").await;
    assert!(!blames_the_name());
}

/// Knows `lisa`, also as `Lisa`, and two whose names mean something else here. `gone` finds nobody at home.
struct Fake;

impl Directory for Fake {
    fn check<'a>(
        &'a self,
        username: &'a str,
        password: &'a Secret<String>,
    ) -> futures_util::future::BoxFuture<'a, Result<String, DirectoryError>> {
        let name = username.to_lowercase();
        let result = match (name.as_str(), password.expose().as_str()) {
            ("lisa" | "anna", "l") => Ok(name),
            ("boss", "l") => Ok(rpc::identity::TRUSTED_USER.to_owned()),
            ("gone", _) => Err(DirectoryError::Unavailable("no route".into())),
            _ => Err(DirectoryError::Refused),
        };
        Box::pin(async move { result })
    }
}

#[tokio::test]
async fn users_of_a_directory_appear_at_their_first_login_and_stay_apart() {
    let options = Options { default_source: UserSource::Ldap, max_login_attempts: 1000, ..Options::default() };
    let bench = over(Store::in_memory(&[SCHEMA]).unwrap(), options, Some(Arc::new(Fake))).await;
    let by = async |name: &str, password: &str, source| bench.accounts.log_in(&Call::internal(), login(name, password, source)).await;
    assert_eq!(bench.accounts.default_source, UserSource::Ldap);
    for (name, password) in [("lisa", "x"), ("lisa", ""), ("", "l"), ("li\nsa", "l"), ("boss", "l")] {
        assert_eq!(by(name, password, UserSource::Ldap).await.err().unwrap().message, "Invalid username or password");
    }
    let lisa = by("lisa", "l", UserSource::Ldap).await.unwrap();
    assert_eq!((lisa.user.source, bench.accounts.list_users().len()), (UserSource::Ldap, 1));
    assert!(by("lisa", "l", UserSource::Core).await.is_err(), "no password of ours fits");
    let change = bench.accounts.change_password(&bench.as_user(&lisa), Secret::new("l".into()), Secret::new("m".into())).await;
    assert_eq!(change.err().unwrap().kind, ErrorKind::BadRequest);
    bench.create("anna").await;
    assert!(by("anna", "l", UserSource::Ldap).await.is_err() && by("anna", "p", UserSource::Core).await.is_ok());
    assert!(bench.accounts.list_users().iter().all(|user| user.source == UserSource::Core || user.password == PasswordHash::nothing()));
}

#[tokio::test]
async fn another_spelling_is_the_same_user_of_a_directory() {
    let options = Options { max_login_attempts: 1000, ..Options::default() };
    let bench = over(Store::in_memory(&[SCHEMA]).unwrap(), options, Some(Arc::new(Fake))).await;
    let by = async |name: &str, password: &str| bench.accounts.log_in(&Call::internal(), login(name, password, UserSource::Ldap)).await;
    by("lisa", "l").await.unwrap();
    bench.accounts.set_role("lisa", Role::Viewer).await.unwrap();
    let again = by("LISA", "l").await.unwrap().user;
    assert_eq!((again.name.as_str(), again.role), ("lisa", Role::Viewer), "no way to a new user with more rights");
    let gone = by("gone", "l").await.err().unwrap();
    assert!(gone.kind == ErrorKind::Unauthorized && gone.message.contains("cannot be asked"), "{gone:?}");
}
