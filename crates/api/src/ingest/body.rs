//! The body of a push: read as it arrives, decompressed, and checked before any line is accepted.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use feeds::push;
use http_body_util::BodyExt;

use super::budget::{Held, NoRoom};
use crate::error::{ApiError, ErrorCode};
use engine::Piece;

/// Maximum size of a body, compressed and decompressed.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;
/// Maximum number of lines in a body: about what fits into 8 MiB at the size of the shortest message.
pub(crate) const LINES_MAX: usize = 200_000;
/// Maximum time for a body to arrive (D32).
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes decompressed between checks of the memory budget.
const STEP_BYTES: usize = 64 << 10;
/// `Retry-After` for a push without free memory, in seconds.
const NO_ROOM_RETRY_S: u32 = 2;

/// Reads a body and reserves memory as it arrives. An announced length is reserved before the first byte.
pub(super) async fn read<B>(mut body: B, held: &mut Held) -> Result<Bytes, ApiError>
where
    B: BodyExt<Data = Bytes> + Unpin,
{
    let announced = body.size_hint().exact().map_or(Ok(0), usize::try_from);
    let announced = announced.map_err(|_| too_large())?;
    if announced > BODY_BYTES_MAX {
        return Err(too_large());
    }
    held.hold(announced).map_err(no_room)?;
    let reading = async {
        let mut whole = Vec::with_capacity(announced);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| {
                ApiError::new(ErrorCode::InvalidBody, "the body ended before it was whole")
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if whole.len() + data.len() > BODY_BYTES_MAX {
                return Err(too_large());
            }
            held.hold(whole.len() + data.len()).map_err(no_room)?;
            whole.extend_from_slice(&data);
        }
        Ok(Bytes::from(whole))
    };
    match tokio::time::timeout(BODY_TIME_MAX, reading).await {
        Ok(read) => read,
        Err(_) => {
            let text = "the body did not arrive within 30 s";
            Err(ApiError::new(ErrorCode::InvalidBody, text))
        }
    }
}

fn too_large() -> ApiError {
    let text =
        "the body is larger than 8 MiB unpacked, or has more than 200000 lines; send it in parts";
    ApiError::new(ErrorCode::BodyTooLarge, text)
}

pub(super) fn no_room(no_room: NoRoom) -> ApiError {
    ApiError::unavailable(match no_room {
        NoRoom::Feed => {
            "this feed's ingest queue is full; nothing of this push was stored, retry shortly"
        }
        NoRoom::All => "the ingest queue is full; nothing of this push was stored, retry shortly",
    })
    .retry_after(NO_ROOM_RETRY_S)
}

/// Compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    pub(super) fn parse(header: Option<&str>) -> Result<Self, ApiError> {
        match header.map(str::trim) {
            None | Some("" | "identity") => Ok(Self::Plain),
            Some(name) if name.eq_ignore_ascii_case("gzip") => Ok(Self::Gzip),
            Some(name) if name.eq_ignore_ascii_case("zstd") => Ok(Self::Zstd),
            Some(_) => {
                let text = "Content-Encoding must be gzip, zstd or absent";
                Err(ApiError::new(ErrorCode::InvalidBody, text))
            }
        }
    }

    /// Decompresses the body, checks it and splits it into pieces.
    pub(super) fn open(self, packed: Bytes, held: &mut Held) -> Result<Vec<Piece>, ApiError> {
        let body = match self {
            Self::Plain => packed,
            Self::Gzip => unpack(flate2::read::MultiGzDecoder::new(&*packed), &packed, held)?,
            Self::Zstd => {
                let reader =
                    zstd::stream::read::Decoder::new(&*packed).map_err(|_| badly_packed())?;
                unpack(reader, &packed, held)?
            }
        };
        held.shrink(body.len());
        if !push::looks_like_text(&body) {
            let text = "the body is not lines of text; send NDJSON, one message a line";
            return Err(ApiError::new(ErrorCode::InvalidBody, text));
        }
        if body.iter().filter(|byte| **byte == b'\n').count() > LINES_MAX {
            return Err(too_large());
        }
        Ok(Piece::all(&body))
    }
}

/// Decompresses up to the endpoint's limit and the memory budget.
fn unpack(mut reader: impl Read, packed: &Bytes, held: &mut Held) -> Result<Bytes, ApiError> {
    let mut unpacked = Vec::new();
    loop {
        held.hold(packed.len() + unpacked.len() + STEP_BYTES).map_err(no_room)?;
        let step = u64::try_from(STEP_BYTES).unwrap_or(u64::MAX);
        let read = reader.by_ref().take(step).read_to_end(&mut unpacked);
        let read = read.map_err(|_| badly_packed())?;
        if unpacked.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        if read < STEP_BYTES {
            return Ok(unpacked.into());
        }
    }
}

fn badly_packed() -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, "the body is not what its Content-Encoding says")
}
