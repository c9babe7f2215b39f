//! Status queries and subscriptions: one tick evaluates them all (wire document 5, sections 5.2 and 5.3). Pure: no sockets, no clock.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::connection::ConnId;
use super::request::push;

/// Wanted objects: all fields (`None`) or some.
pub(super) type Wanted = Vec<(String, Option<Vec<String>>)>;

/// Fields of an object at a tick; `None` if there is no such object.
type Fields = Option<Map<String, Value>>;

/// A query waiting for the tick.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) conn: ConnId,
    /// Id of the request, if it wants an answer.
    pub(super) id: Option<Value>,
    pub(super) wanted: Wanted,
    /// Turn the query into a subscription with this template.
    pub(super) subscribe: Option<Map<String, Value>>,
}

#[derive(Debug)]
struct Subscription {
    template: Map<String, Value>,
    fields: Vec<(String, Vec<String>)>,
}

/// What a tick gives to connections.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    /// The result of a query.
    Answer(ConnId, Value, Value),
    /// A changed part.
    Update(ConnId, Value),
}

/// Pending queries, subscriptions, and the values of the last tick.
#[derive(Debug, Default)]
pub(super) struct Status {
    queries: Vec<Query>,
    subscriptions: BTreeMap<ConnId, Subscription>,
    last: HashMap<String, Fields>,
}

/// Reads the `objects` argument.
pub(super) fn wanted(objects: &Map<String, Value>) -> Result<Wanted, String> {
    let invalid = || "Invalid argument".to_owned();
    let mut wanted = Vec::new();
    for (name, fields) in objects {
        let fields = match fields {
            Value::Null => None,
            Value::Array(fields) => {
                let names: Option<Vec<String>> = fields.iter().map(|f| f.as_str().map(str::to_owned)).collect();
                Some(names.ok_or_else(invalid)?)
            }
            _ => return Err(invalid()),
        };
        wanted.push((name.clone(), fields));
    }
    Ok(wanted)
}

impl Status {
    /// Adds a query. A subscription replaces the connection's former one at once.
    pub(super) fn ask(&mut self, query: Query) {
        if query.subscribe.is_some() {
            self.subscriptions.remove(&query.conn);
        }
        self.queries.push(query);
    }

    /// Forgets a closed connection.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.subscriptions.remove(&conn);
        self.queries.retain(|q| q.conn != conn);
    }

    /// Forgets everything (the host restarts).
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Somebody is subscribed.
    pub(super) fn has_subscriptions(&self) -> bool {
        !self.subscriptions.is_empty()
    }

    /// Somebody waits for the tick.
    pub(super) fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }

    /// One tick: evaluates every wanted object once, answers queries, tells subscribers what changed since the last tick.
    pub(super) fn tick(&mut self, eventtime: f64, object: impl Fn(&str) -> Fields) -> Vec<Told> {
        let mut now: HashMap<String, Fields> = HashMap::new();
        let mut told = Vec::new();
        for (conn, subscription) in &self.subscriptions {
            let mut changes = Map::new();
            for (name, fields) in &subscription.fields {
                let value = now.entry(name.clone()).or_insert_with(|| object(name));
                let changed = changed_fields(self.last.get(name).and_then(Option::as_ref), value.as_ref(), fields);
                if !changed.is_empty() {
                    changes.insert(name.clone(), Value::Object(changed));
                }
            }
            if !changes.is_empty() {
                told.push(Told::Update(*conn, push(&subscription.template, json!({ "eventtime": eventtime, "status": changes }))));
            }
        }
        for query in std::mem::take(&mut self.queries) {
            let mut status = Map::new();
            let mut expanded = Vec::new();
            for (name, fields) in query.wanted {
                let value = now.entry(name.clone()).or_insert_with(|| object(&name));
                let fields = fields.unwrap_or_else(|| value.iter().flat_map(Map::keys).cloned().collect());
                let shown = fields.iter().map(|f| (f.clone(), field(value.as_ref(), f).clone())).collect();
                status.insert(name.clone(), Value::Object(shown));
                expanded.push((name, fields));
            }
            if let Some(template) = query.subscribe
                && !expanded.is_empty()
            {
                self.subscriptions.insert(query.conn, Subscription { template, fields: expanded });
            }
            if let Some(id) = query.id {
                told.push(Told::Answer(query.conn, id, json!({ "eventtime": eventtime, "status": status })));
            }
        }
        self.last = now;
        told
    }
}

