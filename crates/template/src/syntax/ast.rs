//! The tree of a template.

use std::sync::Arc;

use crate::run::{FilterFn, TestFn};

/// A statement or a piece of text.
#[derive(Debug, Clone)]
pub(crate) enum Stmt {
    Text(Arc<str>),
    Print(Expr),
    Do(Expr),
    Set(Target, Expr),
    /// `{% set x | filter %} … {% endset %}`: the value is an expression over [`Kind::Captured`].
    SetBlock(Target, Expr, Vec<Stmt>),
    /// `{% filter upper %} … {% endfilter %}`.
    Filter(Expr, Vec<Stmt>),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(Box<For>),
    With(Vec<(Target, Expr)>, Vec<Stmt>),
    Macro(Arc<Macro>),
    /// `{% call(x) list(items) %} … {% endcall %}`: the call and what `caller` is.
    Call(Expr, Arc<Macro>),
}

#[derive(Debug, Clone)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) iterable: Expr,
    pub(crate) condition: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) otherwise: Vec<Stmt>,
}

#[derive(Debug, Clone)]
pub(crate) struct Macro {
    pub(crate) name: Arc<str>,
    pub(crate) parameters: Vec<(Arc<str>, Option<Expr>)>,
    pub(crate) body: Vec<Stmt>,
}

/// What can be assigned to.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Name(Arc<str>),
    /// `ns.name` of a namespace.
    Member(Arc<str>, Arc<str>),
    Tuple(Vec<Target>),
}

/// An expression.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) line: u32,
    pub(crate) depth: u16,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    /// What the block at hand has written.
    Captured,
    Name(Arc<str>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Attr(Box<Expr>, Arc<str>),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Box<[Option<Expr>; 3]>),
    Call(Box<Expr>, Args),
    Filter(Box<Expr>, FilterFn, Args),
    Test(Box<Expr>, TestFn, Args),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Concat(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    /// Condition, value, other value.
    Choice(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
}

/// Arguments of a call, in the order of the source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args(pub(crate) Vec<Arg>);

#[derive(Debug, Clone)]
pub(crate) enum Arg {
    Positional(Expr),
    Named(Arc<str>, Expr),
    /// `*list`
    Spread(Expr),
    /// `**dictionary`
    SpreadNamed(Expr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

impl Args {
    fn depth(&self) -> u16 {
        let depth = |argument: &Arg| match argument {
            Arg::Positional(expr) | Arg::Named(_, expr) | Arg::Spread(expr) | Arg::SpreadNamed(expr) => expr.depth,
        };
        self.0.iter().map(depth).max().unwrap_or(0)
    }
}

impl Kind {
    /// Depth of the deepest part.
    pub(crate) fn depth_of_parts(&self) -> u16 {
        let deepest = |parts: &[Expr]| parts.iter().map(|part| part.depth).max().unwrap_or(0);
        match self {
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) | Self::Captured | Self::Name(_) => 0,
            Self::List(parts) | Self::Tuple(parts) | Self::Concat(parts) => deepest(parts),
            Self::Dict(pairs) => pairs.iter().map(|(key, value)| key.depth.max(value.depth)).max().unwrap_or(0),
            Self::Attr(of, _) | Self::Not(of) | Self::Negative(of) | Self::Positive(of) => of.depth,
            Self::Item(a, b) | Self::Binary(_, a, b) | Self::And(a, b) | Self::Or(a, b) => a.depth.max(b.depth),
            Self::Slice(of, parts) => parts.iter().flatten().map(|part| part.depth).max().unwrap_or(0).max(of.depth),
            Self::Call(of, args) | Self::Filter(of, _, args) | Self::Test(of, _, args) => of.depth.max(args.depth()),
            Self::Compare(first, rest) => rest.iter().map(|(_, expr)| expr.depth).max().unwrap_or(0).max(first.depth),
            Self::Choice(test, then, otherwise) => {
                test.depth.max(then.depth).max(otherwise.as_ref().map_or(0, |otherwise| otherwise.depth))
            }
        }
    }
}
