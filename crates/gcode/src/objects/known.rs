//! The objects of a file: names, outlines, definitions.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::{Family, MAX_NAME_BYTES, MAX_OBJECTS, ObjectsError};

/// Index of an object in its [`Objects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObjectId(usize);

/// One object.
pub(super) struct Object {
    /// Name for the firmware.
    pub(super) name: String,
    /// Counted but neither defined nor marked: the -1 of `M486`, which stands for "no object".
    pub(super) hidden: bool,
    /// What `M486 A` called it; see [`Objects::name_as_given`].
    pub(super) given_name: Option<Box<[u8]>>,
    pub(super) outline: Outline,
}

/// Extent and centre of the points where an object extrudes, in mm.
#[derive(Default)]
pub(super) struct Outline {
    min: (f64, f64),
    max: (f64, f64),
    sum: (f64, f64),
    points: u64,
}

impl Outline {
    pub(super) fn add(&mut self, (x, y): (f64, f64)) {
        if self.points == 0 {
            self.min = (x, y);
            self.max = (x, y);
        }
        self.min = (self.min.0.min(x), self.min.1.min(y));
        self.max = (self.max.0.max(x), self.max.1.max(y));
        self.sum = (self.sum.0 + x, self.sum.1 + y);
        self.points += 1;
    }
}

/// What the survey of a file found.
pub(super) struct Objects {
    pub(super) family: Family,
    list: Vec<Object>,
    ids: HashMap<Box<[u8]>, ObjectId>,
    /// How many objects the file announces.
    pub(super) declared: Option<usize>,
    /// The last line that tells the time; empty if there is none.
    pub(super) last_clock: Vec<u8>,
}

impl Objects {
    pub(super) fn new(family: Family) -> Self {
        Self { family, list: Vec::new(), ids: HashMap::new(), declared: None, last_clock: Vec::new() }
    }

    pub(super) fn id(&self, key: &[u8]) -> Option<ObjectId> {
        self.ids.get(key).copied()
    }

    pub(super) fn get(&self, id: ObjectId) -> Option<&Object> {
        self.list.get(id.0)
    }

    pub(super) fn get_mut(&mut self, id: ObjectId) -> Option<&mut Object> {
        self.list.get_mut(id.0)
    }

    pub(super) fn all(&self) -> &[Object] {
        &self.list
    }

    /// How many objects the firmware will know.
    pub(super) fn visible(&self) -> usize {
        self.list.iter().filter(|object| !object.hidden).count()
    }

    /// The object with this key; a new one gets its name from `label`.
    pub(super) fn intern(&mut self, key: &[u8], label: &[u8]) -> Result<ObjectId, ObjectsError> {
        if let Some(id) = self.id(key) {
            return Ok(id);
        }
        if self.list.len() == MAX_OBJECTS {
            return Err(ObjectsError::TooManyObjects);
        }
        if key.len().max(label.len()) > MAX_NAME_BYTES {
            return Err(ObjectsError::NameTooLong);
        }
        let id = ObjectId(self.list.len());
        let name = clean(label).unwrap_or_else(|| format!("object_{}", id.0));
        let hidden = self.family == Family::M486 && key == b"-1";
        self.list.push(Object { name, hidden, given_name: None, outline: Outline::default() });
        self.ids.insert(key.into(), id);
        Ok(id)
    }

    /// Gives objects the names the file has for them. Where two have the same, the second keeps its number as well.
    pub(super) fn name_as_given(&mut self) {
        let mut taken: HashSet<String> = HashSet::new();
        for object in &mut self.list {
            if let Some(name) = object.given_name.take().and_then(|label| clean(&label)) {
                object.name = if taken.contains(&name) { format!("{name}_{}", object.name) } else { name };
            }
            taken.insert(object.name.clone());
        }
    }
}

