//! `[announcements]`.

use config::{OptionSet, Reader};

use super::feed;

config::options! {
    /// News of the programs on this machine, from feeds.
    pub struct AnnouncementOptions: "announcements" {
        /// Further feeds, one a line.
        subscriptions: Vec<String> = &[],
        /// Ask for feeds over the network. The server needs it for nothing else.
        enable_remote_feeds ["enable_moonlight"]: bool = true,
        /// Where the files of feeds are, as `<feed>.xml`.
        feeds_url: String = "https://arksine.github.io/moonlight/assets",
        /// For authors of feeds: read `development/announcements/<feed>.xml` in the data folder instead.
        dev_mode: bool = false,
    }
}

impl AnnouncementOptions {
    /// The section. What cannot be used is reported to the reader and left out.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let mut options: Self = reader.read_or_default();
        let (names, faults): (Vec<_>, Vec<_>) = options.subscriptions.iter().map(|name| feed::parse(name)).partition(Result::is_ok);
        options.subscriptions = names.into_iter().flatten().collect();
        for fault in faults.into_iter().filter_map(Result::err) {
            reader.reject(Self::SECTION, "subscriptions", fault.message);
        }
        if let Err(fault) = outbound::Request::get(&options.feeds_url) {
            reader.reject(Self::SECTION, "feeds_url", fault.to_string());
            options.feeds_url = Self::default().feeds_url;
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named_and_the_rest_counts() {
        let text = "[announcements]\nsubscriptions:\n  Spoolman\n  ../x\n  core\nenable_moonlight: false\nfeeds_url: ftp://x\n";
        let loaded = config::load_text("core.conf", text);
        let context = config::Context::default();
        let mut reader = Reader::new(&loaded.document, &context);
        let options = AnnouncementOptions::read(&mut reader);
        assert_eq!(options.subscriptions, ["spoolman", "moonraker"]);
        assert!(!options.enable_remote_feeds && options.feeds_url.starts_with("https://"));
        let problems: Vec<_> = reader.problems.iter().map(ToString::to_string).collect();
        assert!(problems.len() == 2 && problems[0].contains("'../x'") && problems[1].contains("feeds_url"), "{problems:?}");
    }
}
