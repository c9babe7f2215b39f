//! Marks left in a file by the programs that may have changed it after slicing (section 3.7).

use super::area::Areas;

/// A program that changes sliced files and leaves a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// Replaces the time estimates; marks the end of the file.
    KlipperEstimator,
    /// Converts object comments to commands; marks the beginning of the file.
    PreprocessCancellation,
}

impl Processor {
    /// All of them, in the order they run and are reported.
    pub const ALL: &'static [Self] = &[Self::KlipperEstimator, Self::PreprocessCancellation];

    /// The name listed in `file_processors`.
    pub fn name(self) -> &'static str {
        match self {
            Self::KlipperEstimator => "klipper_estimator",
            Self::PreprocessCancellation => "preprocess_cancellation",
        }
    }

    fn has_marked(self, areas: &Areas<'_>) -> bool {
        let (area, mark) = match self {
            Self::KlipperEstimator => (areas.tail, "; Processed by klipper_estimator "),
            Self::PreprocessCancellation => (areas.head, "; Pre-Processed for Cancel-Object support by preprocess_cancellation "),
        };
        memchr::memmem::find_iter(area.0, mark).any(|at| {
            let at_line_start = at == 0 || area.0[at - 1] == b'\n';
            let version = &area.0[at + mark.len()..];
            let version = version.strip_prefix(b"v").unwrap_or(version);
            at_line_start && version.first().is_some_and(u8::is_ascii_digit)
        })
    }
}

/// Names of the processors whose marks are present.
pub(super) fn detect(areas: &Areas<'_>, wanted: &[Processor]) -> Vec<String> {
    wanted.iter().filter(|processor| processor.has_marked(areas)).map(|processor| processor.name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::area::Area;

    fn detected(text: &str) -> Vec<String> {
        let area = Area(text.as_bytes());
        detect(&Areas { head: area, tail: area }, Processor::ALL)
    }

    #[test]
    fn marks_stand_at_the_start_of_a_line_with_a_version() {
        let both =
            "; Pre-Processed for Cancel-Object support by preprocess_cancellation v0.2.1\nG1\n; Processed by klipper_estimator 3.7.3\n";
        assert_eq!(detected(both), ["klipper_estimator", "preprocess_cancellation"]);
        assert_eq!(detected("x; Processed by klipper_estimator 3.7.3\n"), [""; 0]);
        assert_eq!(detected("; Processed by klipper_estimator \n"), [""; 0]);
    }

    #[test]
    fn each_mark_counts_in_its_own_area_only() {
        let estimator = Area(b"; Processed by klipper_estimator v3.7\n");
        assert_eq!(detect(&Areas { head: estimator, tail: Area(b"") }, Processor::ALL), [""; 0]);
    }
}
