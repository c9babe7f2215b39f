//! A value that no log line can show by accident.

use std::fmt;

/// Hides its content from `Debug` and `Display`, so that a log line, an error chain or a derived `Debug` of a larger
/// struct cannot leak it. Only [`Secret::expose`] gives the content, which is easy to search for in a review.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides `content`.
    pub fn new(content: T) -> Self {
        Self(content)
    }

    /// The content. Never log it.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// The content, by value. Never log it.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(content: T) -> Self {
        Self(content)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_display_shows_the_content() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "read through Debug only")]
        struct Login {
            user: &'static str,
            password: Secret<String>,
        }
        let password = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{password} {password:?} {password:#?}"), "(hidden) (hidden) (hidden)");
        let login = Login { user: "anna", password: password.clone() };
        assert_eq!(format!("{login:?}"), "Login { user: \"anna\", password: (hidden) }");
        assert_eq!(password.expose(), "hunter2");
        assert_eq!(password.into_inner(), "hunter2");
    }
}
