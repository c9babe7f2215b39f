//! Enums whose variants are the permitted values of an option.

/// Declares an enum that is an [`OptionValue`](crate::OptionValue). Upper and lower case are equal on input; further names of a
/// variant follow after `|`; the first name is the one shown.
///
/// ```
/// config::choices! {
///     /// What a shutdown does.
///     pub enum ShutdownAction {
///         /// Cuts the power.
///         PowerOff = "poweroff" | "off",
///         /// Leaves the power on.
///         Halt = "halt",
///     }
/// }
/// assert_eq!(ShutdownAction::Halt.as_str(), "halt");
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident {
            $(#[$first_meta:meta])* $first:ident = $first_name:literal $(| $first_alias:literal)*
            $(, $(#[$rest_meta:meta])* $rest:ident = $rest_name:literal $(| $rest_alias:literal)*)* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $enum {
            $(#[$first_meta])* $first,
            $($(#[$rest_meta])* $rest,)*
        }

        impl $enum {
            /// The name shown to users.
            #[must_use]
            $vis fn as_str(self) -> &'static str {
                match self {
                    Self::$first => $first_name,
                    $(Self::$rest => $rest_name,)*
                }
            }
        }

        impl $crate::OptionValue for $enum {
            const EXPECTED: &'static str = concat!("one of `", $first_name, "`", $(", `", $rest_name, "`",)*);
            type Literal = Self;

            fn parse(text: &str, _: &$crate::Context) -> Result<Self, String> {
                let text = text.trim();
                let names: &[(&str, Self)] = &[
                    ($first_name, Self::$first), $(($first_alias, Self::$first),)*
                    $(($rest_name, Self::$rest), $(($rest_alias, Self::$rest),)*)*
                ];
                let known = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                known.map(|(_, value)| *value).ok_or_else(|| <Self as $crate::OptionValue>::EXPECTED.to_owned())
            }

            fn from_literal(literal: Self, _: &$crate::Context) -> Self {
                literal
            }

            fn to_json(&self) -> $crate::serde_json::Value {
                self.as_str().into()
            }
        }
    };
}
