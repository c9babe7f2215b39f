//! Every bound of templates, in one place.

/// Largest source of one template in bytes.
pub const MAX_SOURCE: usize = 64 * 1024;

/// Deepest nesting of an expression: brackets, operators, calls and filters.
pub const MAX_EXPRESSION_DEPTH: u16 = 80;

/// Deepest nesting of statements in the source.
pub const MAX_STATEMENT_DEPTH: usize = 24;

/// Most steps of one rendering: a step is an expression, a statement or an element looked at.
pub const MAX_STEPS: usize = 500_000;

/// Longest text in bytes that a caller gives to a template which is to be rendered quickly.
pub const MAX_QUICK_TEXT: usize = 8 * 1024;

/// Steps of a template that is to be rendered quickly.
pub const MAX_QUICK_STEPS: usize = 2000;

/// Bytes of a template that is to be rendered quickly.
pub const MAX_QUICK_MEMORY: usize = 256 * 1024;

/// How often the caller is asked whether rendering may go on, in steps.
pub const STEPS_BETWEEN_CHECKS: usize = 1024;

/// Most memory in bytes that values made by one rendering may take in total.
pub const MAX_MEMORY: usize = 16 * 1024 * 1024;

/// Longest output of one rendering in bytes.
pub const MAX_OUTPUT: usize = 1024 * 1024;

/// Deepest nesting at run time, macros that call macros included.
pub const MAX_RUN_DEPTH: usize = 160;

/// Deepest nesting of lists and dictionaries that is written out or compared.
pub const MAX_VALUE_DEPTH: usize = 64;

/// Most digits after the decimal point that formatting and rounding keep.
pub const MAX_DIGITS: usize = 100;
