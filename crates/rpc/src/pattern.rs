//! Routes with names in them: `/api/files/core/{root}/{path}`. A name stands for one segment, the last one for all the rest of the path.

/// What the names of a route stood for in a path: name and text, still percent-encoded.
pub type Captured = Vec<(String, String)>;

/// A route with names in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Fixed(String),
    Name(String),
}

impl Pattern {
    /// Reads a route; `None` when there are no names in it.
    pub(crate) fn parse(route: &str) -> Option<Self> {
        let part = |text: &str| match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some(name) => Part::Name(name.to_owned()),
            None => Part::Fixed(text.to_owned()),
        };
        let parts: Vec<Part> = route.split('/').map(part).collect();
        parts.iter().any(|part| matches!(part, Part::Name(_))).then_some(Self(parts))
    }

    /// What the names stand for, when the path is of this form. No name stands for nothing.
    pub(crate) fn captures(&self, path: &str) -> Option<Captured> {
        let mut texts = path.splitn(self.0.len(), '/');
        let mut captured = Captured::new();
        for part in &self.0 {
            let text = texts.next()?;
            match part {
                Part::Fixed(fixed) if fixed == text => {}
                Part::Name(name) if !text.is_empty() => captured.push((name.clone(), text.to_owned())),
                Part::Fixed(_) | Part::Name(_) => return None,
            }
        }
        Some(captured)
    }
}

/// The names in a route, in order.
pub(crate) fn names(route: &str) -> impl Iterator<Item = &str> {
    route.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_takes_the_rest() {
        let pattern = Pattern::parse("/files/{root}/{path}").unwrap();
        let captured = |path: &str| {
            let found = pattern.captures(path)?;
            Some(found.iter().map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(captured("/files/gcodes/a%20b.gcode").as_deref(), Some("root=gcodes path=a%20b.gcode"));
        assert_eq!(captured("/files/gcodes/sub/a.gcode").as_deref(), Some("root=gcodes path=sub/a.gcode"));
        for other in ["/files/gcodes", "/files/gcodes/", "/files//a", "/file/gcodes/a", "/", ""] {
            assert_eq!(captured(other), None, "{other}");
        }
        assert_eq!(Pattern::parse("/server/info"), None);
        assert_eq!(names("/files/{root}/{path}").collect::<Vec<_>>(), ["root", "path"]);
    }
}
