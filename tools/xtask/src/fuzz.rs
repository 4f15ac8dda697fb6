//! Runs the fuzz targets of `fuzz/` on the stable toolchain.
//!
//! Without a sanitizer (`-s none`): sanitizers need a nightly compiler and look for memory errors, which `unsafe_code
//! = "forbid"` already rules out in our code. The runs look for panics and hangs. `fuzz/seeds` has initial inputs for
//! targets whose format is hard to find by chance.

use std::{fs, path::Path, thread};

use anyhow::{Context as _, Result, bail, ensure};

use shell::{repository::Repository, tool};

/// Maximum time for one input, in seconds.
const INPUT_SECONDS_MAX: u32 = 10;
/// Number of targets that run at the same time; each occupies one core.
const AT_ONCE: usize = 2;

pub(crate) fn run(repository: &Repository, seconds: u32) -> Result<()> {
    let targets = targets(repository)?;
    ensure!(!targets.is_empty(), "fuzz/fuzz_targets has no targets");
    shell::run(shell::cargo(repository).args([
        "fmt",
        "--check",
        "--manifest-path",
        "fuzz/Cargo.toml",
    ]))?;
    // The build would update the lock file, and nobody would notice.
    let lock = ["update", "--workspace", "--locked", "--manifest-path", "fuzz/Cargo.toml"];
    shell::run(shell::cargo(repository).args(lock))
        .context("fuzz/Cargo.lock is out of date; the same command without --locked updates it")?;
    let program = tool::find(repository, "fuzz")?;
    let build = ["fuzz", "build", "-s", "none"];
    shell::run(shell::command(&program, &repository.root).args(build))?;
    for some in targets.chunks(AT_ONCE) {
        shell::say(&format!("   fuzzing {} for {seconds} s", some.join(" and ")));
        thread::scope(|scope| {
            let program = &program;
            let run = |target| scope.spawn(move || fuzz(repository, program, target, seconds));
            let running: Vec<_> = some.iter().map(String::as_str).map(run).collect();
            running.into_iter().try_for_each(|it| it.join().unwrap_or_else(|_| bail!("no end")))
        })?;
    }
    Ok(())
}

fn fuzz(repository: &Repository, program: &Path, target: &str, seconds: u32) -> Result<()> {
    let mut fuzz = shell::command(program, &repository.root);
    fuzz.args(["fuzz", "run", "-s", "none", target]);
    let seeds = repository.root.join("fuzz/seeds").join(target);
    if seeds.is_dir() {
        // New inputs are stored in the first folder.
        let found = repository.root.join("fuzz/corpus").join(target);
        fs::create_dir_all(&found).context("cannot make a folder")?;
        fuzz.arg(found).arg(seeds);
    }
    fuzz.arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg("-verbosity=0");
    shell::run(&mut fuzz).with_context(|| {
        format!("target {target} broke; the input is under fuzz/artifacts/{target}")
    })
}

/// The names of the targets, sorted.
fn targets(repository: &Repository) -> Result<Vec<String>> {
    let folder = repository.root.join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in fs::read_dir(folder).context("cannot read fuzz/fuzz_targets")? {
        let path = entry.context("cannot read fuzz/fuzz_targets")?.path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            targets.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    targets.sort();
    Ok(targets)
}
