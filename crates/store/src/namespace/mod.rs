//! Namespaces: JSON records under names, addressed by keys that lead into nested objects (Document 1, *Database*).
//!
//! [`Namespaces`] is the async handle: `client_*` for requests from outside, the others for our own components.
//! [`table`] has the same operations for use inside a larger transaction.

mod access;
mod check;
mod key;
pub mod table;
mod tree;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::{KeptAnswers, Store, StoreError};

pub use access::Access;
pub use check::{MAX_VALUE_BYTES, MAX_VALUE_DEPTH};
pub use key::{Key, MAX_KEY_BYTES, MAX_KEY_DEPTH, MAX_NAMESPACE_BYTES, Namespace};
pub use table::MAX_WHOLE_BYTES;
pub(crate) use table::SCHEMA;

/// The records of all namespaces. Cheap to clone.
#[derive(Clone)]
pub struct Namespaces {
    store: Store,
    /// What clients have read.
    kept: Arc<KeptAnswers<(Namespace, Option<Key>), Found>>,
    /// The names that clients have read.
    kept_names: Arc<KeptAnswers<(), Vec<String>>>,
}

/// A value, or why there is none: clients also ask for what is not there whenever they start.
type Found = Result<Arc<RawValue>, StoreError>;

/// For our own components: no restrictions.
impl Namespaces {
    /// The namespaces kept in `store`.
    pub fn new(store: Store) -> Self {
        let weigh = |found: &Found| found.as_ref().map_or(0, |json| json.get().len());
        let weigh_names = |names: &Vec<String>| names.iter().map(String::len).sum();
        Self { store, kept: Arc::new(KeptAnswers::new(weigh)), kept_names: Arc::new(KeptAnswers::new(weigh_names)) }
    }

    /// The value at `key`, or without a key the whole namespace as one object.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], with the text that clients compare.
    pub async fn get(&self, namespace: &Namespace, key: Option<&Key>) -> Result<Box<RawValue>, StoreError> {
        let (namespace, key) = (namespace.clone(), key.cloned());
        self.store.read(move |conn| table::get(conn, &namespace, key.as_ref())).await
    }

    /// Like [`Namespaces::get`] with a key, decoded; `None` when nothing is stored there.
    ///
    /// # Errors
    /// [`StoreError::BadValue`] when the stored value has another shape.
    pub async fn load<T: DeserializeOwned>(&self, namespace: &Namespace, key: &Key) -> Result<Option<T>, StoreError> {
        let json = match self.get(namespace, Some(key)).await {
            Err(StoreError::NotFound(_)) => return Ok(None),
            other => other?,
        };
        let wrong = |error| StoreError::BadValue(format!("stored '{key}' of '{namespace}': {error}"));
        serde_json::from_str(json.get()).map(Some).map_err(wrong)
    }

    /// Stores `value` at `key` and makes missing parents.
    ///
    /// # Errors
    /// [`StoreError::BadKey`], [`StoreError::BadValue`].
    pub async fn post(&self, namespace: &Namespace, key: &Key, value: Box<RawValue>) -> Result<(), StoreError> {
        let (namespace, key) = (namespace.clone(), key.clone());
        self.store.write(move |conn| table::post(conn, &namespace, &key, &value)).await
    }

    /// Like [`Namespaces::post`], of anything that encodes as JSON.
    ///
    /// # Errors
    /// [`StoreError::BadKey`], [`StoreError::BadValue`].
    pub async fn save<T: Serialize>(&self, namespace: &Namespace, key: &Key, value: &T) -> Result<(), StoreError> {
        let json = to_raw_value(value).map_err(|error| StoreError::BadValue(error.to_string()))?;
        self.post(namespace, key, json).await
    }

    /// Removes the value at `key` and returns it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn delete(&self, namespace: &Namespace, key: &Key) -> Result<Box<RawValue>, StoreError> {
        let (namespace, key) = (namespace.clone(), key.clone());
        self.store.write(move |conn| table::delete(conn, &namespace, &key)).await
    }

    /// All namespaces, sorted.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn list(&self) -> Result<Vec<String>, StoreError> {
        self.store.read(table::list).await
    }
}

