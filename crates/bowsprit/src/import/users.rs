//! Users with the hashes of their passwords, and the API key. Nobody who is there already is changed.

use access::{PasswordHash, StoredUser, Users};
use rpc::{Role, UserSource};
use store::rusqlite::Row;
use store::{Foreign, Store, StoreError};

/// The table of the source. wire/1-core.md section 6.
const TABLE: &str = "authorized_users";

/// Length of an API key.
const KEY_LENGTH: usize = 32;

/// What is to be taken.
#[derive(Default)]
pub(super) struct Plan {
    users: Vec<StoredUser>,
    /// The key and when it was made.
    api_key: Option<(String, f64)>,
    left_out: Vec<String>,
}

struct Found {
    name: String,
    password: String,
    salt: String,
    source: String,
    created_on: f64,
}

impl Plan {
    /// Reads the source; without the table nothing is taken.
    pub(super) fn read(foreign: &Foreign) -> Result<Self, StoreError> {
        let mut plan = Self::default();
        if !foreign.has_table(TABLE)? {
            return Ok(plan);
        }
        let sql = format!("SELECT username, password, salt, source, created_on FROM {TABLE} ORDER BY username");
        let mut select = foreign.connection().prepare(&sql)?;
        for found in select.query_map([], found)? {
            plan.add(found?);
        }
        Ok(plan)
    }

    fn add(&mut self, found: Found) {
        if found.name == rpc::identity::API_KEY_USER {
            let is_key = found.password.len() == KEY_LENGTH && found.password.bytes().all(|byte| byte.is_ascii_alphanumeric());
            match is_key {
                true => self.api_key = Some((found.password, found.created_on)),
                false => self.left_out.push("the API key: it is not 32 letters or digits".to_owned()),
            }
            return;
        }
        if found.name == rpc::identity::TRUSTED_USER || found.name.is_empty() {
            return;
        }
        let Some(source) = UserSource::parse(&found.source) else {
            return self.left_out.push(format!("user {}: the source {} is not known", found.name, found.source));
        };
        let password = match source {
            UserSource::Ldap => Some(PasswordHash::nothing()),
            UserSource::Core => PasswordHash::from_pbkdf2_hex(&found.salt, &found.password),
        };
        match password {
            Some(password) => {
                let Found { name, created_on, .. } = found;
                self.users.push(StoredUser { name, source, role: Role::default(), password, created_on });
            }
            None => self.left_out.push(format!("user {}: the hash of the password cannot be read", found.name)),
        }
    }

    /// Takes users and key.
    pub(super) async fn carry_out(self, store: &Store) -> Result<Vec<String>, StoreError> {
        let table = Users::new(store.clone());
        let (mut taken, mut kept) = (Vec::new(), Vec::new());
        for user in self.users {
            let name = user.name.clone();
            if table.import(user).await? { taken.push(name) } else { kept.push(name) }
        }
        let mut report = Vec::new();
        for (what, names) in [("taken", taken), ("there already, not changed", kept)] {
            if !names.is_empty() {
                report.push(format!("users {what}: {}", names.join(", ")));
            }
        }
        if let Some((key, created_on)) = self.api_key {
            let is_taken = table.import_api_key(key, created_on).await?;
            report.push(format!("API key: {}", if is_taken { "taken" } else { "there already, not changed" }));
        }
        report.extend(self.left_out.into_iter().map(|text| format!("left out: {text}")));
        Ok(report)
    }
}

fn found(row: &Row<'_>) -> store::rusqlite::Result<Found> {
    Ok(Found {
        name: row.get(0)?,
        password: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        salt: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
        source: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        created_on: row.get::<_, Option<f64>>(4)?.unwrap_or_default(),
    })
}
