//! Checks the documents: every page is in the book, every link works wherever the page is read, every code
//! block is of a kind that something checks, and every command and path names something that exists.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

mod markdown;

use markdown::{Document, all, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Blocks that something else reads, by their first word.
const CHECKED: [(&str, &str); 7] = [
    (
        "rust",
        "`mod book` of src/lib.rs, and the README in it, and of the crate that the page is about: doc tests",
    ),
    ("sh", "here: `every_command_refers_to_what_exists`"),
    ("hex", "tests/wire_doc.rs, tests/session_doc.rs, tests/independent"),
    ("nginx", "tests/proxy.rs"),
    ("gdscript", "crates/godot/tests/run.sh"),
    ("python", "crates/python/tests/test_document.py, with `just python`"),
    ("csharp", "capi/csharp/tests/run.sh"),
];
/// Where docs.rs shows the files of a crate.
const SOURCES: &str = "https://docs.rs/crate/";
/// Published crates and their folders.
const PUBLISHED: [(&str, &str); 3] =
    [("whitewater", ""), ("whitewater-kcp-go", "crates/kcp-go"), ("whitewater-udp", "crates/udp")];
/// Blocks that are not run: pictures, formulas, files of other programs.
const SHOWN: [&str; 3] = ["text", "toml", "yaml"];

#[test]
fn every_page_is_in_the_book() {
    let summary = Document::read("docs/SUMMARY.md");
    let listed: BTreeSet<_> = summary.links().map(|link| format!("docs/{}", link.target)).collect();
    let pages: BTreeSet<_> = all()
        .into_iter()
        .map(|page| page.path)
        .filter(|path| path.starts_with("docs/") && path != "docs/SUMMARY.md")
        .collect();
    assert_eq!(listed, pages);
    assert_eq!(summary.links().count(), listed.len(), "each once");
}

/// Readers decide on this page whether to stay. Figures belong to docs/LATENCY.md and docs/PERFORMANCE.md.
#[test]
fn the_readme_is_short() {
    let size = fs::metadata(root().join("README.md")).unwrap().len();
    assert!(size <= 8192, "README.md has {size} bytes");
}

#[test]
fn every_link_leads_somewhere() {
    let documents: BTreeMap<_, _> =
        all().into_iter().map(|document| (document.path.clone(), document)).collect();
    let mut count = 0;
    for document in documents.values() {
        for link in document.links().filter(|link| !link.is_of_the_web()) {
            let path = link.path_from(&document.path);
            let found = root().join(&path).exists();
            assert!(found, "{}:{}: there is no {path}", document.path, link.line);
            if let (Some(anchor), Some(target)) = (link.anchor(), documents.get(&path)) {
                let has = target.anchors().contains(anchor);
                assert!(has, "{}:{}: there is no #{anchor} in {path}", document.path, link.line);
            }
            count += 1;
        }
    }
    assert!(count > 100, "only {count} links were found");
}

/// The book only contains the pages in docs, and docs.rs and crates.io show a README alone. A relative link
/// out of them is dead there, so it must be the URL of the file in a published crate. Name files that are in
/// no published crate by their path, in backticks.
#[test]
fn every_link_works_where_its_page_is_published() {
    for document in all() {
        let Some(home) = document.published_with() else { continue };
        for link in document.links().filter(|link| !link.is_of_the_web() && !link.is_image) {
            let path = link.path_from(&document.path);
            let stays = path == document.path || home.is_some_and(|home| path.starts_with(home));
            let at = format!("{}:{}", document.path, link.line);
            assert!(
                stays,
                "{at}: {} leaves what is published with the page; link to {SOURCES}..",
                link.target
            );
        }
    }
}

#[test]
fn every_link_to_a_published_file_names_one_that_is_packaged() {
    let mut count = 0;
    for document in all() {
        for link in document.links() {
            let Some(source) = link.target.strip_prefix(SOURCES) else { continue };
            let at = format!("{}:{}: {source}", document.path, link.line);
            let (name, path) =
                source.split_once("/latest/source/").unwrap_or_else(|| panic!("{at}: of what?"));
            let (path, anchor) =
                path.split_once('#').map_or((path, None), |(path, anchor)| (path, Some(anchor)));
            let folder = PUBLISHED.iter().find(|(known, _)| *known == name).map(|(_, folder)| *folder);
            let folder = root().join(folder.unwrap_or_else(|| panic!("{at}: not published")));
            assert!(folder.join(path).exists(), "{at}: not there");
            assert!(is_packaged(&folder, path), "{at}: not in the package");
            assert_eq!(anchor, None, "{at}: docs.rs shows the text of a file, without anchors");
            count += 1;
        }
    }
    assert!(count > 30, "only {count} links were found");
}

#[test]
fn every_path_in_backticks_exists() {
    let mut count = 0;
    for document in all().iter().filter(|document| document.path != "CHANGELOG.md") {
        let folder = root().join(Path::new(&document.path).parent().unwrap());
        for (line, path) in document.paths() {
            let is_there = root().join(path).exists() || folder.join(path).exists();
            assert!(is_there, "{}:{line}: there is no {path}", document.path);
            count += 1;
        }
    }
    assert!(count > 50, "only {count} paths were found");
}

/// A name of five words is a test's: settings and verbs have shorter ones, and statistics begin with `whitewater_`.
#[test]
fn every_test_that_a_page_names_exists() {
    let folders = ["benches", "capi", "crates", "examples", "fuzz/src", "interop", "src", "tests"];
    let sources = folders.map(|folder| sources(&root().join(folder))).concat();
    let mut count = 0;
    for document in all().iter().filter(|document| document.path != "CHANGELOG.md") {
        for (line, name) in document.names().filter(|(_, name)| !name.starts_with("whitewater_")) {
            let is_there = sources.contains(&format!("fn {name}("));
            assert!(is_there, "{}:{line}: there is no {name}", document.path);
            count += 1;
        }
    }
    assert!(count > 100, "only {count} tests were found");
}

#[test]
fn every_block_is_of_a_kind_that_something_checks() {
    for document in all() {
        for block in document.blocks() {
            let kind = block.info.split([' ', ',']).next().unwrap();
            let known = SHOWN.contains(&kind) || CHECKED.iter().any(|(known, _)| *known == kind);
            assert!(known, "{}:{}: a block of '{}'", document.path, block.line, block.info);
        }
    }
}

/// Code on a page that no doc test includes is never compiled.
#[test]
fn every_page_with_code_is_compiled() {
    let includes = [
        "src/lib.rs",
        "src/events.rs",
        "crates/bevy/src/lib.rs",
        "crates/fleet/src/lib.rs",
        "crates/kcp-go/src/lib.rs",
        "crates/relay/src/lib.rs",
        "crates/web/src/lib.rs",
    ]
    .map(|path| fs::read_to_string(root().join(path)).unwrap())
    .concat();
    for document in
        all().into_iter().filter(|document| document.blocks().any(|block| block.info.starts_with("rust")))
    {
        let included = includes.contains(&format!("../{}\"", document.path));
        assert!(included, "{} has code, and no doc test has it", document.path);
    }
    for block in all().iter().flat_map(Document::blocks).filter(|block| block.info.starts_with("rust")) {
        let skipped =
            ["ignore", "compile_fail", "should_panic"].iter().find(|word| block.info.contains(**word));
        assert_eq!(skipped, None, "line {}", block.line);
    }
}

#[test]
fn every_example_is_in_the_index() {
    let index = Document::read("examples/README.md");
    let commands: Vec<_> = index.commands().into_iter().map(|(_, command)| format!("{command} ")).collect();
    let entries = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let has_code = |path: &PathBuf| path.join("main.rs").exists() || path.join("src").exists();
    let programs = entries.filter(|path| has_code(path) || path.extension().is_some_and(|kind| kind == "rs"));
    for program in programs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()) {
        let named = [format!("--example {program} "), format!("-p {} ", program.replace('_', "-"))];
        let is_listed = commands.iter().any(|command| named.iter().any(|name| command.contains(name)));
        assert!(is_listed, "examples/README.md has no {program}");
    }
}

