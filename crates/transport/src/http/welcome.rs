//! What a person sees who opens the API port without a front end.

use protocol::version::CORE_VERSION;

/// A small page in plain HTML: what this is and where to go.
#[must_use]
pub fn page(lines: &[String]) -> String {
    let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Bowsprit</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;\
         color-scheme:light dark}}code{{background:#8883;padding:.1em .3em;border-radius:.2em}}</style></head><body>\
         <h1>Bowsprit {CORE_VERSION}</h1><p>The printer's API server is running here. Point a front end such as Mainsail or Fluidd, \
         a slicer or an app at this address.</p><ul>{items}</ul>\
         <p>Try <a href=\"server/info\"><code>/server/info</code></a>.</p></body></html>"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_cannot_become_markup() {
        assert!(super::page(&["<script>".into()]).contains("&lt;script&gt;"));
    }
}
