//! Multipart forms, written by hand so that tests can write broken ones, too.

const BOUNDARY: &str = "-----------bowsprit-e2e";

/// A form under construction.
#[derive(Default)]
pub(crate) struct Form(Vec<u8>);

impl Form {
    pub(crate) fn field(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_bytes())
    }

    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.part(&format!("name=\"file\"; filename=\"{name}\""), content)
    }

    fn part(mut self, disposition: &str, content: &[u8]) -> Self {
        self.0.extend_from_slice(format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n").as_bytes());
        self.0.extend_from_slice(content);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// The body.
    pub(crate) fn body(mut self) -> Vec<u8> {
        self.0.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.0
    }

    /// The body as it is before its end: an upload that breaks off.
    pub(crate) fn unfinished(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn content_type() -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }
}
