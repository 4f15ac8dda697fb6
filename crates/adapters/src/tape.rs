//! Tapes: all input from upstream, one JSON object per line, to be played instead of using the network (A24).

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::BASE64;
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::settings::Speed;

/// Maximum size of all tapes of one adapter; the oldest are deleted first.
const FOLDER_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of a line: a body of 32 MiB, escaped.
const LINE_BYTES_MAX: u64 = 96 << 20;
const LEVEL: i32 = 3;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// One answer or one line of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub v: u8,
    /// Arrival time.
    pub at: String,
    pub unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Replaces `body` if that is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_b64: Option<String>,
}

impl Record {
    pub fn new(
        at: Timestamp,
        unit: &str,
        status: Option<u16>,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Self {
        let text = std::str::from_utf8(body).ok();
        Self {
            v: 1,
            at: String::from_utf8_lossy(&at.millis_text()).into_owned(),
            unit: unit.to_owned(),
            status,
            headers: headers.to_vec(),
            body: text.map(ToOwned::to_owned),
            body_b64: text.is_none().then(|| BASE64.encode(body)),
        }
    }

    /// # Errors
    /// `body_b64` is not base 64.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        match (&self.body, &self.body_b64) {
            (Some(body), _) => Ok(body.clone().into_bytes()),
            (None, Some(packed)) => BASE64.decode(packed.as_bytes()).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidData, "`body_b64` is not base 64")
            }),
            (None, None) => Ok(Vec::new()),
        }
    }

    pub fn instant(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.at).ok()
    }
}

/// Writes tapes, one file for each hour.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Mutex<Writer>>);

struct Writer {
    folder: PathBuf,
    name: String,
    hour: i64,
    open: Option<Encoder<'static, File>>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Recorder {
    pub fn new(folder: &Path, name: &str) -> Self {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        Self(Arc::new(Mutex::new(Writer { folder, name, hour: i64::MIN, open: None })))
    }

    /// Adds a record, which can be read as soon as this returns.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub async fn write(&self, record: Record) -> io::Result<()> {
        let writer = Arc::clone(&self.0);
        let writing = tokio::task::spawn_blocking(move || {
            writer.lock().unwrap_or_else(PoisonError::into_inner).write(&record)
        });
        writing.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

impl Writer {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let hour = record.instant().map_or(self.hour, |at| at.as_secs().div_euclid(3600));
        if hour != self.hour || self.open.is_none() {
            self.finish()?;
            fs::create_dir_all(&self.folder)?;
            self.make_room()?;
            let stamp = Timestamp::from_secs(hour.saturating_mul(3600)).to_string();
            let stamp: String = stamp.chars().filter(char::is_ascii_alphanumeric).collect();
            // A restart within the hour begins another file: a file that was cut off is never appended to.
            let free = (0..1000).map(|n| {
                let more = if n == 0 { String::new() } else { format!("-{n}") };
                self.folder.join(format!("{}-{stamp}{more}.tape.zst", self.name))
            });
            let path =
                free.into_iter().find(|path| !path.exists()).ok_or(io::ErrorKind::AlreadyExists)?;
            self.open = Some(Encoder::new(File::create(path)?, LEVEL)?);
            self.hour = hour;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        open.write_all(&line)?;
        open.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), |open| open.finish().map(drop))
    }

    /// Deletes the oldest tapes of this adapter if they are too large together.
    fn make_room(&self) -> io::Result<()> {
        let mut tapes: Vec<(PathBuf, u64)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_tape_of(&self.name, &name) {
                tapes.push((entry.path(), entry.metadata()?.len()));
            }
        }
        tapes.sort();
        let mut bytes: u64 = tapes.iter().map(|(_, bytes)| bytes).sum();
        for (path, own) in tapes {
            if bytes <= FOLDER_BYTES_MAX {
                break;
            }
            fs::remove_file(path)?;
            bytes -= own;
        }
        Ok(())
    }
}

