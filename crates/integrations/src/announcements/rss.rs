//! Feed files: RSS 2.0 with exactly one channel. Source: document 2 *Announcements*, wire/2-files-jobs.md section 8.
//!
//! Nothing in a feed is trusted: document types (and so entities of their own) are refused, depth, number and lengths are bounded, and links
//! that are no addresses of HTTP are dropped.

use jiff::fmt::rfc2822;
use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// Largest feed file in bytes.
pub const MAX_FEED: usize = 1024 * 1024;

/// Items of a feed that are read; further ones are ignored.
pub const MAX_ITEMS: usize = 100;

/// Longest description in characters; a longer one is cut (document 2 *Limits*).
pub const MAX_DESCRIPTION: usize = 512;

/// Longest title in characters; a longer one is cut.
const MAX_TITLE: usize = 256;

/// Longest id in bytes; an item with a longer one is ignored.
const MAX_ID: usize = 512;

/// Longest link in bytes; a longer one is dropped.
const MAX_LINK: usize = 2048;

/// Deepest nesting of elements.
const MAX_DEPTH: usize = 32;

/// One item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Item {
    /// Unique id.
    pub guid: String,
    /// Title.
    pub title: String,
    /// Where there is more to read; empty when there is no usable link.
    pub link: String,
    /// Text, cut at [`MAX_DESCRIPTION`].
    pub description: String,
    /// True for what people should be alerted to.
    pub is_high: bool,
    /// Publication in Unix seconds; `None` when it is missing or cannot be read.
    pub date: Option<f64>,
}

/// Why something is no feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAFeed(pub String);

impl std::fmt::Display for NotAFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected RSS 2.0 with one channel: {}", self.0)
    }
}

