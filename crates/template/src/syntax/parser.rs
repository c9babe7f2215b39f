//! Statements.

use std::sync::Arc;

use super::ast::{Args, Expr};
use super::ast::{For, Kind, Macro, Stmt, Target};
use super::lexer::{self, Placed, Token};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{MAX_EXPRESSION_DEPTH, MAX_SOURCE, MAX_STATEMENT_DEPTH};

/// Parses a template.
pub(crate) fn template(source: &str) -> Result<Vec<Stmt>> {
    let source = check_size(source)?;
    let mut parser = Parser::new(lexer::template(&source)?);
    parser.statements(&[])
}

/// Parses an expression without braces.
pub(crate) fn expression(source: &str) -> Result<Expr> {
    let source = check_size(source)?;
    let mut parser = Parser::new(lexer::expression(&source)?);
    let expr = parser.tuple()?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => parser.fault("expected the end of the expression"),
    }
}

fn check_size(source: &str) -> Result<String> {
    if source.len() > MAX_SOURCE {
        return Err(Error::new(ErrorKind::Syntax, 0, format!("a template may have at most {MAX_SOURCE} bytes")));
    }
    Ok(source.replace("\r\n", "\n").replace('\r', "\n"))
}

pub(super) struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    /// Open brackets and unary operators around the present place.
    pub(super) nesting: u16,
    blocks: usize,
}

impl Parser {
    fn new(tokens: Vec<Placed>) -> Self {
        Self { tokens, at: 0, nesting: 0, blocks: 0 }
    }