#[test]
fn every_command_refers_to_what_exists() {
    let mut count = 0;
    for document in all() {
        for (line, command) in document.commands() {
            let at = format!("{}:{line}: {command}", document.path);
            let words: Vec<_> =
                command.split_whitespace().take_while(|word| !["--", "#"].contains(word)).collect();
            let (folder, manifest) = package(&words, &at);
            for (flag, name) in words.iter().zip(words.iter().skip(1)) {
                check(flag, name, (&words, &folder, &manifest), &at);
            }
            count += 1;
        }
    }
    assert!(count > 30, "only {count} commands were found");
}

/// Readers who trace a datagram find the functions where the page says, and few of them.
#[test]
fn a_datagram_passes_at_most_ten_functions_each_way_and_they_are_where_the_page_says() {
    let page = fs::read_to_string(root().join("docs/CODE.md")).unwrap();
    let tables: Vec<_> =
        page.split("\n## ").skip(1).map(|section| hops(section)).filter(|hops| !hops.is_empty()).collect();
    assert_eq!(tables.len(), 2, "a way out and a way in");
    for hops in tables {
        assert!(hops.len() <= 10, "{} hops", hops.len());
        for (owner, function, file) in hops {
            let code = fs::read_to_string(root().join(file)).unwrap();
            let has = |start: String| {
                code.match_indices(&start).any(|(at, _)| {
                    !code[at + start.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
                })
            };
            assert!(has(format!("fn {function}")), "{file} has no {owner}::{function}");
            let is_its = code.lines().any(|line| line.starts_with("impl") && line.contains(owner));
            assert!(is_its, "{file} implements nothing of {owner}");
        }
    }
}

/// The text of all sources in a folder and in those below it.
fn sources(folder: &Path) -> String {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.extension() {
        _ if path.is_dir() && !path.ends_with("target") => sources(&path),
        Some(ending) if ending == "rs" => fs::read_to_string(path).unwrap(),
        _ => String::new(),
    };
    paths.map(text).collect()
}

/// Whether cargo packages that file: the manifest does not exclude it, and it is not in a nested package.
fn is_packaged(folder: &Path, path: &str) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let excluded = manifest.lines().find_map(|line| line.strip_prefix("exclude = [")).unwrap_or_default();
    let is_excluded = excluded
        .split('"')
        .skip(1)
        .step_by(2)
        .any(|pattern| Path::new(path).starts_with(pattern.trim_start_matches('/')));
    let parents = Path::new(path).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    !is_excluded && !parents.into_iter().any(|parent| folder.join(parent).join("Cargo.toml").exists())
}

