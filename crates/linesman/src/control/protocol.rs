//! Definitions that both sides of the control socket share: the commands, the socket's path, and their limits.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::Duration;

use domain::EventId;
use market::Operation;
use serde::{Deserialize, Serialize};

use crate::folder::Folder;

/// Maximum time of a command; reading a hundred thousand keys takes under a second.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
/// Maximum time of commands that write the archive: it may be far behind, and all its days may have to be merged.
const ARCHIVE_TIME_MAX: Duration = Duration::from_secs(6 * 3600);
/// Maximum length of a socket's path on Linux, without its terminator.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A request of a command line to a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ControlCommand {
    /// Read the store again, which has changed.
    Reload,
    /// Return the URL of the web pages.
    Url,
    /// Apply an operator's change of identities.
    Operate(Operation),
    /// Return an event with all its refs.
    Show(EventId),
    /// Return the possible duplicates.
    Unsure,
    /// Add all publications to the archive.
    FlushHistory,
    /// Add all publications to the archive, and merge the files of its days.
    CompactHistory {
        /// Only of days before this one; `None`: of all.
        before: Option<String>,
    },
}

impl ControlCommand {
    /// How long each side waits for the other.
    pub(super) fn time_max(&self) -> Duration {
        match self {
            Self::FlushHistory | Self::CompactHistory { .. } => ARCHIVE_TIME_MAX,
            Self::Reload | Self::Url | Self::Operate(_) | Self::Show(_) | Self::Unsure => {
                ANSWER_TIME_MAX
            }
        }
    }
}

/// The path of the socket, short enough for its address. A long path goes through the open folder, which must stay
/// open while the path is used.
pub(super) fn socket_path(folder: &Folder) -> io::Result<(PathBuf, Option<File>)> {
    let path = folder.control();
    if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return Ok((path, None));
    }
    let open = File::open(folder.path())?;
    let through = Folder::at(format!("/proc/self/fd/{}", open.as_raw_fd()).as_ref());
    Ok((through.control(), Some(open)))
}
