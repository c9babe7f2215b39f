//! Remote methods: what gcode macros of the printer may call here (wire/5-fwhost.md section 7).

use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use protocol::ApiError;
use protocol::error::ApiResult;
use protocol::status::Text;
use serde_json::value::RawValue;

/// Names that may be registered; each is a request at every connection.
const MAX_METHODS: usize = 1024;

type Handler = Arc<dyn Fn(Box<RawValue>) + Send + Sync>;

/// Handlers by name.
#[derive(Default)]
pub(crate) struct RemoteMethods {
    handlers: Mutex<IndexMap<Text, Handler>>,
}

impl RemoteMethods {
    pub(crate) fn register(&self, name: &str, handler: Handler) -> ApiResult<()> {
        let mut handlers = self.handlers.lock();
        if handlers.contains_key(name) {
            return Err(ApiError::bad_request(format!("Remote method '{name}' is already registered")));
        }
        if handlers.len() >= MAX_METHODS {
            return Err(ApiError::bad_request(format!("More than {MAX_METHODS} remote methods")));
        }
        handlers.insert(name.into(), handler);
        Ok(())
    }

    pub(crate) fn unregister(&self, name: &str) {
        self.handlers.lock().shift_remove(name);
    }

    pub(crate) fn names(&self) -> Vec<Text> {
        self.handlers.lock().keys().cloned().collect()
    }

    /// Calls a handler; false when there is none. No lock is held meanwhile.
    pub(crate) fn call(&self, name: &str, params: Option<&RawValue>) -> bool {
        let Some(handler) = self.handlers.lock().get(name).cloned() else { return false };
        handler(params.map_or_else(|| RawValue::from_string("{}".into()).unwrap_or_default(), RawValue::to_owned));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once_and_free_again() {
        let methods = RemoteMethods::default();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = seen.clone();
        methods.register("beep", Arc::new(move |params| log.lock().push(params.get().into()))).unwrap();
        let error = methods.register("beep", Arc::new(|_| {})).unwrap_err();
        assert!(error.message.contains("'beep'"));
        assert!(methods.call("beep", Some(&RawValue::from_string("{\"a\": 1}".into()).unwrap())));
        assert!(methods.call("beep", None));
        assert!(!methods.call("boop", None));
        assert_eq!(*seen.lock(), ["{\"a\": 1}", "{}"]);
        methods.unregister("beep");
        assert!(methods.names().is_empty());
        methods.register("beep", Arc::new(|_| {})).unwrap();
        for index in 1..MAX_METHODS {
            methods.register(&format!("m{index}"), Arc::new(|_| {})).unwrap();
        }
        assert!(methods.register("one more", Arc::new(|_| {})).is_err());
    }
}
