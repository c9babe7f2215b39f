//! Routes whose bodies are streams ([`crate::transfer`]); they are no operations.

use serde_json::{Map, Value, json};

use super::{arguments, failure};
use crate::identity::Access;
use crate::table::Operations;

/// Adds them to the paths of the OpenAPI document.
pub(super) fn describe(operations: &Operations, paths: &mut Map<String, Value>) {
    let text = json!({"type": "string"});
    let form = json!({"type": "object", "required": ["file"], "properties": {
        "file": {"type": "string", "format": "binary"}, "root": text, "path": text, "checksum": text, "print": {"enum": ["true", "false"]},
    }});
    let form = json!({"content": {"multipart/form-data": {"schema": form}}});
    let data = json!({"content": {"application/offset+octet-stream": {}}});
    let mut add = |path: &str, verb: &str, summary: &str, status: &str, body: Option<&Value>| {
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        let access = if verb == "get" && path.ends_with("{path}") { Access::View } else { Access::Control };
        entry[verb] = json!({
            "summary": summary, "x-access": access.as_str(), "security": [{}],
            "responses": {status: {"description": "Success"}, "default": failure()},
        });
        if let Some(body) = body {
            entry[verb]["requestBody"] = body.clone();
        }
        let parameters = arguments::of_route(path);
        if !parameters.is_empty() {
            entry[verb]["parameters"] = parameters.into();
        }
    };
    for upload in operations.uploads() {
        add(upload.route, "post", "Uploads a file.", "201", Some(&form));
    }
    add("/server/files/{root}/{path}", "get", "Downloads a file; ranges are served.", "200", None);
    let (all, one) = ("/server/files/uploads", "/server/files/uploads/{id}");
    add(all, "post", "Begins an upload that can be continued (tus 1.0).", "201", Some(&data));
    add(one, "head", "Tells in Upload-Offset how much of it is on the disk.", "200", None);
    add(one, "patch", "Continues it at Upload-Offset.", "204", Some(&data));
    add(one, "get", "The answer of a complete upload, as that of an upload in one request.", "200", None);
    add(one, "delete", "Gives it up.", "204", None);
    for (path, summary) in [
        ("/server/webcams/stream", "Moving pictures of a webcam (multipart/x-mixed-replace), by one connection to it for all who watch."),
        ("/server/webcams/snapshot", "One picture of a webcam."),
    ] {
        let text = json!({"type": "string"});
        let which = json!([{"name": "uid", "in": "query", "schema": text}, {"name": "name", "in": "query", "schema": text}]);
        paths.insert(
            path.to_owned(),
            json!({"get": {
                "summary": summary, "x-access": Access::View.as_str(), "security": [{}], "parameters": which,
                "responses": {"200": {"description": "Success"}, "default": failure()},
            }}),
        );
    }
}
