//! As much Markdown as these documents use: links, headings, fenced blocks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the package.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every document of ours, except for those of the recordings.
pub(crate) fn all() -> Vec<Document> {
    let mut found = Vec::new();
    for folder in [
        "docs",
        "docs/engines",
        "docs/migrate",
        "examples",
        "examples/tower_defence",
        "capi",
        "capi/csharp",
        "crates/bevy",
        "crates/bevy/examples",
        "crates/fleet",
        "crates/godot",
        "crates/kcp-go",
        "crates/python",
        "crates/relay",
        "crates/sim",
        "crates/derive",
        "crates/udp",
        "interop",
        "tools/wireshark",
        "",
    ] {
        let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let paths =
            names.filter(|name| name.ends_with(".md")).map(|name| normal(&format!("{folder}/{name}")));
        found.extend(paths.map(|path| Document::read(&path)));
    }
    found
}

/// A Markdown file.
pub(crate) struct Document {
    /// Relative to the root of the package.
    pub(crate) path: String,
    text: String,
}

/// A link outside of code.
pub(crate) struct Link {
    pub(crate) target: String,
    pub(crate) line: usize,
    pub(crate) is_image: bool,
}

/// A fenced block.
pub(crate) struct Block {
    /// The text after the opening fence.
    pub(crate) info: String,
    pub(crate) line: usize,
    pub(crate) lines: Vec<String>,
}

impl Document {
    pub(crate) fn read(path: &str) -> Self {
        Self { path: path.to_owned(), text: fs::read_to_string(root().join(path)).unwrap() }
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = Link> {
        self.prose().flat_map(|(line, text)| {
            let text = without_code(text);
            let pairs = text.split("](").zip(text.split("](").skip(1));
            let links = pairs.filter_map(|(before, rest)| {
                let (target, _) = rest.split_once(')')?;
                let is_image = before.rfind('[').is_some_and(|at| before[..at].ends_with('!'));
                Some(Link { target: target.to_owned(), line, is_image })
            });
            links.collect::<Vec<_>>()
        })
    }

    /// The folder of files that are published together with this one. The inner `None` means that it is shown
    /// alone; the outer one, that only the repository has it.
    pub(crate) fn published_with(&self) -> Option<Option<&str>> {
        match self.path.as_str() {
            "README.md" | "crates/derive/README.md" | "crates/kcp-go/README.md" | "crates/udp/README.md" => {
                Some(None)
            }
            path if path.starts_with("docs/") => Some(Some("docs/")),
            _ => None,
        }
    }

    /// Everything in backticks that begins with a folder of the repository.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (usize, &str)> {
        let folders = [
            "benches/",
            "capi/",
            "crates/",
            "docs/",
            "examples/",
            "fuzz/",
            "interop/",
            "src/",
            "tests/",
            "tools/",
        ];
        self.code().filter(move |(_, code)| {
            folders.iter().any(|folder| code.starts_with(folder))
                && code.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c))
        })
    }

    /// Everything in backticks that is a name of five words or more, such as a test's.
    pub(crate) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_name =
            |code: &str| code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        self.code().filter(move |(_, code)| is_name(code) && code.matches('_').count() >= 4)
    }

    /// Everything in backticks.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose().flat_map(|(line, text)| text.split('`').skip(1).step_by(2).map(move |code| (line, code)))
    }

    /// The anchors that `#..` may name, derived from headings as usual renderers do.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let headings = self.prose().filter(|(_, text)| text.starts_with('#'));
        let mut found = BTreeSet::new();
        for (_, heading) in headings {
            let kept = heading
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .collect::<String>();
            let anchor = kept.replace(' ', "-");
            let again = (1..).map(|count| format!("{anchor}-{count}")).find(|name| !found.contains(name));
            let name = if found.contains(&anchor) { again } else { Some(anchor) };
            found.extend(name);
        }
        found
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut inside = false;
        for (line, text) in self.numbered() {
            match (text.strip_prefix("```"), inside) {
                (Some(info), false) => blocks.push(Block { info: info.to_owned(), line, lines: Vec::new() }),
                (None, true) => blocks.last_mut().unwrap().lines.push(text.to_owned()),
                _ => {}
            }
            inside ^= text.starts_with("```");
        }
        assert!(!inside, "{}: a block has no end", self.path);
        blocks.into_iter()
    }

    /// Each cargo or just command, in a block or in a line.
    pub(crate) fn commands(&self) -> Vec<(usize, String)> {
        let of_blocks =
            self.blocks().filter(|block| ["sh", "text"].contains(&block.info.as_str())).flat_map(|block| {
                (block.line + 1..).zip(block.lines).filter(|(_, line)| is_command(line)).collect::<Vec<_>>()
            });
        let inline = self.prose().flat_map(|(line, text)| {
            let code = text.split('`').skip(1).step_by(2).filter(|code| is_command(code));
            code.map(|code| (line, code.to_owned())).collect::<Vec<_>>()
        });
        of_blocks.chain(inline).collect()
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Everything outside of fenced blocks.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut inside = false;
        self.numbered().filter(move |(_, text)| {
            let is_fence = text.starts_with("```");
            inside ^= is_fence;
            !inside && !is_fence
        })
    }
}

fn is_command(line: &str) -> bool {
    line.starts_with("cargo ") || line.starts_with("just ")
}

impl Link {
    pub(crate) fn is_of_the_web(&self) -> bool {
        self.target.starts_with("https://")
    }

    pub(crate) fn anchor(&self) -> Option<&str> {
        self.target.split_once('#').map(|(_, anchor)| anchor)
    }

    /// The target, relative to the root of the package; `from` is the document with the link.
    pub(crate) fn path_from(&self, from: &str) -> String {
        match self.target.split('#').next().unwrap_or_default() {
            "" => from.to_owned(),
            path => {
                let folder = Path::new(from).parent().unwrap().to_str().unwrap();
                normal(&format!("{folder}/{path}"))
            }
        }
    }
}

/// A line without the text between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Resolves `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !["", "."].contains(part)) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}
