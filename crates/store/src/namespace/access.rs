//! Which namespaces clients may see and change. Our own components are not restricted.

/// What clients may do with a namespace, from free to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read and write.
    Free,
    /// Read only: our own components keep their records there.
    Protected,
    /// Nothing, and not listed.
    Forbidden,
}

/// wire/1-core.md section 8.4. Clients' names are translated before they come here, so nothing is ever stored under `moonraker`;
/// it is listed so that no path around the translation can make it a second, free namespace.
const PROTECTED: [&str; 5] = ["core", "moonraker", "gcode_metadata", "announcements", "update_manager"];

/// wire/1-core.md section 8.4.
const FORBIDDEN: [&str; 2] = ["database", "simplyprint"];

impl Access {
    /// The fixed rule for a namespace. Further ones may be named in the database itself:
    /// [`table::access`](super::table::access).
    pub fn of(namespace: &str) -> Self {
        if FORBIDDEN.contains(&namespace) {
            Self::Forbidden
        } else if PROTECTED.contains(&namespace) {
            Self::Protected
        } else {
            Self::Free
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_rules() {
        assert_eq!(Access::of("mainsail"), Access::Free);
        assert_eq!(Access::of("webcams"), Access::Free);
        assert_eq!(Access::of("core"), Access::Protected);
        assert_eq!(Access::of("moonraker"), Access::Protected);
        assert_eq!(Access::of("update_manager"), Access::Protected);
        assert_eq!(Access::of("database"), Access::Forbidden);
        assert!(Access::Forbidden > Access::Protected && Access::Protected > Access::Free);
    }
}