/// For clients: forbidden namespaces do not show, protected ones do not change.
impl Namespaces {
    /// Like [`Namespaces::get`].
    ///
    /// # Errors
    /// Also [`StoreError::Forbidden`].
    pub async fn client_get(&self, namespace: &Namespace, key: Option<&Key>) -> Result<Arc<RawValue>, StoreError> {
        let question = (namespace.clone(), key.cloned());
        let (namespace, key) = question.clone();
        let work = move |conn: &_| {
            may_read(table::access(conn, &namespace)?, &namespace)?;
            match table::get(conn, &namespace, key.as_ref()) {
                Ok(json) => Ok(Ok(json.into())),
                Err(none @ StoreError::NotFound(_)) => Ok(Err(none)),
                Err(fault) => Err(fault),
            }
        };
        self.store.recall(&self.kept, question, work).await?
    }

    /// Like [`Namespaces::post`].
    ///
    /// # Errors
    /// Also [`StoreError::Forbidden`] and [`StoreError::Protected`].
    pub async fn client_post(&self, namespace: &Namespace, key: &Key, value: Box<RawValue>) -> Result<(), StoreError> {
        let (namespace, key) = (namespace.clone(), key.clone());
        let work = move |conn: &_| {
            may_write(table::access(conn, &namespace)?, &namespace)?;
            table::post(conn, &namespace, &key, &value)
        };
        self.store.write(work).await
    }

    /// Like [`Namespaces::client_post`], but protected namespaces can be written: for debugging.
    ///
    /// # Errors
    /// Also [`StoreError::Forbidden`].
    pub async fn debug_post(&self, namespace: &Namespace, key: &Key, value: Box<RawValue>) -> Result<(), StoreError> {
        let (namespace, key) = (namespace.clone(), key.clone());
        let work = move |conn: &_| {
            may_read(table::access(conn, &namespace)?, &namespace)?;
            table::post(conn, &namespace, &key, &value)
        };
        self.store.write(work).await
    }

    /// Like [`Namespaces::delete`].
    ///
    /// # Errors
    /// Also [`StoreError::Forbidden`] and [`StoreError::Protected`].
    pub async fn client_delete(&self, namespace: &Namespace, key: &Key) -> Result<Box<RawValue>, StoreError> {
        let (namespace, key) = (namespace.clone(), key.clone());
        let work = move |conn: &_| {
            may_write(table::access(conn, &namespace)?, &namespace)?;
            table::delete(conn, &namespace, &key)
        };
        self.store.write(work).await
    }

    /// Like [`Namespaces::client_delete`], but protected namespaces can be written: for debugging.
    ///
    /// # Errors
    /// Also [`StoreError::Forbidden`].
    pub async fn debug_delete(&self, namespace: &Namespace, key: &Key) -> Result<Box<RawValue>, StoreError> {
        let (namespace, key) = (namespace.clone(), key.clone());
        let work = move |conn: &_| {
            may_read(table::access(conn, &namespace)?, &namespace)?;
            table::delete(conn, &namespace, &key)
        };
        self.store.write(work).await
    }

    /// The namespaces that clients may read, sorted.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn client_list(&self) -> Result<Vec<String>, StoreError> {
        let work = |conn: &_| {
            let mut visible = Vec::new();
            for name in table::list(conn)? {
                if table::access(conn, &Namespace::parse(&name)?)? < Access::Forbidden {
                    visible.push(name);
                }
            }
            Ok(visible)
        };
        self.store.recall(&self.kept_names, (), work).await
    }
}

fn may_read(access: Access, namespace: &Namespace) -> Result<(), StoreError> {
    match access {
        Access::Free | Access::Protected => Ok(()),
        Access::Forbidden => Err(StoreError::Forbidden(namespace.to_string())),
    }
}

fn may_write(access: Access, namespace: &Namespace) -> Result<(), StoreError> {
    match access {
        Access::Free => Ok(()),
        Access::Protected => Err(StoreError::Protected(namespace.to_string())),
        Access::Forbidden => Err(StoreError::Forbidden(namespace.to_string())),
    }
}