/// The rows of a table of functions: type, function, file.
fn hops(section: &str) -> Vec<(&str, &str, &str)> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | `"));
    rows.filter_map(|(_, row)| {
        let (function, rest) = row.split_once("` | ")?;
        let (owner, function) = function.split_once("::")?;
        Some((owner, function, rest.split_once(" |")?.0))
    })
    .collect()
}

/// The folder and the manifest of the package that a command refers to.
fn package(words: &[&str], at: &str) -> (PathBuf, String) {
    let named = words.iter().position(|word| *word == "-p").and_then(|flag| words.get(flag + 1));
    let folders = [
        "",
        "benches",
        "capi",
        "crates/bevy",
        "crates/bevy/examples",
        "crates/fleet",
        "crates/godot",
        "crates/kcp-go",
        "crates/matchmaker",
        "crates/python",
        "crates/relay",
        "crates/web",
        "crates/web-build",
        "examples/agones_server",
        "examples/agones_server/stand_in",
        "examples/tower_defence",
        "interop",
    ]
    .map(|folder| root().join(folder));
    let mut all = folders.into_iter().filter_map(|folder| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        Some((folder, manifest))
    });
    // Packages whose examples cargo finds without a name.
    let examples = ["examples", "examples/simulated"]
        .map(|folder| fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap())
        .concat();
    let wanted = format!("\nname = \"{}\"\n", named.unwrap_or(&"whitewater"));
    let (folder, manifest) = all
        .find(|(_, manifest)| manifest.contains(&wanted))
        .unwrap_or_else(|| panic!("{at}: no such package"));
    (folder, if named.is_some() { manifest } else { manifest + &examples })
}

