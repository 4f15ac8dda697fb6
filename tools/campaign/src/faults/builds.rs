//! Two builds of the program in one cluster, as during an upgrade: the build of each node.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::cluster::unit::{NODES, Unit};

/// The nodes that start with the other build: one of each role stays on this one.
const BEGIN_BESIDE: [Unit; 3] = [Unit::Ingest(2), Unit::Api(1), Unit::Api(3)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Build {
    /// The build of this repository.
    This,
    /// The build that `--beside` names.
    Beside,
}

impl Build {
    fn other(self) -> Self {
        match self {
            Self::This => Self::Beside,
            Self::Beside => Self::This,
        }
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::This => "this",
            Self::Beside => "beside",
        })
    }
}

/// The programs, and the builds that each node has run, the current one last.
#[derive(Debug)]
pub(super) struct Builds {
    this: PathBuf,
    beside: Option<PathBuf>,
    /// The paths of the originals, because two builds may report the same version.
    origin: String,
    ran: BTreeMap<Unit, Vec<Build>>,
}

impl Builds {
    /// Copies the programs, so that a build meanwhile does not change restarted nodes.
    pub(super) fn copy(folder: &Path, program: &Path, beside: Option<&Path>) -> Result<Self> {
        let this = folder.join("linesman");
        fs::copy(program, &this)?;
        let copy = beside.map(|beside| -> Result<PathBuf> {
            let copy = folder.join("linesman-beside");
            let copied = fs::copy(beside, &copy);
            copied.with_context(|| format!("cannot copy {}", beside.display()))?;
            let differs = fs::read(&copy)? != fs::read(&this)?;
            ensure!(differs, "{} is this build itself: nothing would be shown", beside.display());
            ensure!(is_ours(&version(&copy)?), "{} is no linesman", beside.display());
            Ok(copy)
        });
        let origin = beside.map_or(String::new(), |beside| beside.display().to_string());
        Ok(Self { origin, ..Self::new(this, copy.transpose()?) })
    }

    fn new(this: PathBuf, beside: Option<PathBuf>) -> Self {
        let begin = |node: &Unit| match beside {
            Some(_) if BEGIN_BESIDE.contains(node) => Build::Beside,
            Some(_) | None => Build::This,
        };
        let ran = NODES.into_iter().map(|node| (node, vec![begin(&node)])).collect();
        Self { this, beside, origin: String::new(), ran }
    }

    /// Number of different programs.
    pub(super) fn count(&self) -> usize {
        1 + usize::from(self.beside.is_some())
    }

    pub(super) fn this(&self) -> &Path {
        &self.this
    }

    /// The program that a node runs.
    pub(super) fn program(&self, node: Unit) -> &Path {
        self.path(self.now(node))
    }

    /// The program that first uses the empty database, of this build if the seed is odd: each build must be able to
    /// use tables that the other has created.
    pub(super) fn first(&self, seed: u64) -> &Path {
        self.path(if seed.is_multiple_of(2) { Build::Beside } else { Build::This })
    }

    /// Switches a node to the other build.
    pub(super) fn exchange(&mut self, node: Unit) -> Build {
        let build = self.now(node).other();
        self.ran.entry(node).or_default().push(build);
        build
    }

    fn now(&self, node: Unit) -> Build {
        self.ran.get(&node).and_then(|ran| ran.last()).copied().unwrap_or(Build::This)
    }

    fn path(&self, build: Build) -> &Path {
        match (build, &self.beside) {
            (Build::Beside, Some(beside)) => beside,
            (Build::Beside | Build::This, _) => &self.this,
        }
    }

    /// The text for the report: the programs' versions, and the builds that each node ran, in order.
    pub(super) fn tell(&self) -> Result<String> {
        let mut text = format!("this: {}\n", version(&self.this)?);
        let Some(beside) = &self.beside else { return Ok(text) };
        text += &format!("beside: {} ({})\n", version(beside)?, self.origin);
        for (node, ran) in &self.ran {
            let ran: Vec<String> = ran.iter().map(ToString::to_string).collect();
            text += &format!("{node} ran {}\n", ran.join(", then "));
        }
        Ok(text)
    }
}

/// The version that a program reports.
fn version(program: &Path) -> Result<String> {
    let folder = program.parent().unwrap_or(program);
    Ok(shell::output(shell::command(program, folder).arg("--version"))?.trim().to_owned())
}

fn is_ours(version: &str) -> bool {
    version.starts_with("linesman ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::unit::{APIS, INGESTS};

    fn two() -> Builds {
        Builds::new("new".into(), Some("old".into()))
    }

    #[test]
    fn both_builds_begin_in_both_roles() {
        for role in [INGESTS.as_slice(), APIS.as_slice()] {
            let builds = two();
            let ran: Vec<&Path> = role.iter().map(|node| builds.program(*node)).collect();
            assert!(ran.contains(&Path::new("old")) && ran.contains(&Path::new("new")), "{ran:?}");
        }
    }

    #[test]
    fn without_another_build_every_node_runs_this_one() {
        let builds = Builds::new("new".into(), None);
        assert!(NODES.into_iter().all(|node| builds.program(node) == Path::new("new")));
        assert_eq!((builds.first(1), builds.first(2)), (Path::new("new"), Path::new("new")));
        assert_eq!((builds.count(), two().count()), (1, 2));
    }

    #[test]
    fn either_build_may_come_first() {
        assert_eq!((two().first(1), two().first(2)), (Path::new("new"), Path::new("old")));
    }

    #[test]
    fn an_exchanged_node_stays_on_the_other_build_until_it_is_exchanged_again() {
        let mut builds = two();
        assert_eq!(builds.exchange(Unit::Api(1)), Build::This);
        assert_eq!(builds.program(Unit::Api(1)), Path::new("new"));
        assert_eq!(builds.program(Unit::Api(3)), Path::new("old"));
        assert_eq!(builds.exchange(Unit::Api(1)), Build::Beside);
        assert_eq!(builds.program(Unit::Api(1)), Path::new("old"));
        let ran = builds.ran.get(&Unit::Api(1)).unwrap();
        assert_eq!(*ran, [Build::Beside, Build::This, Build::Beside]);
    }

    #[test]
    fn neither_this_build_itself_nor_another_program_is_put_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |beside: &str| {
            let program = Path::new("/bin/true");
            Builds::copy(folder.path(), program, Some(Path::new(beside))).unwrap_err().to_string()
        };
        assert!(refused("/bin/true").contains("this build itself"));
        assert!(refused("/bin/echo").contains("no linesman"));
        assert!(refused("/nowhere").contains("cannot copy"));
    }
}
