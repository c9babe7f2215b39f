//! Operations of document 2 *Webcams*.

use std::sync::Arc;

use protocol::webcam::Webcam;
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::Serialize;

use super::list::{Fields, Which};
use super::service::Webcams;

#[derive(Serialize, JsonSchema)]
struct OneWebcam {
    webcam: Webcam,
}

impl Webcams {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.webcams.list")
            .get("/server/webcams/list")
            .access(Access::View)
            .doc("All webcams, those of the configuration first.")
            .answer(self, |webcams, _, (): ()| Ok(webcams.all()));
        registry
            .op("server.webcams.get_item")
            .get("/server/webcams/item")
            .access(Access::View)
            .doc("One webcam.")
            .answer(self, |webcams, _, which: Which| Ok(OneWebcam { webcam: webcams.get(&which)? }));
        registry
            .op("server.webcams.post_item")
            .post("/server/webcams/item")
            .access(Access::Control)
            .doc("Adds a webcam, or changes the one with this uid or name.")
            .handle(self, |webcams, _, fields: Fields| async move { Ok(OneWebcam { webcam: webcams.put(fields).await? }) });
        registry
            .op("server.webcams.delete_item")
            .delete("/server/webcams/item")
            .access(Access::Control)
            .doc("Removes a webcam and answers it.")
            .handle(self, |webcams, _, which: Which| async move { Ok(OneWebcam { webcam: webcams.remove(&which).await? }) });
        registry
            .op("server.webcams.test")
            .post("/server/webcams/test")
            .access(Access::Control)
            .doc("The complete addresses of a webcam, and whether a snapshot comes within a second.")
            .handle(self, |webcams, call, which: Which| async move { webcams.test(&which, call.peer.map(|peer| peer.address)).await });
    }
}
