//! The cluster under test: its processes, proxies, disks and clocks.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Child,
};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Pid, Signal, geteuid};

use super::{builds::Builds, proxies::Proxies};
use crate::cluster::{
    self,
    layout::{ClusterLayout, ClusterOptions, Lifetime},
    process,
    unit::{ALL, NATS, NODES, Unit},
};

/// Prices are published every second, so that a campaign sees many epochs, and are stale after ten. All parts and all
/// clients share one machine, often with a compiler: with the default of a quarter of a second, load shedding would
/// show how busy that machine is, and not how the service handles a fault.
const SETTINGS: &str = "shed_after = \"2s\"\n\n[market]\nrefresh_interval = \"1s\"\nstale_after = \"10s\"\n\n[sandbox]\nenabled = false\n\n\
                        [log]\nfilter = \"info\"\nformat = \"human\"\n";
/// Changes the clock that a program sees, by a file.
pub(super) const CLOCK_PACKAGE: (&str, [&str; 2]) = (
    "libfaketime",
    [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    ],
);
/// Size of the disk of a server of the log, if it can be filled.
const DISK_BYTES: u32 = 128 << 20;
const BALLAST: &str = "ballast";
/// The folder of history, and its name while no node can use it.
pub(super) const ARCHIVE: &str = "archive";
const ARCHIVE_AWAY: &str = "archive-away";

/// The handling of a server's copy of the log after its disk was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskContent {
    Kept,
    /// The other servers still have all of it. Otherwise Debian's nats-server (2.9) may never catch up with them: it
    /// reports "catchup stalled" forever, and followers that are connected to it wait in vain.
    Deleted,
}

/// A running cluster; stopped when dropped.
#[derive(Debug)]
pub(super) struct TestCluster {
    pub(super) layout: ClusterLayout,
    pub(super) proxies: Proxies,
    pub(super) builds: Builds,
    children: BTreeMap<Unit, Child>,
    /// Mounted disks, which are unmounted at the end.
    disks: Vec<PathBuf>,
    has_clocks: bool,
}

impl TestCluster {
    /// Sets up a cluster in a folder and waits until it serves.
    pub(super) fn set_up(folder: &Path, builds: Builds, seed: u64) -> Result<Self> {
        let clock_library = find_clock_library();
        let environment = clock_library.iter().flat_map(|library| {
            [
                ("LD_PRELOAD".to_owned(), library.display().to_string()),
                ("FAKETIME_TIMESTAMP_FILE".to_owned(), "{home}/clock".to_owned()),
                ("FAKETIME_CACHE_DURATION".to_owned(), "1".to_owned()),
                // The monotonic clock is unchanged: only the time of day is stepped.
                ("FAKETIME_DONT_FAKE_MONOTONIC".to_owned(), "1".to_owned()),
            ]
        });
        let options = ClusterOptions {
            lifetime: Lifetime::WithThread,
            settings: format!(
                "{SETTINGS}\n[history]\nstore = \"{}\"\npart_interval = \"5s\"\n",
                folder.join(ARCHIVE).display()
            ),
            environment: environment.collect(),
            advertises: false,
            // Only processes are ended and never the machine, so nothing is lost; and a disk that is busy with
            // something else for seconds is not one of the faults.
            syncs: false,
        };
        let mut layout = ClusterLayout::at(folder, builds.this(), options)?;
        layout.programs = NODES.map(|node| (node, builds.program(node).to_owned())).into();
        let proxies = Proxies::start(&mut layout)?;
        let has_clocks = clock_library.is_some();
        let mut cluster = Self {
            layout,
            proxies,
            builds,
            children: BTreeMap::new(),
            disks: Vec::new(),
            has_clocks,
        };
        cluster.make_disks()?;
        for unit in ALL {
            cluster.layout.prepare(unit)?;
            cluster.step_clock_file(unit, 0)?;
            cluster.start(unit)?;
            if unit == Unit::Postgres {
                cluster::wait_for_postgres(&cluster.layout)?;
                cluster.layout.create_database()?;
                let first = cluster.builds.first(seed);
                shell::output(&mut cluster.layout.verb_of(first, &["keys", "list"])?)?;
            }
        }
        cluster::wait_for_nats_group(&cluster.layout.clone(), |nats| {
            cluster.kill(nats)?;
            cluster.start(nats)
        })?;
        cluster::wait_until_ready(&cluster.layout)?;
        Ok(cluster)
    }

    pub(super) fn has_disks(&self) -> bool {
        !self.disks.is_empty()
    }

    pub(super) fn has_clocks(&self) -> bool {
        self.has_clocks
    }

    pub(super) fn start(&mut self, unit: Unit) -> Result<()> {
        let child = self.layout.start(unit)?;
        self.children.insert(unit, child);
        Ok(())
    }

    pub(super) fn kill(&mut self, unit: Unit) -> Result<()> {
        let Some(mut child) = self.children.remove(&unit) else { bail!("{unit} does not run") };
        if unit == Unit::Postgres {
            // Its children notice a while later that it is gone, and it cannot be started until then. This signal is
            // its own way to end at once: nothing is finished, and the next start recovers.
            process::signal(Pid::from_child(&child), Signal::QUIT)?;
        } else {
            child.kill()?;
        }
        child.wait()?;
        Ok(())
    }

    pub(super) fn stop(&mut self, unit: Unit) -> Result<()> {
        process::end(&self.layout, unit)?;
        if let Some(mut child) = self.children.remove(&unit) {
            child.wait()?;
        }
        Ok(())
    }

