//! Expressions, with the precedence that Jinja gives to operators.

use std::sync::Arc;

use super::ast::{Arg, Args, Comparison, Expr, Kind, Operator};
use super::lexer::Token;
use super::parser::Parser;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::MAX_EXPRESSION_DEPTH;
use crate::run::{filter_named, test_named};

impl Parser {
    /// Expressions separated by commas: a tuple, or just the one.
    pub(super) fn tuple(&mut self) -> Result<Expr> {
        self.tuple_of(Self::expression)
    }

    /// The same where `if` ends the expression.
    pub(super) fn tuple_without_choice(&mut self) -> Result<Expr> {
        self.tuple_of(Self::or)
    }

    fn tuple_of(&mut self, element: fn(&mut Self) -> Result<Expr>) -> Result<Expr> {
        let line = self.line();
        let first = element(self)?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op(",") {
            if self.ends_tuple() {
                break;
            }
            parts.push(element(self)?);
        }
        self.make(line, Kind::Tuple(parts))
    }

    fn ends_tuple(&self) -> bool {
        matches!(self.peek(), Token::PrintEnd | Token::BlockEnd | Token::End | Token::Op(")"))
    }

    /// One expression, with `a if b else c`.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_EXPRESSION_DEPTH {
            return self.fault("the expression is nested too deeply");
        }
        let mut value = self.or()?;
        while self.skip_word("if") {
            let line = self.line();
            let condition = Box::new(self.or()?);
            let otherwise = if self.skip_word("else") { Some(Box::new(self.expression()?)) } else { None };
            value = self.make(line, Kind::Choice(condition, Box::new(value), otherwise))?;
        }
        self.nesting -= 1;
        Ok(value)
    }

    fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        while self.skip_word("or") {
            let right = self.and()?;
            left = self.make(left.line, Kind::Or(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        while self.skip_word("and") {
            let right = self.not()?;
            left = self.make(left.line, Kind::And(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        if !self.is_word("not") {
            return self.comparison();
        }
        let line = self.line();
        self.next();
        self.deeper()?;
        let inner = self.not()?;
        self.nesting -= 1;
        self.make(line, Kind::Not(Box::new(inner)))
    }

    fn deeper(&mut self) -> Result<()> {
        self.nesting += 1;
        if self.nesting > MAX_EXPRESSION_DEPTH { self.fault("the expression is nested too deeply") } else { Ok(()) }
    }

    fn comparison(&mut self) -> Result<Expr> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison_operator() {
            rest.push((comparison, self.sum()?));
        }
        if rest.is_empty() { Ok(first) } else { self.make(first.line, Kind::Compare(Box::new(first), rest)) }
    }

    fn comparison_operator(&mut self) -> Option<Comparison> {
        let comparison = match self.peek() {
            Token::Op("==") => Comparison::Equal,
            Token::Op("!=") => Comparison::NotEqual,
            Token::Op("<") => Comparison::Less,
            Token::Op("<=") => Comparison::LessOrEqual,
            Token::Op(">") => Comparison::Greater,
            Token::Op(">=") => Comparison::GreaterOrEqual,
            Token::Name(word) if **word == *"in" => Comparison::In,
            Token::Name(word) if **word == *"not" && matches!(self.peek_at(1), Token::Name(next) if **next == *"in") => {
                self.next();
                Comparison::NotIn
            }
            _ => return None,
        };
        self.next();
        Some(comparison)
    }

    fn binary(&mut self, operators: &[(&'static str, Operator)], operand: fn(&mut Self) -> Result<Expr>) -> Result<Expr> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(text, _)| self.is_op(text)) {
            self.next();
            let right = operand(self)?;
            left = self.make(left.line, Kind::Binary(*operator, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr> {
        self.binary(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::concat)
    }

    fn concat(&mut self) -> Result<Expr> {
        let first = self.product()?;
        if !self.is_op("~") {
            return Ok(first);
        }
        let line = first.line;
        let mut parts = vec![first];
        while self.skip_op("~") {
            parts.push(self.product()?);
        }
        self.make(line, Kind::Concat(parts))
    }

    fn product(&mut self) -> Result<Expr> {
        let operators = [("*", Operator::Multiply), ("/", Operator::Divide), ("//", Operator::FloorDivide), ("%", Operator::Modulo)];
        self.binary(&operators, Self::power)
    }

    fn power(&mut self) -> Result<Expr> {
        self.binary(&[("**", Operator::Power)], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr> {
        let line = self.line();
        let minus = self.is_op("-");
        let expr = if minus || self.is_op("+") {
            self.next();
            self.deeper()?;
            let inner = Box::new(self.unary(false)?);
            self.nesting -= 1;
            self.make(line, if minus { Kind::Negative(inner) } else { Kind::Positive(inner) })?
        } else {
            self.primary()?
        };
        let expr = self.postfix(expr)?;
        if with_filters { self.filters(expr) } else { Ok(expr) }
    }

    fn primary(&mut self) -> Result<Expr> {
        let line = self.line();
        let kind = match self.peek().clone() {
            Token::Name(name) => match &*name {
                "true" | "True" => Kind::Bool(true),
                "false" | "False" => Kind::Bool(false),
                "none" | "None" => Kind::None,
                "and" | "or" | "not" | "in" | "is" | "if" | "else" => return self.fault("expected a value"),
                _ => Kind::Name(name),
            },
            Token::Str(mut text) => {
                while let Token::Str(more) = self.peek_at(1) {
                    text.push_str(more);
                    self.next();
                }
                Kind::Text(text.into())
            }
            Token::Int(value) => Kind::Int(value),
            Token::Float(value) => Kind::Float(value),
            Token::Op("(") => return self.brackets(),
            Token::Op("[") => {
                self.next();
                let items = self.items("]")?;
                return self.make(line, Kind::List(items));
            }
            Token::Op("{") => {
                self.next();
                return self.dictionary(line);
            }
            _ => return self.fault("expected a value"),
        };
        self.next();
        self.make(line, kind)
    }

    fn brackets(&mut self) -> Result<Expr> {
        let line = self.line();
        self.next();
        if self.skip_op(")") {
            return self.make(line, Kind::Tuple(Vec::new()));
        }
        let inner = self.tuple()?;
        self.expect_op(")")?;
        Ok(inner)
    }

    fn items(&mut self, end: &str) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        while !self.skip_op(end) {
            if !items.is_empty() {
                self.expect_op(",")?;
                if self.skip_op(end) {
                    break;
                }
            }
            items.push(self.expression()?);
        }
        Ok(items)
    }

    fn dictionary(&mut self, line: u32) -> Result<Expr> {
        let mut pairs = Vec::new();
        while !self.skip_op("}") {
            if !pairs.is_empty() {
                self.expect_op(",")?;
                if self.skip_op("}") {
                    break;
                }
            }
            let key = self.expression()?;
            self.expect_op(":")?;
            pairs.push((key, self.expression()?));
        }
        self.make(line, Kind::Dict(pairs))
    }

    fn postfix(&mut self, mut expr: Expr) -> Result<Expr> {
        loop {
            let line = self.line();
            let of = match self.peek() {
                Token::Op("." | "[" | "(") => Box::new(expr),
                _ => return Ok(expr),
            };
            let kind = match self.next() {
                Token::Op(".") => match self.next() {
                    Token::Name(name) => Kind::Attr(of, name),
                    Token::Int(index) => Kind::Item(of, Box::new(self.make(line, Kind::Int(index))?)),
                    _ => return self.fault("expected a name after `.`"),
                },
                Token::Op("[") => self.subscript(of)?,
                _ => Kind::Call(of, self.arguments()?),
            };
            expr = self.make(line, kind)?;
        }
    }

    fn subscript(&mut self, of: Box<Expr>) -> Result<Kind> {
        let mut parts = [None, None, None];
        let mut colons = 0;
        while !self.skip_op("]") {
            if self.skip_op(":") {
                colons += 1;
                if colons > 2 {
                    return self.fault("expected `]`");
                }
            } else if parts[colons].is_none() {
                parts[colons] = Some(if colons == 0 { self.tuple()? } else { self.expression()? });
            } else {
                return self.fault("expected `]`");
            }
        }
        match (colons, parts) {
            (0, [Some(index), ..]) => Ok(Kind::Item(of, Box::new(index))),
            (0, _) => self.fault("expected an index within `[` and `]`"),
            (_, parts) => Ok(Kind::Slice(of, Box::new(parts))),
        }
    }

    /// Arguments after `(`.
    fn arguments(&mut self) -> Result<Args> {
        let mut args = Vec::new();
        let mut seen_named = false;
        while !self.skip_op(")") {
            if !args.is_empty() {
                self.expect_op(",")?;
                if self.skip_op(")") {
                    break;
                }
            }
            let name = match (self.peek(), self.peek_at(1)) {
                (Token::Name(name), Token::Op("=")) => Some(name.clone()),
                _ => None,
            };
            args.push(if let Some(name) = name {
                self.next();
                self.next();
                seen_named = true;
                Arg::Named(name, self.expression()?)
            } else if self.skip_op("**") {
                seen_named = true;
                Arg::SpreadNamed(self.expression()?)
            } else if self.skip_op("*") {
                Arg::Spread(self.expression()?)
            } else if seen_named {
                return self.fault("expected arguments with names after the first one with a name");
            } else {
                Arg::Positional(self.expression()?)
            });
        }
        Ok(Args(args))
    }

    /// `| filter`, `is test` and calls after a value.
    pub(super) fn filters(&mut self, mut expr: Expr) -> Result<Expr> {
        loop {
            let line = self.line();
            expr = if self.skip_op("|") {
                self.filter(expr)?
            } else if self.skip_word("is") {
                self.test(expr)?
            } else if self.is_op("(") {
                self.next();
                let args = self.arguments()?;
                self.make(line, Kind::Call(Box::new(expr), args))?
            } else {
                return Ok(expr);
            };
        }
    }

    /// A filter after `|`.
    pub(super) fn filter(&mut self, expr: Expr) -> Result<Expr> {
        let line = self.line();
        let name = self.dotted("the name of a filter")?;
        let Some(function) = filter_named(&name) else {
            return Err(Error::new(ErrorKind::Syntax, line, format!("there is no filter `{name}`")));
        };
        let args = if self.skip_op("(") { self.arguments()? } else { Self::no_args() };
        self.make(line, Kind::Filter(Box::new(expr), function, args))
    }

    fn test(&mut self, expr: Expr) -> Result<Expr> {
        let negated = self.skip_word("not");
        let line = self.line();
        let name = self.dotted("the name of a test")?;
        let Some(function) = test_named(&name) else {
            return Err(Error::new(ErrorKind::Syntax, line, format!("there is no test `{name}`")));
        };
        let args = if self.skip_op("(") {
            self.arguments()?
        } else if self.starts_test_argument() {
            if self.is_word("is") {
                return self.fault("tests cannot be chained: expected `and`");
            }
            let argument = self.primary()?;
            Args(vec![Arg::Positional(self.postfix(argument)?)])
        } else {
            Self::no_args()
        };
        let test = self.make(line, Kind::Test(Box::new(expr), function, args))?;
        if negated { self.make(line, Kind::Not(Box::new(test))) } else { Ok(test) }
    }

    fn starts_test_argument(&self) -> bool {
        match self.peek() {
            Token::Name(word) => !matches!(&**word, "else" | "or" | "and" | "if" | "in" | "not" | "recursive"),
            Token::Str(_) | Token::Int(_) | Token::Float(_) | Token::Op("[" | "{") => true,
            _ => false,
        }
    }

    fn dotted(&mut self, what: &str) -> Result<Arc<str>> {
        let mut name = self.name(what)?;
        while self.skip_op(".") {
            name = format!("{name}.{}", self.name(what)?).into();
        }
        Ok(name)
    }
}