    pub(super) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.at + ahead).map_or(&Token::End, |placed| &placed.token)
    }

    pub(super) fn line(&self) -> u32 {
        self.tokens.get(self.at).map_or(0, |placed| placed.line)
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    pub(super) fn fault<T>(&self, message: impl Into<String>) -> Result<T> {
        let message: String = message.into();
        Err(Error::new(ErrorKind::Syntax, self.line(), format!("{message}, found {}", found(self.peek()))))
    }

    pub(super) fn make(&self, line: u32, kind: Kind) -> Result<Expr> {
        let depth = kind.depth_of_parts() + 1;
        if depth > MAX_EXPRESSION_DEPTH {
            return Err(Error::new(ErrorKind::Syntax, line, "the expression is nested too deeply: use `set` for its parts"));
        }
        Ok(Expr { line, depth, kind })
    }

    pub(super) fn is_op(&self, operator: &str) -> bool {
        matches!(self.peek(), Token::Op(found) if *found == operator)
    }

    pub(super) fn skip_op(&mut self, operator: &str) -> bool {
        let found = self.is_op(operator);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_op(&mut self, operator: &str) -> Result<()> {
        if self.skip_op(operator) { Ok(()) } else { self.fault(format!("expected `{operator}`")) }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Name(name) if **name == *word)
    }

    pub(super) fn skip_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn name(&mut self, what: &str) -> Result<Arc<str>> {
        match self.peek() {
            Token::Name(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.fault(format!("expected {what}")),
        }
    }

    /// Statements up to one of the words `ends`, which is taken; without words, up to the end.
    fn statements(&mut self, ends: &[&str]) -> Result<Vec<Stmt>> {
        let begin = self.line();
        let mut statements = Vec::new();
        loop {
            match self.peek() {
                Token::Text(text) => {
                    statements.push(Stmt::Text(text.clone()));
                    self.at += 1;
                }
                Token::PrintBegin => {
                    self.at += 1;
                    statements.push(Stmt::Print(self.tuple()?));
                    match self.next() {
                        Token::PrintEnd => {}
                        _ => {
                            self.at -= 1;
                            return self.fault("expected `}`");
                        }
                    }
                }
                Token::BlockBegin => {
                    if let Token::Name(word) = self.peek_at(1)
                        && ends.contains(&&**word)
                    {
                        self.at += 1;
                        return Ok(statements);
                    }
                    self.at += 1;
                    statements.push(self.nested_statement()?);
                }
                _ if ends.is_empty() => return Ok(statements),
                _ => {
                    let expected = ends.iter().map(|end| format!("`{{% {end} %}}`")).collect::<Vec<_>>().join(" or ");
                    return Err(Error::new(ErrorKind::Syntax, begin, format!("a statement is not closed: expected {expected}")));
                }
            }
        }
    }

    fn block_end(&mut self) -> Result<()> {
        match self.peek() {
            Token::BlockEnd => {
                self.at += 1;
                Ok(())
            }
            _ => self.fault("expected `%}`"),
        }
    }

    /// The rest of an opening statement, its body, and the closing word.
    fn body(&mut self, end: &str) -> Result<Vec<Stmt>> {
        self.block_end()?;
        let body = self.statements(&[end])?;
        self.at += 1; // the closing word
        self.block_end()?;
        Ok(body)
    }

    fn nested_statement(&mut self) -> Result<Stmt> {
        self.blocks += 1;
        if self.blocks > MAX_STATEMENT_DEPTH {
            return self.fault("statements are nested too deeply");
        }
        let statement = self.statement();
        self.blocks -= 1;
        statement
    }

    fn statement(&mut self) -> Result<Stmt> {
        let line = self.line();
        let word = self.name("a statement such as `set`, `if`, `for` or `do`")?;
        match &*word {
            "do" => {
                let expr = self.tuple()?;
                self.block_end()?;
                Ok(Stmt::Do(expr))
            }
            "set" => self.set(),
            "if" => self.if_(),
            "for" => self.for_(),
            "with" => self.with(),
            "macro" => {
                let name = self.name("the name of the macro")?;
                let parameters = self.parameters()?;
                let body = self.body("endmacro")?;
                Ok(Stmt::Macro(Arc::new(Macro { name, parameters, body })))
            }
            "call" => {
                let parameters = if self.is_op("(") { self.parameters()? } else { Vec::new() };
                let call = self.expression()?;
                if !matches!(call.kind, Kind::Call(..)) {
                    return self.fault("expected a call of a macro");
                }
                let body = self.body("endcall")?;
                Ok(Stmt::Call(call, Arc::new(Macro { name: "caller".into(), parameters, body })))
            }
            "filter" => {
                let captured = self.make(line, Kind::Captured)?;
                let filtered = self.filter(captured)?;
                let filtered = self.filters(filtered)?;
                Ok(Stmt::Filter(filtered, self.body("endfilter")?))
            }
            "include" | "import" | "from" | "extends" | "block" => {
                Err(Error::new(ErrorKind::Syntax, line, format!("`{word}` is not available: a template stands alone")))
            }
            _ => Err(Error::new(
                ErrorKind::Syntax,
                line,
                "unknown statement: expected `set`, `if`, `for`, `do`, `with`, `macro`, `call`, `filter`, `raw` or the end of one of these",
            )),
        }
    }

    fn set(&mut self) -> Result<Stmt> {
        let line = self.line();
        let target = self.targets(true)?;
        if self.skip_op("=") {
            let value = self.tuple()?;
            self.block_end()?;
            return Ok(Stmt::Set(target, value));
        }
        let captured = self.make(line, Kind::Captured)?;
        let value = self.filters(captured)?;
        if !matches!(self.peek(), Token::BlockEnd) {
            return self.fault("expected `=` or `%}`");
        }
        Ok(Stmt::SetBlock(target, value, self.body("endset")?))
    }

    fn if_(&mut self) -> Result<Stmt> {
        let mut arms = Vec::new();
        loop {
            let condition = self.tuple_without_choice()?;
            self.block_end()?;
            let body = self.statements(&["elif", "else", "endif"])?;
            arms.push((condition, body));
            match self.next() {
                Token::Name(word) if &*word == "elif" => {}
                Token::Name(word) if &*word == "else" => {
                    let otherwise = self.body("endif")?;
                    return Ok(Stmt::If(arms, otherwise));
                }
                _ => {
                    self.block_end()?;
                    return Ok(Stmt::If(arms, Vec::new()));
                }
            }
        }
    }

    fn for_(&mut self) -> Result<Stmt> {
        let target = self.targets(false)?;
        if !self.skip_word("in") {
            return self.fault("expected `in`");
        }
        let iterable = self.tuple_without_choice()?;
        let condition = if self.skip_word("if") { Some(self.expression()?) } else { None };
        if self.is_word("recursive") {
            return self.fault("`recursive` is not available: expected `%}`");
        }
        self.block_end()?;
        let body = self.statements(&["else", "endfor"])?;
        let otherwise = if self.skip_word("else") {
            self.body("endfor")?
        } else {
            self.at += 1;
            self.block_end()?;
            Vec::new()
        };
        Ok(Stmt::For(Box::new(For { target, iterable, condition, body, otherwise })))
    }

    fn with(&mut self) -> Result<Stmt> {
        let mut assignments = Vec::new();
        while !matches!(self.peek(), Token::BlockEnd) {
            let target = self.target(false)?;
            self.expect_op("=")?;
            assignments.push((target, self.expression()?));
            if !self.skip_op(",") {
                break;
            }
        }
        Ok(Stmt::With(assignments, self.body("endwith")?))
    }

    fn targets(&mut self, members: bool) -> Result<Target> {
        let first = self.target(members)?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut targets = vec![first];
        while self.skip_op(",") {
            if matches!(self.peek(), Token::Name(_) | Token::Op("(")) && !self.is_word("in") {
                targets.push(self.target(false)?);
            }
        }
        Ok(Target::Tuple(targets))
    }

    fn target(&mut self, members: bool) -> Result<Target> {
        if self.skip_op("(") {
            self.nesting += 1;
            if self.nesting > MAX_EXPRESSION_DEPTH {
                return self.fault("brackets are nested too deeply");
            }
            let targets = self.targets(false)?;
            self.nesting -= 1;
            self.expect_op(")")?;
            return Ok(targets);
        }
        let name = self.name("the name of a variable")?;
        if matches!(&*name, "true" | "false" | "none" | "True" | "False" | "None" | "not" | "and" | "or" | "if" | "else" | "in" | "is") {
            self.at -= 1;
            return self.fault("expected the name of a variable");
        }
        if members && self.skip_op(".") {
            return Ok(Target::Member(name, self.name("a name after `.`")?));
        }
        Ok(Target::Name(name))
    }

    fn parameters(&mut self) -> Result<Vec<(Arc<str>, Option<Expr>)>> {
        self.expect_op("(")?;
        let mut parameters: Vec<(Arc<str>, Option<Expr>)> = Vec::new();
        while !self.skip_op(")") {
            if !parameters.is_empty() {
                self.expect_op(",")?;
                if self.skip_op(")") {
                    break;
                }
            }
            let name = self.name("the name of a parameter")?;
            let default = if self.skip_op("=") { Some(self.expression()?) } else { None };
            if default.is_none() && parameters.iter().any(|(_, default)| default.is_some()) {
                return self.fault("a parameter without default must not follow one with a default");
            }
            parameters.push((name, default));
        }
        Ok(parameters)
    }

    pub(super) fn no_args() -> Args {
        Args::default()
    }
}

/// A token as messages name it; names and texts are not repeated, for they may be part of a password.
fn found(token: &Token) -> String {
    match token {
        Token::Text(_) => "text".to_owned(),
        Token::PrintBegin => "`{`".to_owned(),
        Token::PrintEnd => "`}`".to_owned(),
        Token::BlockBegin => "`{%`".to_owned(),
        Token::BlockEnd => "`%}`".to_owned(),
        Token::Name(_) => "a name".to_owned(),
        Token::Str(_) => "a text in quotes".to_owned(),
        Token::Int(_) | Token::Float(_) => "a number".to_owned(),
        Token::Op(operator) => format!("`{operator}`"),
        Token::End => "the end".to_owned(),
    }
}