/// The items of a feed that have an id, in their order.
///
/// # Errors
/// When the bytes are no feed, or a broken one: then nothing of it counts.
pub fn parse(bytes: &[u8]) -> Result<Vec<Item>, NotAFeed> {
    if bytes.len() > MAX_FEED {
        return Err(NotAFeed(format!("it is larger than {MAX_FEED} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| NotAFeed("it is not UTF-8".to_owned()))?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut document = Document::default();
    loop {
        match reader.read_event().map_err(|error| NotAFeed(error.to_string()))? {
            Event::Start(tag) => document.open(tag.name().as_ref())?,
            Event::Empty(tag) => {
                document.open(tag.name().as_ref())?;
                document.close();
            }
            Event::End(_) => document.close(),
            Event::Text(text) => document.text(&text.xml10_content()),
            Event::CData(text) => document.text(&text.xml10_content()),
            Event::GeneralRef(entity) => document.text(&resolved(&entity)),
            Event::DocType(_) => return Err(NotAFeed("it declares a document type".to_owned())),
            Event::Eof => return document.end(),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// The character of a reference. Names that XML does not know stay as they are written.
fn resolved(entity: &BytesRef<'_>) -> String {
    if let Ok(Some(character)) = entity.resolve_char_ref() {
        return character.to_string();
    }
    let name: &str = entity;
    match name {
        "amp" => "&".to_owned(),
        "lt" => "<".to_owned(),
        "gt" => ">".to_owned(),
        "quot" => "\"".to_owned(),
        "apos" => "'".to_owned(),
        other => format!("&{other};"),
    }
}

/// What was read so far.
#[derive(Default)]
struct Document {
    /// Names of the open elements, outermost first.
    path: Vec<String>,
    channels: usize,
    items: Vec<Item>,
    item: Item,
    /// Text of the open field of the open item.
    field: String,
}

impl Document {
    fn open(&mut self, name: &str) -> Result<(), NotAFeed> {
        if self.path.len() >= MAX_DEPTH {
            return Err(NotAFeed(format!("it is nested more than {MAX_DEPTH} deep")));
        }
        match self.path.len() {
            0 if name != "rss" => return Err(NotAFeed(format!("it begins with <{}>", name.chars().take(20).collect::<String>()))),
            1 if name == "channel" => self.channels += 1,
            2 => self.item = Item::default(),
            3 => self.field.clear(),
            _ => {}
        }
        self.path.push(name.to_owned());
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if self.path.len() > 3 && self.is_in_item() {
            self.field.push_str(text);
        }
    }

    fn close(&mut self) {
        if self.is_in_item() {
            match self.path.len() {
                3 => self.take_item(),
                4 => self.take_field(),
                _ => {}
            }
        }
        self.path.pop();
    }

    fn is_in_item(&self) -> bool {
        self.path.get(1).is_some_and(|name| name == "channel") && self.path.get(2).is_some_and(|name| name == "item")
    }

    fn take_item(&mut self) {
        let item = std::mem::take(&mut self.item);
        if !item.guid.is_empty() && item.guid.len() <= MAX_ID && self.items.len() < MAX_ITEMS {
            self.items.push(item);
        }
    }

    fn take_field(&mut self) {
        let Some(name) = self.path.last() else { return };
        let value = self.field.trim();
        match name.as_str() {
            "guid" => self.item.guid = value.to_owned(),
            "title" => self.item.title = cut(value, MAX_TITLE),
            "description" => self.item.description = cut(value, MAX_DESCRIPTION),
            "link" if is_link(value) => self.item.link = value.to_owned(),
            "category" => self.item.is_high = value.eq_ignore_ascii_case("high"),
            "pubDate" => self.item.date = date(value),
            _ => {}
        }
    }

    fn end(self) -> Result<Vec<Item>, NotAFeed> {
        if !self.path.is_empty() {
            return Err(NotAFeed("it breaks off".to_owned()));
        }
        match self.channels {
            1 => Ok(self.items),
            other => Err(NotAFeed(format!("it has {other} channels"))),
        }
    }
}

fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Front ends make it something to click on.
fn is_link(text: &str) -> bool {
    text.len() <= MAX_LINK && outbound::parse_url(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

#[allow(clippy::cast_precision_loss, reason = "seconds of any date are far below 2^53")]
fn date(text: &str) -> Option<f64> {
    Some(rfc2822::parse(text).ok()?.timestamp().as_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FEED: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:m="urn:m">
  <channel>
    <title>arksine/moonlight</title><guid>not an item's</guid>
    <item>
      <title>Tom &amp; <![CDATA[<Jerry>]]> &#x2713; &nbsp;</title>
      <link>https://example.org/1?a=1&amp;b=2</link>
      <description> many <b>bold</b> words </description>
      <pubDate>Wed, 09 Mar 2022 19:27:49 +0000</pubDate>
      <category>high</category>
      <guid isPermaLink="false">arksine/moonlight/issue/1</guid>
      <m:title>other</m:title>
    </item>
    <item><title>no id</title><guid/></item>
    <item><guid>b</guid><link>javascript:alert(1)</link><pubDate>yesterday</pubDate></item>
  </channel>
</rss>"#;

    fn refused(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn fields_of_items() {
        let items = parse(FEED.as_bytes()).unwrap();
        assert_eq!(items.len(), 2);
        let first = Item {
            guid: "arksine/moonlight/issue/1".to_owned(),
            title: "Tom & <Jerry> ✓ &nbsp;".to_owned(),
            link: "https://example.org/1?a=1&b=2".to_owned(),
            description: "many bold words".to_owned(),
            is_high: true,
            date: Some(1_646_854_069.0),
        };
        assert_eq!(items[0], first);
        assert_eq!(items[1], Item { guid: "b".to_owned(), ..Item::default() });
    }

    #[test]
    fn long_texts_are_cut_by_characters() {
        let long = "ü".repeat(2000);
        let item = &parse(
            format!("<rss><channel><item><guid>a</guid><description>{long}</description><title>{long}</title></item></channel></rss>")
                .as_bytes(),
        )
        .unwrap()[0];
        assert_eq!((item.description.chars().count(), item.title.chars().count()), (512, 256));
        let id = "x".repeat(MAX_ID + 1);
        assert_eq!(parse(format!("<rss><channel><item><guid>{id}</guid></item></channel></rss>").as_bytes()).unwrap(), []);
        let many = "<item><guid>a</guid></item>".repeat(MAX_ITEMS + 5);
        assert_eq!(parse(format!("<rss><channel>{many}</channel></rss>").as_bytes()).unwrap().len(), MAX_ITEMS);
    }

    #[test]
    fn what_is_no_feed() {
        assert!(refused("<html><body>404</body></html>").contains("begins with <html>"));
        assert!(
            refused("<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;\">]><rss><channel/></rss>").contains("document type")
        );
        assert!(refused("<rss><channel/><channel/></rss>").contains("2 channels"));
        assert!(refused("<rss/>").contains("0 channels"));
        assert!(refused("").contains("0 channels"));
        assert!(refused("<rss><channel><item>").contains("breaks off"));
        assert!(refused(&"<rss>".repeat(100)).contains("more than 32 deep"));
        assert!(refused("<rss><channel></rss>").starts_with("expected RSS 2.0 with one channel: "));
        assert!(parse(&[0xff, 0xfe]).unwrap_err().0.contains("UTF-8"));
        assert!(parse(&vec![b' '; MAX_FEED + 1]).unwrap_err().0.contains("larger"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_feed_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_feed_with_any_piece_replaced_keeps_the_bounds(at in 0..FEED.len(), length in 0_usize..40, piece in "[<>/&;a-z!\\[\\]\"= -]{0,30}") {
            let bytes = [&FEED.as_bytes()[..at], piece.as_bytes(), FEED.as_bytes().get(at + length..).unwrap_or(&[])].concat();
            for item in parse(&bytes).unwrap_or_default() {
                prop_assert!(!item.guid.is_empty() && item.guid.len() <= MAX_ID);
                prop_assert!(item.description.chars().count() <= MAX_DESCRIPTION);
                prop_assert!(item.link.is_empty() || item.link.starts_with("http"));
            }
        }
    }
}
