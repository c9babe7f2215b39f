//! The bed mesh: a probed grid of heights, its refinement and saved profiles.

use serde_json::{Map, Value, json};

use super::noise::Noise;

/// Probed points in each direction.
const COUNT: usize = 3;
/// Points added between two probed ones.
const BETWEEN: usize = 2;
/// First and last probed coordinate, mm.
const RANGE: (f64, f64) = (20.0, 200.0);
/// Height at which the toolhead travels between points, mm.
pub(super) const TRAVEL_Z: f64 = 3.0;
/// Profiles kept.
const MAX_PROFILES: usize = 20;

/// State of the `bed_mesh` object.
#[derive(Debug, Clone, Default)]
pub(super) struct BedMesh {
    pub(super) profile: String,
    pub(super) probed: Vec<Vec<f64>>,
    pub(super) profiles: Map<String, Value>,
}

impl BedMesh {
    /// Points in the order in which they are probed: back and forth by rows.
    pub(super) fn points() -> Vec<[f64; 2]> {
        let at = |i: usize| RANGE.0 + (RANGE.1 - RANGE.0) * i as f64 / (COUNT - 1) as f64;
        let columns = |row: usize| (0..COUNT).map(move |i| if row.is_multiple_of(2) { i } else { COUNT - 1 - i });
        (0..COUNT).flat_map(|row| columns(row).map(move |column| [at(column), at(row)])).collect()
    }

    /// Stores a measurement: a slightly warped bed.
    pub(super) fn measure(&mut self, noise: &mut Noise) {
        let height = |noise: &mut Noise| ((0.1 * noise.sample()) * 1e6).round() / 1e6;
        self.probed = (0..COUNT).map(|_| (0..COUNT).map(|_| height(noise)).collect()).collect();
        self.save("default");
    }

    /// Saves the present mesh as a profile.
    pub(super) fn save(&mut self, name: &str) -> bool {
        if self.probed.is_empty() || (self.profiles.len() >= MAX_PROFILES && !self.profiles.contains_key(name)) {
            return false;
        }
        self.profiles.insert(name.to_owned(), json!({ "points": self.probed, "mesh_params": parameters() }));
        name.clone_into(&mut self.profile);
        true
    }

    /// Makes a profile the present mesh.
    pub(super) fn load(&mut self, name: &str) -> bool {
        let Some(points) = self.profiles.get(name).and_then(|p| serde_json::from_value(p["points"].clone()).ok()) else {
            return false;
        };
        self.probed = points;
        name.clone_into(&mut self.profile);
        true
    }

    /// Forgets the present mesh, not the profiles.
    pub(super) fn clear(&mut self) {
        self.profile.clear();
        self.probed.clear();
    }

    /// The `bed_mesh` object.
    pub(super) fn status(&self) -> Value {
        let (low, high) = if self.probed.is_empty() { (0.0, 0.0) } else { RANGE };
        let nothing = || json!([[]]);
        json!({
            "profile_name": self.profile,
            "mesh_min": [low, low],
            "mesh_max": [high, high],
            "probed_matrix": if self.probed.is_empty() { nothing() } else { json!(self.probed) },
            "mesh_matrix": if self.probed.is_empty() { nothing() } else { json!(self.refined()) },
            "profiles": self.profiles,
        })
    }

    /// The answer of `bed_mesh/dump_mesh`.
    pub(super) fn dump(&self) -> Value {
        let points = Self::points();
        let current = if self.probed.is_empty() {
            json!({})
        } else {
            json!({ "name": self.profile, "probed_matrix": self.probed, "mesh_matrix": self.refined(), "mesh_params": parameters() })
        };
        json!({
            "current_mesh": current,
            "profiles": self.profiles,
            "calibration": {
                "points": points,
                "config": {
                    "x_count": COUNT, "y_count": COUNT, "mesh_x_pps": BETWEEN, "mesh_y_pps": BETWEEN, "algo": "lagrange", "tension": 0.2,
                    "mesh_min": [RANGE.0, RANGE.0], "mesh_max": [RANGE.1, RANGE.1], "origin": null, "radius": null,
                },
                "probe_path": points,
                "rapid_path": points.iter().map(|p| json!([p, true])).collect::<Vec<_>>(),
            },
            "probe_offsets": [0.0, 0.0, 0.0],
        })
    }

    /// The grid with points added by straight interpolation.
    fn refined(&self) -> Vec<Vec<f64>> {
        let parts = BETWEEN + 1;
        let size = (COUNT - 1) * parts + 1;
        let at = |row: usize, column: usize| self.probed.get(row).and_then(|r| r.get(column)).copied().unwrap_or(0.0);
        let value = |i: usize, j: usize| {
            let (row, column) = (i / parts, j / parts);
            let (down, right) = ((i % parts) as f64 / parts as f64, (j % parts) as f64 / parts as f64);
            let (next_row, next_column) = ((row + 1).min(COUNT - 1), (column + 1).min(COUNT - 1));
            let upper = at(row, column) * (1.0 - right) + at(row, next_column) * right;
            let lower = at(next_row, column) * (1.0 - right) + at(next_row, next_column) * right;
            upper * (1.0 - down) + lower * down
        };
        (0..size).map(|i| (0..size).map(|j| value(i, j)).collect()).collect()
    }
}

fn parameters() -> Value {
    json!({
        "x_count": COUNT, "y_count": COUNT, "mesh_x_pps": BETWEEN, "mesh_y_pps": BETWEEN, "algo": "lagrange", "tension": 0.2,
        "min_x": RANGE.0, "max_x": RANGE.1, "min_y": RANGE.0, "max_y": RANGE.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_meshes_are_refined_and_kept_as_profiles() {
        let mut mesh = BedMesh::default();
        assert_eq!(mesh.status()["probed_matrix"], json!([[]]));
        assert!(!mesh.save("early"));
        mesh.measure(&mut Noise::new(3));
        let refined = mesh.refined();
        assert_eq!((refined.len(), refined[0].len()), (7, 7));
        assert_eq!(refined[6][6], mesh.probed[2][2]);
        assert_eq!(refined[3][0], mesh.probed[1][0]);
        mesh.clear();
        assert!(!mesh.load("other"));
        assert!(mesh.load("default"));
        assert_eq!(mesh.status()["profile_name"], "default");
        assert_eq!(BedMesh::points()[3], [200.0, 110.0]);
    }
}
