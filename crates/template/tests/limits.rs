//! What no template can do: run on, fill the memory, fill the stack. Each test has a stack as small as that of a worker thread.

#![allow(clippy::unwrap_used, clippy::panic)]

use template::limits::{MAX_OUTPUT, MAX_SOURCE};
use template::{Call, Context, ErrorKind, Failure, Host, NoHost, Template};

/// The message of the limit that a template reaches.
fn limit(source: &str) -> String {
    let source = source.to_owned();
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(move || {
        let error = match Template::compile(&source) {
            Ok(template) => template.render(&mut Context::default(), &mut NoHost).unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error.kind, ErrorKind::Limit | ErrorKind::Syntax), "{error:?}");
        error.message
    });
    thread.unwrap().join().unwrap()
}

#[test]
fn endless_work_ends() {
    for source in [
        "{% for i in range(10**9) %}{% endfor %}",
        "{% for i in range(10**9) %}{% for j in range(10**9) %}x{% endfor %}{% endfor %}",
        "{range(10**18)|sum}",
        "{range(10**9)|list}",
        "{10**9 in range(10**9)|list}",
        "{% set l = [1] %}{% for x in range(40) %}{% do l.extend(l) %}{% endfor %}",
        "{% set a = [[0]*1000]*1000 %}{% set b = [[0]*1000]*1000 %}{a == b}",
        "{range(700)|map('string')|map('center', 9)|map('list')|map('length')|list|length}{% for i in range(10**6) %}{i|string}{% endfor %}",
    ] {
        assert!(limit(source).contains("steps") || limit(source).contains("memory"), "{source}: {}", limit(source));
    }
}

#[test]
fn memory_is_bounded_before_it_is_taken() {
    for source in [
        "{'a' * 10**9}",
        "{10**15 * 'a'}",
        "{[0] * 10**12}",
        "{(1, 2) * 10**10}",
        "{'a'.center(10**12)}{'a'|center(10**12)}",
        "{'a'.ljust(10**12)}",
        "{'a'.zfill(10**12)}",
        "{'%999999999999d' % 1}",
        "{'%*d' % (10**12, 1)}",
        "{'{:>999999999999}'.format(1)}",
        "{'{:.999999999999f}'.format(1.0)}",
        "{'%.999999999f' % 1}",
        "{'%.999999999999d' % 1}",
        "{'a\\nb'|indent(10**12)}",
        "{[1]|tojson(10**12)}",
        "{('a' * 10**6)|replace('a', 'b' * 10**6)}",
        "{('a' * 10**6).replace('', 'b' * 10**6)}",
        "{(['a'] * 10**4)|join('b' * 10**6)}",
        "{[1, 2]|batch(10**12, 0)}",
        "{[1]|slice(10**12)}",
        "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set a = ['x'] * 1000 %}{% set b = [a] * 1000 %}{% set c = [b] * 1000 %}{c}",
        "{% set a = ['x'] * 1000 %}{% set b = [a] * 1000 %}{% set c = [b] * 1000 %}{c|tojson}",
    ] {
        let message = limit(source);
        assert!(["memory", "steps", "digits"].iter().any(|word| message.contains(word)), "{source}: {message}");
    }
}

#[test]
fn output_is_bounded() {
    assert!(limit(&"{% set a = 'x' * 600000 %}{a}{a}".replace("600000", &(MAX_OUTPUT / 2 + 1).to_string())).contains("output"));
}

#[test]
fn the_stack_is_bounded() {
    assert!(limit("{% macro a() %}{a()}{% endmacro %}{a()}").contains("deeply"));
    assert!(limit("{% macro a() %}{% if true %}{% if true %}{b()}{% endif %}{% endif %}{% endmacro %}{% macro b() %}{((a()))|upper}{% endmacro %}{a()}").contains("deeply"));
    assert!(limit("{% set l = [] %}{% do l.append(l) %}{l}").contains("contains itself"));
    assert!(limit("{% set l = [] %}{% do l.append(l) %}{l|tojson}").contains("contains itself"));
    assert!(limit("{% set l = [] %}{% do l.append(l) %}{% set m = [] %}{% do m.append(m) %}{l == m}").contains("contains itself"));
    assert!(limit("{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{ns.l}").contains("deeply"));
    for (open, close) in [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("{'a':", "}"), ("a(", ")"), ("a[", "]"), ("1 if a else ", "")] {
        let source = format!("{{ {}1{} }}", open.repeat(5000), close.repeat(5000));
        assert!(limit(&source).contains("deeply"), "{open}: {}", limit(&source));
    }
    for chain in ["+1", "|upper", ".a", "[0]", "()", " and 1", " or 1", "**2", " if 1"] {
        let source = format!("{{ a{} }}", chain.repeat(3000));
        assert!(limit(&source).contains("deeply"), "{chain}: {}", limit(&source));
    }
    let nested = format!("{}{}", "{% if a %}".repeat(2000), "{% endif %}".repeat(2000));
    assert!(limit(&nested).contains("deeply"));
    let targets = format!("{{% set {}a{} = 1 %}}", "(".repeat(3000), ")".repeat(3000));
    assert!(limit(&targets).contains("deeply"));
    let json = format!("{{ '{}'|fromjson }}", "[".repeat(10_000));
    assert!(Template::compile(&json).unwrap().render(&mut Context::default(), &mut NoHost).unwrap_err().message.contains("not JSON"));
}

#[test]
fn what_is_just_within_the_depth_works() {
    let work = || {
        let source = format!("{{ {}1{} }}", "(".repeat(30), ")".repeat(30));
        Template::compile(&source).unwrap().render(&mut Context::default(), &mut NoHost).unwrap()
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap();
    assert_eq!(thread.join().unwrap(), "1");
    let sum = Template::compile(&format!("{{ 1{} }}", "+1".repeat(40))).unwrap();
    assert_eq!(sum.render(&mut Context::default(), &mut NoHost).unwrap(), "41");
}

#[test]
fn a_long_source_is_refused() {
    assert!(limit(&"x".repeat(MAX_SOURCE + 1)).contains("bytes"));
}

#[test]
fn the_caller_can_end_it() {
    struct Impatient(usize);
    impl Host for Impatient {
        fn call(&mut self, _: &Call<'_>) -> Result<template::Answer, Failure> {
            Err(Failure::new(500, "no"))
        }
        fn check(&mut self) -> Result<(), Failure> {
            self.0 += 1;
            if self.0 == 3 { Err(Failure::new(504, "the template takes too long")) } else { Ok(()) }
        }
    }
    let template = Template::compile("{% for i in range(10**6) %}{% endfor %}").unwrap();
    let error = template.render(&mut Context::default(), &mut Impatient(0)).unwrap_err();
    assert_eq!((error.status(), error.message.as_str()), (504, "the template takes too long"));
}

#[test]
fn what_takes_time_is_not_rendered_quickly() {
    let quickly = |source: &str| {
        let template = Template::compile(source).unwrap();
        let mut context = Context::default().with("text", "x".repeat(1000));
        template.render_quickly(&mut context, &mut NoHost).map(|rendered| rendered.map_err(|error| error.to_string()))
    };
    assert_eq!(quickly("{ 1 + 1 }"), Some(Ok("2".to_owned())));
    assert!(quickly("{ raise_error('no') }").unwrap().unwrap_err().contains("no"), "a fault is known at once");
    for slow in
        ["{% for n in range(10000) %}{% endfor %}", "{ range(300000)|sum }", "{ (text * 1000)|length }", "{ (text * 100000)|length }"]
    {
        assert_eq!(quickly(slow), None, "{slow}");
    }
}