    /// Starts a stopped node with the other build.
    pub(super) fn start_other(&mut self, node: Unit) -> Result<()> {
        let build = self.builds.exchange(node);
        shell::say(&format!("     {node} runs `{build}` now"));
        self.layout.programs.insert(node, self.builds.program(node).to_owned());
        self.start(node)
    }

    pub(super) fn pause(&self, unit: Unit) -> Result<()> {
        self.signal_all(unit, Signal::STOP)
    }

    pub(super) fn resume(&self, unit: Unit) -> Result<()> {
        self.signal_all(unit, Signal::CONT)
    }

    fn signal_all(&self, unit: Unit, signal: Signal) -> Result<()> {
        let child = self.children.get(&unit).with_context(|| format!("{unit} does not run"))?;
        for pid in process::family(Pid::from_child(child)) {
            // A child of PostgreSQL may just have ended.
            process::signal(pid, signal).unwrap_or_default();
        }
        Ok(())
    }

    /// Parts that have ended by themselves since the last call.
    pub(super) fn take_ended(&mut self) -> Vec<Unit> {
        let is_dead = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        let dead =
            self.children.iter_mut().filter_map(|(unit, child)| is_dead(child).then_some(*unit));
        let dead: Vec<Unit> = dead.collect();
        for unit in &dead {
            self.children.remove(unit);
        }
        dead
    }

    /// Shifts a node's clock by some seconds.
    pub(super) fn step_clock(&self, node: Unit, seconds: i32) -> Result<()> {
        self.step_clock_file(node, seconds)
    }

    fn step_clock_file(&self, node: Unit, seconds: i32) -> Result<()> {
        if node.role().is_none() {
            return Ok(());
        }
        // Atomically, because it may be read at any moment.
        let home = self.layout.folder_of(node);
        fs::write(home.join("clock.fresh"), format!("{seconds:+}"))?;
        Ok(fs::rename(home.join("clock.fresh"), home.join("clock"))?)
    }

    /// Moves the folder of history away. A file in its place prevents the nodes from creating another.
    pub(super) fn take_archive_away(&self) -> Result<()> {
        fs::write(self.layout.folder.join(ARCHIVE_AWAY), "")?;
        self.exchange_archive()
    }

    pub(super) fn bring_archive_back(&self) -> Result<()> {
        self.exchange_archive()?;
        Ok(fs::remove_file(self.layout.folder.join(ARCHIVE_AWAY))?)
    }

    /// Atomically, because a node creates the folder if it is missing.
    fn exchange_archive(&self) -> Result<()> {
        let [archive, away] = [ARCHIVE, ARCHIVE_AWAY].map(|name| self.layout.folder.join(name));
        Ok(renameat_with(CWD, archive, CWD, away, RenameFlags::EXCHANGE)?)
    }

    /// Gives each server of the log a small disk of its own, if permitted.
    fn make_disks(&mut self) -> Result<()> {
        if !geteuid().is_root() {
            shell::say("   only root can create disks: none will be filled");
            return Ok(());
        }
        for nats in NATS {
            let disk = self.layout.folder_of(nats).join("store");
            fs::create_dir_all(&disk)?;
            let mut mount = shell::command("mount", &self.layout.folder);
            mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_BYTES}"), "linesman-faults"]);
            if !shell::succeeds(mount.arg(&disk)) {
                shell::say("   disks cannot be created here: none will be filled");
                return Ok(());
            }
            self.disks.push(disk);
        }
        Ok(())
    }

    /// Fills a server's disk completely.
    pub(super) fn fill_disk(&self, nats: Unit) -> Result<()> {
        let file = self.layout.folder_of(nats).join("store").join(BALLAST);
        let mut fill = shell::command("dd", &self.layout.folder);
        fill.args(["if=/dev/zero", "bs=64k", &format!("of={}", file.display())]);
        // It fails as intended when the disk is full.
        fill.output().context("cannot fill a disk")?;
        Ok(())
    }

    /// Frees the disk. NATS disables JetStream when its disk is full and leaves it so: after freeing the disk the
    /// server must be restarted, which its documentation asks of operators, too.
    pub(super) fn free_disk(&mut self, nats: Unit, content: DiskContent) -> Result<()> {
        let store = self.layout.folder_of(nats).join("store");
        // With a full disk it does not stop in an orderly way.
        self.kill(nats)?;
        match content {
            DiskContent::Kept => fs::remove_file(store.join(BALLAST))?,
            DiskContent::Deleted => {
                for entry in fs::read_dir(&store)? {
                    let path = entry?.path();
                    if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
                }
            }
        }
        self.start(nats)
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        for unit in ALL.into_iter().rev() {
            if self.children.contains_key(&unit) {
                // The end of the campaign: a process that does not stop is killed with the thread.
                self.resume(unit).unwrap_or_default();
                self.stop(unit).unwrap_or_default();
            }
        }
        for disk in &self.disks {
            let mut unmount = shell::command("umount", &self.layout.folder);
            if !shell::succeeds(unmount.arg(disk)) {
                shell::say(&format!("   {} is still mounted; `umount` it", disk.display()));
            }
        }
    }
}

fn find_clock_library() -> Option<PathBuf> {
    CLOCK_PACKAGE.1.into_iter().map(PathBuf::from).find(|library| library.is_file())
}

/// Removes the remains of an earlier campaign, even of one that was killed.
pub(super) fn clear(folder: &Path) -> Result<()> {
    for nats in NATS {
        let disk = folder.join("cluster").join(nats.to_string()).join("store");
        // It fails if nothing is mounted.
        shell::succeeds(shell::command("umount", Path::new("/")).arg(disk));
    }
    if folder.is_dir() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}