/// True for `NAME-20261119T050000Z.tape.zst` and `NAME-20261119T050000Z-1.tape.zst`. The names of other adapters may
/// begin with this adapter's name.
fn is_tape_of(adapter: &str, file: &str) -> bool {
    let rest = file.strip_prefix(adapter).and_then(|rest| rest.strip_prefix('-'));
    let Some(rest) = rest.and_then(|rest| rest.strip_suffix(".tape.zst")) else { return false };
    let (stamp, number) = rest.split_once('-').unwrap_or((rest, "0"));
    let is_stamp = stamp.len() == "20261119T050000Z".len() && stamp.ends_with('Z');
    is_stamp && number.bytes().all(|byte| byte.is_ascii_digit())
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::warn!(event = "adapter.tape_failed", %error, "the end of a tape could not be written");
        }
    }
}

/// Reads a tape, compressed or not.
#[derive(Debug)]
pub struct Tape {
    lines: Box<dyn Lines>,
    number: usize,
}

trait Lines: BufRead + Send {}
impl<T: BufRead + Send> Lines for T {}

impl std::fmt::Debug for dyn Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}

impl Tape {
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        let packed = file.fill_buf()?.starts_with(&MAGIC);
        let lines: Box<dyn Lines> = if packed {
            Box::new(BufReader::new(Decoder::with_buffer(file)?))
        } else {
            Box::new(file)
        };
        Ok(Self { lines, number: 0 })
    }

    /// The next record. A compressed tape that was cut off ends there.
    fn next_record(&mut self) -> io::Result<Option<Record>> {
        loop {
            let mut line = Vec::new();
            self.number += 1;
            match (&mut self.lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
            let record: Record = serde_json::from_slice(&line)
                .map_err(|error| invalid(format!("line {} of the tape: {error}", self.number)))?;
            if record.v != 1 {
                let why = format!(
                    "line {} of the tape has version {}; this program reads 1",
                    self.number, record.v
                );
                return Err(invalid(why));
            }
            return Ok(Some(record));
        }
    }
}

impl Iterator for Tape {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

/// Reads a tape at the speed at which it is played.
#[derive(Debug)]
pub(crate) struct Player {
    tape: Tape,
    /// For messages.
    path: PathBuf,
    speed: Speed,
    before: Option<Timestamp>,
}

/// The next record of a tape that is played.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) record: Record,
    pub(crate) body: Vec<u8>,
    /// The time since the record before.
    pub(crate) wait: Duration,
    /// The time of the record, if it is the first one with a time.
    pub(crate) begins: Option<Timestamp>,
}

impl Player {
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn open(path: &Path, speed: Speed) -> Result<Self, String> {
        let tape = Tape::open(path);
        let tape = tape.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(Self { tape, path: path.to_owned(), speed, before: None })
    }

    fn play(&mut self, record: Record) -> io::Result<Played> {
        let (body, at) = (record.bytes()?, record.instant());
        let wait = gap(self.speed, self.before, at);
        let begins = at.filter(|_| self.before.is_none());
        self.before = at.or(self.before);
        Ok(Played { record, body, wait, begins })
    }
}

impl Iterator for Player {
    /// Errors name the file.
    type Item = Result<Played, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.tape.next()?;
        let played = record.and_then(|record| self.play(record));
        Some(played.map_err(|error| format!("{}: {error}", self.path.display())))
    }
}

