//! Licence expressions: `MIT OR Apache-2.0`, `(A OR B) AND C`, the old `A/B`.

/// True when the expression can be satisfied with licences for which `allowed` holds.
pub fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut position = 0;
    let value = any(&tokens, &mut position, allowed);
    value && position == tokens.len()
}

fn any(tokens: &[&str], position: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut value = all(tokens, position, allowed);
    while tokens.get(*position) == Some(&"OR") {
        *position += 1;
        value |= all(tokens, position, allowed);
    }
    value
}

fn all(tokens: &[&str], position: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut value = one(tokens, position, allowed);
    while tokens.get(*position) == Some(&"AND") {
        *position += 1;
        value &= one(tokens, position, allowed);
    }
    value
}

fn one(tokens: &[&str], position: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let Some(token) = tokens.get(*position) else { return false };
    *position += 1;
    if *token == "(" {
        let value = any(tokens, position, allowed);
        *position += 1;
        return value;
    }
    if tokens.get(*position) == Some(&"WITH") {
        let exception = tokens.get(*position + 1).copied().unwrap_or_default();
        *position += 2;
        return allowed(&format!("{token} WITH {exception}"));
    }
    allowed(token)
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    #[test]
    fn expressions() {
        let allowed = |licence: &str| matches!(licence, "MIT" | "ISC" | "Apache-2.0 WITH LLVM-exception");
        for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(GPL-2.0 OR MIT) AND ISC", "Apache-2.0 WITH LLVM-exception OR GPL-2.0"] {
            assert!(satisfied(good, &allowed), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "", "(MIT OR GPL-3.0) AND Apache-2.0", "MIT)"] {
            assert!(!satisfied(bad, &allowed), "{bad}");
        }
    }
}