fn field<'a>(fields: Option<&'a Map<String, Value>>, name: &str) -> &'a Value {
    fields.and_then(|f| f.get(name)).unwrap_or(&Value::Null)
}

fn changed_fields(before: Option<&Map<String, Value>>, now: Option<&Map<String, Value>>, names: &[String]) -> Map<String, Value> {
    names.iter().filter(|name| field(before, name) != field(now, name)).map(|name| (name.clone(), field(now, name).clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnId = ConnId(1);
    const B: ConnId = ConnId(2);

    fn query(conn: ConnId, objects: &Value, subscribe: bool) -> Query {
        let template = json!({ "m": 1 }).as_object().cloned();
        Query { conn, id: Some(json!(1)), wanted: wanted(objects.as_object().unwrap()).unwrap(), subscribe: template.filter(|_| subscribe) }
    }

    fn world(x: i64) -> impl Fn(&str) -> Fields {
        move |name| match name {
            "toolhead" => json!({ "x": x, "y": 0 }).as_object().cloned(),
            _ => None,
        }
    }

    #[test]
    fn unknown_things_are_there_but_empty() {
        let mut status = Status::default();
        status.ask(query(A, &json!({ "nope": null, "nope2": ["a"], "toolhead": ["x", "nope"] }), false));
        let expected = json!({ "eventtime": 1.5, "status": { "nope": {}, "nope2": { "a": null }, "toolhead": { "x": 1, "nope": null } } });
        assert_eq!(status.tick(1.5, world(1)), [Told::Answer(A, json!(1), expected)]);
        assert!(!status.has_subscriptions());
    }

    #[test]
    fn only_changes_are_told_and_only_once() {
        let mut status = Status::default();
        status.ask(query(A, &json!({ "toolhead": null }), true));
        assert_eq!(status.tick(1.0, world(1)).len(), 1);
        assert_eq!(status.tick(2.0, world(1)), []);
        let update = json!({ "m": 1, "params": { "eventtime": 3.0, "status": { "toolhead": { "x": 2 } } } });
        assert_eq!(status.tick(3.0, world(2)), [Told::Update(A, update)]);
        assert_eq!(status.tick(4.0, world(2)), []);
    }

    #[test]
    fn fields_that_vanish_are_told_as_null_and_new_ones_are_not() {
        let mut status = Status::default();
        status.ask(query(A, &json!({ "o": null }), true));
        status.tick(1.0, |_| json!({ "a": 1 }).as_object().cloned());
        let told = status.tick(2.0, |_| json!({ "b": 1 }).as_object().cloned());
        let update = json!({ "m": 1, "params": { "eventtime": 2.0, "status": { "o": { "a": null } } } });
        assert_eq!(told, [Told::Update(A, update)]);
    }

    #[test]
    fn subscriptions_are_replaced_and_cancelled() {
        let mut status = Status::default();
        status.ask(query(A, &json!({ "toolhead": null }), true));
        status.ask(query(B, &json!({ "toolhead": ["x"] }), true));
        status.tick(1.0, world(1));
        status.ask(query(A, &json!({ "toolhead": ["y"] }), true));
        let told = status.tick(2.0, world(2));
        assert!(matches!(&told[..], [Told::Update(B, _), Told::Answer(A, _, _)]), "{told:?}");
        status.ask(query(A, &json!({}), true));
        status.forget(B);
        assert_eq!(status.tick(3.0, world(3)), [Told::Answer(A, json!(1), json!({ "eventtime": 3.0, "status": {} }))]);
        assert!(!status.has_subscriptions());
    }

    #[test]
    fn malformed_objects() {
        for bad in [json!({ "a": "x" }), json!({ "a": [1] }), json!({ "a": {} })] {
            assert_eq!(wanted(bad.as_object().unwrap()), Err("Invalid argument".to_owned()));
        }
    }
}