/// Checks a flag and its argument in a command for the package in that folder.
fn check(flag: &str, name: &str, (words, folder, manifest): (&[&str], &Path, &str), at: &str) {
    let is_there = |paths: [String; 2]| paths.iter().any(|path| folder.join(path).exists());
    match flag {
        "--example" if words.contains(&"--manifest-path") => {}
        "--example" => {
            let is_there = is_there([format!("examples/{name}.rs"), format!("examples/{name}/main.rs")]);
            assert!(is_there, "{at}: no such example");
            let needed = required_features(manifest, name);
            let missing: Vec<_> =
                needed.iter().filter(|feature| !given(words, manifest).contains(*feature)).collect();
            assert!(missing.is_empty() || words.contains(&"--all-features"), "{at}: needs {missing:?}");
        }
        "--test" => {
            let files = [format!("tests/{name}.rs"), format!("tests/{name}/main.rs")];
            let is_found = !manifest.contains("\nautotests = false\n") && is_there(files);
            assert!(is_found || section(manifest, "test", name).is_some(), "{at}: no such test");
        }
        "--bench" => assert!(folder.join(format!("{name}.rs")).exists(), "{at}: no such benchmark"),
        "just" => {
            let steps = fs::read_to_string(root().join("justfile")).unwrap();
            let is_there = |line: &str| line.split([' ', ':']).next() == Some(name);
            assert!(name.starts_with("--") || steps.lines().any(is_there), "{at}: no such step");
        }
        "--manifest-path" => assert!(root().join(name).exists(), "{at}: no such manifest"),
        "--features" => {
            for feature in name.split(',') {
                let known = manifest.lines().any(|line| line.starts_with(&format!("{feature} = [")));
                assert!(known, "{at}: no such feature");
            }
        }
        _ => {}
    }
}

/// Features that a command enables: those it names, those they imply, and the default ones.
fn given<'a>(words: &[&'a str], manifest: &'a str) -> BTreeSet<&'a str> {
    let named = words.iter().zip(words.iter().skip(1)).filter(|(flag, _)| **flag == "--features");
    let mut all: BTreeSet<_> = named.flat_map(|(_, names)| names.split(',')).collect();
    if all.contains("ring") {
        all.insert("crypto");
    }
    if !words.contains(&"--no-default-features") {
        let default = manifest.lines().find_map(|line| line.strip_prefix("default = "));
        all.extend(default.unwrap_or_default().split('"').skip(1).step_by(2));
    }
    all
}

fn required_features<'a>(manifest: &'a str, example: &str) -> Vec<&'a str> {
    let section = section(manifest, "example", example).unwrap_or_default();
    let line = section.lines().find_map(|line| line.strip_prefix("required-features = ")).unwrap_or_default();
    line.split('"').skip(1).step_by(2).collect()
}

/// The section of a manifest for a target.
fn section<'a>(manifest: &'a str, kind: &str, name: &str) -> Option<&'a str> {
    let sections = manifest.split(&format!("\n[[{kind}]]\n")).skip(1).collect::<Vec<_>>();
    let mut sections = sections.into_iter().map(|text| text.split("\n[").next().unwrap_or_default());
    sections.find(|text| text.contains(&format!("name = \"{name}\"")))
}
