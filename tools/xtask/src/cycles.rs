//! Import cycles between the files of one crate: such files can only be read, moved and tested together.
//!
//! A file may use its parent module and its children; such pairs are one unit that was split for length. Any other
//! import that leads back to a file is a cycle. An import of an item that a parent module imports itself counts as one
//! of the parent.

use std::collections::{BTreeMap, BTreeSet};

use shell::repository::TextFile;

use crate::source::without_tests;

/// A module path; empty for the crate's root.
type Module = Vec<String>;
type Imports = BTreeMap<Module, BTreeSet<Module>>;

pub(crate) fn complaints(files: &[TextFile]) -> Vec<String> {
    let found = by_crate(files).into_iter().filter_map(|(folder, files)| {
        let found = cyclic(&imports(&files));
        let names: Vec<String> = found.iter().map(|module| module.join("::")).collect();
        let text = format!(
            "{folder}: {} files import each other in a circle: {}",
            names.len(),
            names.join(", ")
        );
        (!names.is_empty()).then_some(text)
    });
    found.collect()
}

/// The files under each crate's `src`, except tests, by module.
fn by_crate(files: &[TextFile]) -> BTreeMap<String, BTreeMap<Module, &str>> {
    let mut crates: BTreeMap<String, BTreeMap<Module, &str>> = BTreeMap::new();
    for file in files {
        let Some((folder, path)) = file.path.split_once("/src/") else { continue };
        let Some(path) = path.strip_suffix(".rs").filter(|_| !path.ends_with("tests.rs")) else {
            continue;
        };
        let module = match path {
            "lib" | "main" => Vec::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        crates.entry(folder.to_owned()).or_default().insert(module, &file.text);
    }
    crates
}

fn imports(files: &BTreeMap<Module, &str>) -> Imports {
    let mut imports = Imports::new();
    for (module, text) in files {
        let used = imports.entry(module.clone()).or_default();
        for path in own_paths(module, text) {
            // The longest prefix of a path that is a file; the rest are items in it.
            let file = (1..=path.len()).rev().find_map(|length| {
                path.get(..length).filter(|part| files.contains_key(*part)).map(<[String]>::to_vec)
            });
            used.extend(file.filter(|file| !file.starts_with(module) && !module.starts_with(file)));
        }
    }
    imports
}

/// All paths of a module's code that begin with `crate::`, `super::` or `self::`, from the crate's root on, with braces
/// expanded. Comments and the module's own tests do not count.
fn own_paths(module: &Module, text: &str) -> Vec<Module> {
    let code: String = without_tests(text)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | ':');
    let mut paths = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let (before, rest) = code.split_at(at);
            if !before.ends_with(is_part) {
                take_paths(&mut rest.chars().peekable(), &mut Vec::new(), &mut paths);
            }
        }
    }
    paths.iter().filter_map(|path| from_root(module, path)).collect()
}

/// A path as seen from a module, from the crate's root on.
fn from_root(module: &Module, path: &[String]) -> Option<Module> {
    let (mut full, mut rest) = (module.clone(), path);
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => full.clear(),
            "super" => full.pop().map(drop)?,
            "self" => {}
            _ => break,
        }
        rest = after;
    }
    full.extend_from_slice(rest);
    Some(full)
}

/// Reads `a::b` or `a::{b, c::d}` to its end.
fn take_paths(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    prefix: &mut Module,
    paths: &mut Vec<Module>,
) {
    let depth = prefix.len();
    let mut name = String::new();
    loop {
        match chars.peek().copied() {
            Some(sign) if sign.is_alphanumeric() || sign == '_' || sign == '#' => {
                name.push(sign);
                chars.next();
            }
            Some(':') => {
                chars.next();
                if chars.next_if_eq(&':').is_none() {
                    break;
                }
                prefix.push(std::mem::take(&mut name).trim_start_matches("r#").to_owned());
            }
            Some('{') => {
                chars.next();
                while chars.next_if(|sign| sign.is_whitespace() || *sign == ',').is_some() {}
                while chars.peek().is_some_and(|sign| *sign != '}') {
                    take_paths(chars, prefix, paths);
                    while chars.next_if(|sign| *sign != ',' && *sign != '}').is_some() {}
                    while chars.next_if(|sign| sign.is_whitespace() || *sign == ',').is_some() {}
                }
                chars.next();
                break;
            }
            _ => break,
        }
    }
    let mut path = prefix.clone();
    path.push(name.trim_start_matches("r#").to_owned());
    paths.push(path);
    prefix.truncate(depth);
}

/// Modules whose imports lead back to themselves.
fn cyclic(imports: &Imports) -> Vec<Module> {
    imports.keys().filter(|module| reaches(imports, module)).cloned().collect()
}

fn reaches(imports: &Imports, start: &Module) -> bool {
    let mut seen: BTreeSet<&Module> = BTreeSet::new();
    let mut next: Vec<&Module> = imports.get(start).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if module == start {
            return true;
        }
        if seen.insert(module) {
            next.extend(imports.get(module).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> Vec<TextFile> {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: format!("crates/x/src/{path}.rs"),
            text: (*text).to_owned(),
        };
        texts.iter().map(file).collect()
    }

    #[test]
    fn a_circle_is_found_and_a_way_without_one_is_not() {
        let circle = files(&[
            ("lib", "mod a;"),
            ("a", "use crate::b::c::Thing;"),
            ("b/c", "use crate::{\n    d::{self, E},\n    f,\n};"),
            ("d", "fn g() -> crate::a::H {}"),
            ("f", "// crate::a is only named here\n#[cfg(test)]\nmod tests { use crate::a; }"),
        ]);
        let found = complaints(&circle);
        assert_eq!(found, ["crates/x: 3 files import each other in a circle: a, b::c, d"]);
        assert_eq!(complaints(&circle[..3]), Vec::<String>::new());
    }

    #[test]
    fn a_file_and_its_children_are_one() {
        let family = files(&[("a", "use crate::a::b::C;"), ("a/b", "use crate::a::D;")]);
        assert_eq!(complaints(&family), Vec::<String>::new());
        let family = files(&[("a", "use self::b::C;"), ("a/b", "use super::{D, super::E};")]);
        assert_eq!(complaints(&family), Vec::<String>::new());
    }

    #[test]
    fn a_circle_of_relative_paths_is_found() {
        let circle = files(&[
            ("a", "mod b; mod c; use self::b::B;"),
            ("a/b", "use super::c::d::{self, D};"),
            ("a/c", "mod d;"),
            ("a/c/d", "pub use super::super::super::e::E;\npub(super) fn f(_: super::super::G) {}"),
            ("e", "use crate::a::b;"),
        ]);
        let found = complaints(&circle);
        assert_eq!(found, ["crates/x: 3 files import each other in a circle: a::b, a::c::d, e"]);
        assert_eq!(complaints(&circle[..4]), Vec::<String>::new());
    }

    #[test]
    fn code_after_an_item_for_tests_counts() {
        let circle = files(&[
            ("a", "#[cfg(test)]\nuse std::fmt;\nuse crate::b::B;"),
            ("b", "use super::a::A;\n#[cfg(test)]\npub(crate) mod tests {\n    use crate::c;\n}"),
            ("c", "use crate::b::B;"),
        ]);
        let found = complaints(&circle);
        assert_eq!(found, ["crates/x: 2 files import each other in a circle: a, b"]);
    }
}