impl Object {
    /// The command that makes the object known to the firmware.
    pub(super) fn definition(&self) -> String {
        let mut line = format!("EXCLUDE_OBJECT_DEFINE NAME={}", self.name);
        let Outline { min, max, sum, points } = &self.outline;
        if *points > 0 {
            let count = *points as f64;
            let _ = write!(line, " CENTER={:.3},{:.3}", sum.0 / count, sum.1 / count);
            let [left, front, right, back] = [min.0, min.1, max.0, max.1].map(shortest);
            let _ = write!(line, " POLYGON=[[{left},{front}],[{left},{back}],[{right},{back}],[{right},{front}]]");
        }
        line
    }
}

/// Runs of anything but letters, digits and `_` become one `_`; none at the ends. `None` if nothing is left.
fn clean(label: &[u8]) -> Option<String> {
    let mut name = String::new();
    for char in String::from_utf8_lossy(label).chars() {
        if char.is_alphanumeric() || char == '_' {
            name.push(char);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    (!name.is_empty()).then(|| name.to_owned())
}

/// A number in the fewest digits that read back the same, with at least one decimal, as the established tool prints it.
fn shortest(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        // Its exponents have a sign and two digits.
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_letters_digits_and_underscores() {
        assert_eq!(clean(b"cube_1.stl(1)").as_deref(), Some("cube_1_stl_1"));
        assert_eq!(clean(b" C:/a b.stl id:0 copy 0 ").as_deref(), Some("C_a_b_stl_id_0_copy_0"));
        assert_eq!(clean("Würfel".as_bytes()).as_deref(), Some("Würfel"));
        assert_eq!(clean(b"a\xff\xfeb").as_deref(), Some("a_b"));
        assert_eq!(clean(b"__a__b__").as_deref(), Some("a__b"));
        assert_eq!(clean(b"(!)"), None);
    }

    #[test]
    fn numbers_have_the_shortest_form_with_a_decimal() {
        let forms = [(1.0, "1.0"), (-0.0, "-0.0"), (68.21, "68.21"), (0.00005, "5e-05"), (0.0001, "0.0001"), (1e16, "1e+16")];
        for (value, text) in forms {
            assert_eq!(shortest(value), text);
        }
    }

    #[test]
    fn a_definition_without_points_is_a_name() {
        let mut object = Object { name: "cube".into(), hidden: false, given_name: None, outline: Outline::default() };
        assert_eq!(object.definition(), "EXCLUDE_OBJECT_DEFINE NAME=cube");
        object.outline.add((1.0, 2.5));
        object.outline.add((2.0, 0.5));
        assert_eq!(
            object.definition(),
            "EXCLUDE_OBJECT_DEFINE NAME=cube CENTER=1.500,1.500 POLYGON=[[1.0,0.5],[1.0,2.5],[2.0,2.5],[2.0,0.5]]"
        );
    }

    #[test]
    fn given_names_stay_apart() {
        let mut objects = Objects::new(Family::M486);
        for (key, given) in [("0", Some("Box (1)")), ("1", None), ("2", Some("Box 1")), ("3", Some("!"))] {
            let id = objects.intern(key.as_bytes(), key.as_bytes()).unwrap();
            objects.get_mut(id).unwrap().given_name = given.map(|name| name.as_bytes().into());
        }
        objects.name_as_given();
        let names: Vec<_> = objects.all().iter().map(|object| object.name.as_str()).collect();
        assert_eq!(names, ["Box_1", "1", "Box_1_2", "3"]);
    }

    #[test]
    fn names_and_objects_are_bounded() {
        let mut objects = Objects::new(Family::Cura);
        assert!(matches!(objects.intern(&[b'a'; MAX_NAME_BYTES + 1], b"a"), Err(ObjectsError::NameTooLong)));
        for number in 0..MAX_OBJECTS {
            objects.intern(number.to_string().as_bytes(), b"part").unwrap();
        }
        assert!(matches!(objects.intern(b"one more", b"part"), Err(ObjectsError::TooManyObjects)));
        assert!(objects.intern(b"7", b"part").is_ok());
    }
}
