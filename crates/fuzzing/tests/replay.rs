//! Replays the corpora of the fuzz targets, and cut and changed versions of every entry.

use std::fs;
use std::path::Path;

#[test]
fn corpora_hold() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, check) in fuzzing::all_targets() {
        let entries: Vec<_> = fs::read_dir(corpora.join(name)).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
        assert!(entries.len() >= 5, "the corpus of {name} is nearly empty");
        // The slicers share one reader and have many entries.
        let steps = if name.starts_with("metadata_") { 8 } else { 64 };
        for entry in &entries {
            check(entry);
            for step in (0..entry.len()).step_by(entry.len() / steps + 1) {
                check(&entry[..step]);
                let mut changed = entry.clone();
                changed[step] = changed[step].wrapping_add(1);
                check(&changed);
                changed[step] = 0x03;
                check(&changed);
            }
        }
    }
}
