//! The files transport: reads files put into a folder, in order of their names, then moves them away (A27).

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use feeds::adapter::{BODY_BYTES_MAX, Translator};
use tokio::time::{Instant, sleep};

use crate::report::State;
use crate::runner::{Context, Made, Runner};

/// A file is complete if it has not changed for this long.
const SETTLED: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Files {
    runner: Runner,
    patterns: Vec<String>,
    translator: Box<dyn Translator>,
}

impl Files {
    pub(crate) fn new(
        context: Context,
        patterns: Vec<String>,
        translator: Box<dyn Translator>,
    ) -> Self {
        Self { runner: Runner::new(context), patterns, translator }
    }

    /// Looks for files until it is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            match found(&self.patterns) {
                Ok(paths) => {
                    for path in paths {
                        self.read(&path).await;
                    }
                }
                Err(error) => {
                    let why = format!("the folder cannot be read: {error}");
                    self.runner.reporter().set(State::Retrying, why, self.runner.now());
                }
            }
            sleep(LOOK_EVERY).await;
            if let Err(why) = self.runner.tick().await {
                self.runner.note_not_taken(why);
            }
        }
    }

    async fn read(&mut self, path: &Path) {
        let (now, clock) = (self.runner.now(), Instant::now());
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let body = match read_whole(path) {
            Ok(body) => body,
            Err(error) => {
                let why = format!("{name}: {error}");
                return self.runner.reporter().note_failed(State::Retrying, why, now);
            }
        };
        // All files are one unit: a complete file replaces the previous one.
        let to = match self.translator.translate("files", &body, now) {
            Ok(read) => {
                let every = self.runner.context.settings.schedule.every(std::iter::empty(), now);
                let made = Made { unit: "files", at: now, every, all_read: true };
                if let Err(why) = self.runner.take(read, made).await {
                    return self.runner.note_not_taken(why);
                }
                self.runner.reporter().note_good(self.runner.now(), every, false, clock.elapsed());
                "done"
            }
            Err(drift) => {
                self.runner.reporter().quarantine(&name, &body, &drift, now);
                "bad"
            }
        };
        if let Err(error) = put_away(path, to) {
            let why = format!("{name} cannot be moved to {to}/: {error}");
            self.runner.reporter().set(State::Retrying, why, now);
        }
    }
}

fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    if std::fs::metadata(path)?.len() > limit {
        return Err(io::Error::other(format!("it has more than {} MiB", BODY_BYTES_MAX >> 20)));
    }
    std::fs::read(path)
}

fn put_away(path: &Path, to: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(".")).join(to);
    std::fs::create_dir_all(&folder)?;
    std::fs::rename(path, folder.join(path.file_name().unwrap_or_default()))
}

/// The files that match and have settled, in order of name.
fn found(patterns: &[String]) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for pattern in patterns {
        let pattern = Path::new(pattern);
        let folder = pattern
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let wanted =
            pattern.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let about = entry.metadata()?;
            #[expect(clippy::disallowed_methods, reason = "compared with times of the file system")]
            let now = SystemTime::now();
            let settled = about
                .modified()
                .is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= SETTLED));
            if about.is_file() && settled && fits(&wanted, &entry.file_name().to_string_lossy()) {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// True if a name matches a pattern in which `*` is any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, good, bad) in [
            ("*.xml", &["a.xml", ".xml"][..], &["a.xml.part", "xml"][..]),
            ("a-*-b*.json", &["a-1-b.json", "a--b2.json"], &["a-b.json", "b-1-b.json"]),
            ("odds.json", &["odds.json"], &["odds.json2", "xodds.json"]),
        ] {
            assert!(good.iter().all(|name| fits(pattern, name)), "{pattern}");
            assert!(!bad.iter().any(|name| fits(pattern, name)), "{pattern}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "compared with times of the file system")]
    fn files_come_by_name_once_they_have_settled() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["b.xml", "a.xml", "c.txt", "new.xml"] {
            std::fs::write(path(name), "x").unwrap();
        }
        let old = SystemTime::now() - Duration::from_secs(60);
        for name in ["b.xml", "a.xml", "c.txt"] {
            std::fs::File::options()
                .write(true)
                .open(path(name))
                .unwrap()
                .set_modified(old)
                .unwrap();
        }
        let later = SystemTime::now() + Duration::from_secs(3600);
        std::fs::File::options()
            .write(true)
            .open(path("new.xml"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        let pattern = path("*.xml").display().to_string();
        assert_eq!(found(std::slice::from_ref(&pattern)).unwrap(), [path("a.xml"), path("b.xml")]);
        put_away(&path("a.xml"), "done").unwrap();
        assert_eq!(found(&[pattern]).unwrap(), [path("b.xml")]);
        assert!(path("done/a.xml").exists());
    }
}