/// The wait between two records of a tape.
fn gap(speed: Speed, before: Option<Timestamp>, next: Option<Timestamp>) -> Duration {
    match (speed, before, next) {
        (Speed::Times(times), Some(before), Some(next)) => next.since(before) / times.max(1),
        (Speed::Max | Speed::Times(_), _, _) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_secs(1_800_014_400);

    fn record(later: u64, body: &[u8]) -> Record {
        let at = NOON.plus(Duration::from_secs(later));
        Record::new(at, "odds/mma", Some(200), &[("etag".to_owned(), "x".to_owned())], body)
    }

    fn read(path: &Path) -> Vec<Record> {
        Tape::open(path).unwrap().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn what_was_recorded_is_read_back_one_file_an_hour_and_a_cut_off_end_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(dir.path(), "toa");
        let records = [record(0, b"{}"), record(3599, b"\xff\x00"), record(3600, b"later")];
        for record in &records {
            recorder.write(record.clone()).await.unwrap();
        }
        let mut paths: Vec<PathBuf> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        assert_eq!(paths.len(), 2, "{paths:?}");
        assert_eq!(read(&paths[0]), records[..2]);
        assert_eq!(read(&paths[1]), records[2..], "also before the file is finished");
        assert_eq!(records[1].bytes().unwrap(), b"\xff\x00");
        let again = Recorder::new(dir.path(), "toa");
        again.write(record(3601, b"again")).await.unwrap();
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            3,
            "another start begins another file"
        );
        let plain = dir.path().join("plain.tape");
        fs::write(&plain, format!("{}\n\n", serde_json::to_string(&records[0]).unwrap())).unwrap();
        assert_eq!(read(&plain), records[..1]);
        fs::write(&plain, "{\"v\":2,\"at\":\"\",\"unit\":\"\"}\n").unwrap();
        assert!(
            Tape::open(&plain)
                .unwrap()
                .next()
                .unwrap()
                .unwrap_err()
                .to_string()
                .contains("version 2")
        );
    }

    #[test]
    fn tapes_of_an_adapter_with_a_longer_name_are_not_its_own() {
        for own in ["a-20261119T050000Z.tape.zst", "a-20261119T050000Z-12.tape.zst"] {
            assert!(is_tape_of("a", own), "{own}");
        }
        let others = ["a-b-20261119T050000Z.tape.zst", "a-1-20261119T050000Z.tape.zst"];
        for other in others.into_iter().chain(["a-notes.tape.zst", "ab-20261119T050000Z.tape.zst"])
        {
            assert!(!is_tape_of("a", other), "{other}");
        }
        assert!(is_tape_of("a-1", "a-1-20261119T050000Z.tape.zst"));
    }

    #[test]
    fn the_first_record_with_a_time_begins_a_tape_and_the_others_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plain.tape");
        let untimed = Record { at: String::new(), ..record(0, b"a") };
        let broken = Record { body: None, body_b64: Some("?".to_owned()), ..record(0, b"") };
        let records = [untimed.clone(), record(0, b"b"), untimed, record(60, b"c"), broken];
        let lines = records.map(|record| serde_json::to_string(&record).unwrap() + "\n");
        fs::write(&path, lines.concat()).unwrap();
        let mut player = Player::open(&path, Speed::Times(10)).unwrap();
        for (body, wait, begins) in
            [("a", 0, None), ("b", 0, Some(NOON)), ("a", 0, None), ("c", 6, None)]
        {
            let played = player.next().unwrap().unwrap();
            assert_eq!(played.body, body.as_bytes());
            assert_eq!((played.wait, played.begins), (Duration::from_secs(wait), begins), "{body}");
        }
        let error = player.next().unwrap().unwrap_err();
        assert!(error.contains("plain.tape") && error.contains("body_b64"), "{error}");
        assert!(player.next().is_none());
    }

    #[test]
    fn a_tape_is_played_at_its_speed() {
        let next = Some(NOON.plus(Duration::from_secs(60)));
        assert_eq!(gap(Speed::Times(1), Some(NOON), next), Duration::from_secs(60));
        assert_eq!(gap(Speed::Times(10), Some(NOON), next), Duration::from_secs(6));
        assert_eq!(gap(Speed::Max, Some(NOON), next), Duration::ZERO);
        assert_eq!(gap(Speed::Times(1), None, next), Duration::ZERO);
    }
}
