//! Requests that a node which is not the leader forwards to the leader: pushed lines and operators' operations.
//!
//! A push is sent in parts of whole lines, one after the other, each answered once it is in the log. A part that is
//! sent again changes nothing: the book finds it unchanged. A copy that was delayed beyond the next attempt is
//! rejected, since something newer may have arrived meanwhile. The lines are forwarded as they were sent, because a
//! parsed message contains numbers of this node's catalogue.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use change_log::{LeaderClient, NoAnswer};
use domain::Timestamp;
use domain::message::{Reject, RejectCode};
use feeds::push::Rights;
use market::{NotDone, Oddity, Operation};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::batch::{Lines, Outcome, Terms};
use crate::error::{NotTaken, OperateError};
use crate::piece::{PIECE_BYTES_MAX, Piece};
use crate::queue::Reserved;
use crate::receipt::{Anomaly, Receipt};
use crate::world::{Shared, WorldHandle};

/// Maximum time of retries while there is no leader: about as long as another node needs to take over.
const NOBODY_TIME_MAX: Duration = Duration::from_secs(5);
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// Maximum total time for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
/// Time after which a push is sent again: the request may have reached a node that was just stepping down, and a
/// repeated push does not double anything. An operation is not idempotent.
const PUSH_AGAIN: Duration = Duration::from_secs(3);
/// Time for which a forwarded push may be accepted: less than until it is sent again, by more than the clocks of nodes
/// differ.
const PUSH_VALID: Duration = Duration::from_millis(2500);
/// Maximum number of requests processed at once; further ones are asked to retry.
const FORWARDS_MAX: usize = 256;

/// The feed that pushes, and its permissions.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    pub feed: &'a str,
    pub bookmaker: Option<&'a str>,
    pub scores: bool,
}

/// The first line of a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// The lines follow, one a line; these are their numbers.
    Push {
        feed: String,
        bookmaker: Option<String>,
        /// True if the feed may report scores. Older programs do not send it: then only a feed bound to no bookmaker
        /// may.
        #[serde(default)]
        scores: bool,
        lines: Vec<usize>,
        /// Deadline for accepting it, in milliseconds. Older programs do not send it.
        #[serde(default)]
        before_ms: Option<i64>,
    },
    Operate(Operation),
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Response {
    Taken(Taken),
    Done {
        changes: usize,
    },
    NotDone(String),
    /// The queue is full, or the log cannot be written.
    NotNow,
    /// This node is not the leader any more.
    #[serde(rename = "elsewhere")]
    NotLeader,
    /// This node does not know the request, because its program is older than the sender's.
    NotUnderstood,
}

#[derive(Debug, Serialize, Deserialize)]
struct Taken {
    accepted: u64,
    unchanged: u64,
    superseded: u64,
    joins: u64,
    /// Line, code, message.
    rejected: Vec<(usize, String, String)>,
    odd: Vec<(usize, String, String)>,
}

impl From<Receipt> for Taken {
    fn from(receipt: Receipt) -> Self {
        let rejected = receipt.rejected.into_iter();
        let odd = receipt.odd.into_iter();
        Self {
            accepted: receipt.accepted,
            unchanged: receipt.unchanged,
            superseded: receipt.superseded,
            joins: receipt.joins,
            rejected: rejected
                .map(|(line, reject)| (line, reject.code.slug().to_owned(), reject.message))
                .collect(),
            odd: odd.map(|odd| (odd.line, odd.what.slug().to_owned(), odd.text)).collect(),
        }
    }
}

impl From<Taken> for Receipt {
    fn from(taken: Taken) -> Self {
        // A code of a newer program is reported as `invalid_message`.
        let code = |slug: &str| {
            let known = RejectCode::ALL.into_iter().find(|code| code.slug() == slug);
            known.unwrap_or(RejectCode::InvalidMessage)
        };
        let oddity = |slug: &str| Oddity::ALL.into_iter().find(|what| what.slug() == slug);
        let rejected = taken.rejected.into_iter();
        let odd = taken.odd.into_iter();
        Self {
            accepted: taken.accepted,
            unchanged: taken.unchanged,
            superseded: taken.superseded,
            joins: taken.joins,
            rejected: rejected
                .map(|(line, slug, message)| (line, Reject::new(code(&slug), message)))
                .collect(),
            odd: odd
                .filter_map(|(line, slug, text)| Some(Anomaly { line, what: oddity(&slug)?, text }))
                .collect(),
        }
    }
}

impl Shared {
    /// Forwards a piece of a push to the leader, and waits until all of it is durable.
    pub(crate) async fn forward(&self, from: Sender<'_>, piece: &Piece) -> Outcome {
        let bytes_max = reach(&self.leader_client).await.map_err(|_| NotTaken::NoWriter)?;
        let mut receipt = Receipt::default();
        for part in parts(piece, bytes_max) {
            let taken = match part {
                Part::Whole(lines) => self.forward_part(from, &lines).await,
                Part::TooLong(number, bytes) => Ok(too_long(number, bytes, bytes_max)),
            };
            let counter = if taken.is_ok() { &self.forwarded } else { &self.forward_failures };
            WorldHandle::count(counter, 1);
            receipt.add(taken?);
        }
        Ok(receipt)
    }

    async fn forward_part(&self, from: Sender<'_>, lines: &[(usize, &[u8])]) -> Outcome {
        let message = || {
            let before = self.clock.now().plus(PUSH_VALID);
            let request = Request::Push {
                feed: from.feed.to_owned(),
                bookmaker: from.bookmaker.map(ToOwned::to_owned),
                scores: from.scores,
                lines: lines.iter().map(|(number, _)| *number).collect(),
                before_ms: Some(before.as_millis()),
            };
            let mut message = encode(&request);
            for (_, line) in lines {
                message.push(b'\n');
                message.extend_from_slice(line);
            }
            message
        };
        match ask(&self.leader_client, message, PUSH_AGAIN).await {
            Ok(Response::Taken(taken)) => Ok(taken.into()),
            Ok(Response::NotNow) => Err(NotTaken::LogFailed),
            Ok(
                Response::NotUnderstood
                | Response::NotLeader
                | Response::Done { .. }
                | Response::NotDone(_),
            )
            | Err(_) => Err(NotTaken::NoWriter),
        }
    }
}

/// Forwards an operation to the leader.
pub(crate) async fn operate(
    leader_client: &LeaderClient,
    operation: &Operation,
) -> Result<usize, OperateError> {
    let request = Request::Operate(operation.clone());
    match ask(leader_client, || encode(&request), ANSWER_TIME_MAX).await {
        Ok(Response::Done { changes }) => Ok(changes),
        Ok(Response::NotDone(why)) => Err(OperateError::NotDone(NotDone(why))),
        Ok(Response::NotNow) => Err(OperateError::LogFailed),
        Ok(Response::NotUnderstood | Response::NotLeader | Response::Taken(_)) | Err(_) => {
            Err(OperateError::NoWriter)
        }
    }
}

/// The same for a program that serves nothing.
///
/// # Errors
/// It cannot be done, or no leader is reached.
pub async fn operate_remotely(
    leader_client: &LeaderClient,
    operation: &Operation,
) -> Result<usize, OperateError> {
    operate(leader_client, operation).await
}

/// The maximum length of a request, which the servers report once they are reached.
async fn reach(leader_client: &LeaderClient) -> Result<usize, NoAnswer> {
    let begun = Instant::now();
    loop {
        match leader_client.bytes_max() {
            Some(bytes_max) => return Ok(bytes_max),
            None if begun.elapsed() > NOBODY_TIME_MAX => return Err(NoAnswer::Nobody),
            None => sleep(TRY_AGAIN).await,
        }
    }
}

/// Sends a request to the leader, with retries for a while if there is none or it does not answer.
async fn ask(
    leader_client: &LeaderClient,
    message: impl Fn() -> Vec<u8>,
    within: Duration,
) -> Result<Response, NoAnswer> {
    let begun = Instant::now();
    loop {
        let none = match leader_client.ask(message(), within).await {
            Ok(answer) => match serde_json::from_slice(&answer) {
                Ok(Response::NotLeader) => NoAnswer::Nobody,
                response => return response.map_err(|_| NoAnswer::Late),
            },
            Err(none) => none,
        };
        let time_max = match none {
            NoAnswer::Nobody => NOBODY_TIME_MAX,
            NoAnswer::Late => ANSWER_TIME_MAX - within,
        };
        if begun.elapsed() >= time_max {
            return Err(none);
        }
        sleep(TRY_AGAIN).await;
    }
}

enum Part<'a> {
    Whole(Vec<(usize, &'a [u8])>),
    /// The number and length of a line that is too long for a message.
    TooLong(usize, usize),
}

/// Splits a piece into parts, in order, if the servers do not accept it whole.
fn parts(piece: &Piece, bytes_max: usize) -> Vec<Part<'_>> {
    // Room for the names, and for a line number of seven digits.
    let line_bytes_max = bytes_max.saturating_sub(8 * 1024);
    let part_bytes_max = PIECE_BYTES_MAX.min(line_bytes_max / 2);
    let mut parts = Vec::new();
    let (mut held, mut bytes) = (Vec::new(), 0);
    for (number, line) in piece.lines() {
        if bytes + line.len() > part_bytes_max && !held.is_empty() {
            parts.push(Part::Whole(std::mem::take(&mut held)));
            bytes = 0;
        }
        if line.len() > line_bytes_max {
            parts.push(Part::TooLong(number, line.len()));
            continue;
        }
        bytes += line.len();
        held.push((number, line));
    }
    // Also if there was no line: the answer shows that a leader would have accepted it.
    if !held.is_empty() || parts.is_empty() {
        parts.push(Part::Whole(held));
    }
    parts
}

fn too_long(number: usize, bytes: usize, bytes_max: usize) -> Receipt {
    let text = format!(
        "the line has {bytes} bytes; the servers between this node and the leader accept at most {bytes_max}"
    );
    Receipt {
        rejected: vec![(number, Reject::new(RejectCode::TooLarge, text))],
        ..Receipt::default()
    }
}

/// Answers other nodes while this node is the leader, for as long as the service runs.
pub async fn serve_forwards(handle: Arc<WorldHandle>) {
    let Some(shared) = &handle.shared else { return };
    let mut leading = shared.leading.subscribe();
    let room = Arc::new(Semaphore::new(FORWARDS_MAX));
    while leading.wait_for(|leads| *leads).await.is_ok() {
        let mut server = match shared.leader_client.serve().await {
            Ok(server) => server,
            Err(error) => {
                tracing::error!(event = "forward.listen_failed", %error, "pushes of other nodes cannot be taken");
                sleep(TRY_AGAIN).await;
                continue;
            }
        };
        loop {
            // Both may be dropped half-way: a request that is not received here was not accepted at all.
            tokio::select! {
                changed = leading.wait_for(|leads| !*leads) => {
                    if changed.is_err() {
                        return;
                    }
                    break;
                }
                message = server.next() => match message {
                    Some(message) => serve_forward(&handle, message, &room),
                    None => return,
                },
            }
        }
    }
}

fn serve_forward(handle: &Arc<WorldHandle>, message: change_log::Request, room: &Arc<Semaphore>) {
    let (handle, room) = (Arc::clone(handle), Arc::clone(room));
    tokio::spawn(async move {
        let Ok(_held) = room.try_acquire() else {
            return message.answer(encode(&Response::NotNow)).await;
        };
        let response = handle.take_forward(message.payload.clone()).await;
        message.answer(encode(&response)).await;
    });
}

/// Parses the lines of a forwarded push and queues them.
async fn taken(
    reserved: Result<Reserved, NotTaken>,
    parse: impl FnOnce() -> Lines + Send + 'static,
    terms: Terms,
) -> Outcome {
    let reserved = reserved?;
    let lines = tokio::task::spawn_blocking(parse).await.map_err(|_| NotTaken::Stopped)?;
    reserved.put(lines, terms)?.await.unwrap_or(Err(NotTaken::Stopped))
}

/// No request or answer can fail to be serialised; an empty one would not be understood.
fn encode(said: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(said).unwrap_or_default()
}

impl WorldHandle {
    /// Forwards a piece of a push to another node that is the leader, and waits until it is durable.
    pub async fn forward(&self, from: Sender<'_>, piece: &Piece) -> Outcome {
        match &self.shared {
            Some(shared) => shared.forward(from, piece).await,
            None => Err(NotTaken::Stopped),
        }
    }

    /// Carries out an operator's operation and returns the number of its changes once they are durable. They show with
    /// the next snapshot.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn operate(&self, operation: Operation) -> Result<usize, OperateError> {
        let done = if self.leads() {
            self.operate_here(operation.clone()).await
        } else {
            Err(OperateError::Overtaken)
        };
        match (&self.shared, done) {
            (Some(shared), Err(OperateError::Overtaken)) => {
                operate(&shared.leader_client, &operation).await
            }
            (_, done) => done,
        }
    }

    async fn take_forward(&self, message: Bytes) -> Response {
        let Some(shared) = &self.shared else { return Response::NotUnderstood };
        let head = message.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Ok(request) = serde_json::from_slice(head) else { return Response::NotUnderstood };
        match request {
            Request::Push { feed, bookmaker, scores, lines, before_ms } => {
                let Some(_admitted) = self.queue.admit_request(&feed) else {
                    return Response::NotNow;
                };
                let before = before_ms.map(Timestamp::from_millis);
                let bound = match &bookmaker {
                    Some(key) => match shared.catalogue.bookmaker_id(key) {
                        None => return Response::NotUnderstood,
                        bound => bound,
                    },
                    None => None,
                };
                let rights = Rights { bookmaker: bound, scores: scores || bound.is_none() };
                let catalogue = Arc::clone(&shared.catalogue);
                let reserved = self.queue.reserve(&feed, message.len(), lines.len()).await;
                let parse = move || -> Lines {
                    let texts = message.split(|byte| *byte == b'\n').skip(1);
                    let parse = |text| rights.parse(text, &catalogue);
                    lines.into_iter().zip(texts).map(|(line, text)| (line, parse(text))).collect()
                };
                match taken(reserved, parse, Terms { before, stands: None }).await {
                    Ok(receipt) => Response::Taken(receipt.into()),
                    // A sender that still waits retries.
                    Err(
                        NotTaken::Overtaken
                        | NotTaken::NoWriter
                        | NotTaken::Stopped
                        | NotTaken::Overdue
                        | NotTaken::Withdrawn,
                    ) => Response::NotLeader,
                    Err(NotTaken::LogFailed) => Response::NotNow,
                }
            }
            Request::Operate(operation) => match self.operate_here(operation).await {
                Ok(changes) => Response::Done { changes },
                Err(OperateError::NotDone(why)) => Response::NotDone(why.0),
                Err(OperateError::LogFailed | OperateError::Busy) => Response::NotNow,
                Err(OperateError::Overtaken | OperateError::NoWriter) => Response::NotLeader,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the lines in each part; a line that is too long is given alone, as its length.
    fn numbers(body: &str, bytes_max: usize) -> Vec<Result<Vec<usize>, usize>> {
        let of = |part| match part {
            Part::Whole(lines) => Ok(lines.into_iter().map(|(number, _)| number).collect()),
            Part::TooLong(_, bytes) => Err(bytes),
        };
        let pieces = Piece::all(&Bytes::copy_from_slice(body.as_bytes()));
        pieces.iter().flat_map(|piece| parts(piece, bytes_max)).map(of).collect()
    }

    #[test]
    fn parts_hold_whole_lines_in_their_order_and_nothing_twice() {
        assert_eq!(numbers("", 1 << 20), [Ok(vec![])], "an empty push is asked about too");
        assert_eq!(numbers("a\n\nb\n", 1 << 20), [Ok(vec![1, 3])]);
        // Room for 100 bytes of lines: parts are filled to half, a longer line has its own part, one that exceeds it
        // has none.
        let (small, large, huge) = ("s".repeat(30), "l".repeat(90), "h".repeat(101));
        let body = format!("{small}\n{small}\n{large}\n{huge}\n{small}\n");
        let expected = [Ok(vec![1]), Ok(vec![2]), Ok(vec![3]), Err(101), Ok(vec![5])];
        assert_eq!(numbers(&body, 8 * 1024 + 100), expected);
    }

    #[test]
    fn what_became_of_a_push_is_the_same_after_its_way_back() {
        let receipt = Receipt {
            accepted: 3,
            unchanged: 2,
            superseded: 1,
            joins: 4,
            rejected: vec![(7, Reject::new(RejectCode::FutureTs, "too early"))],
            odd: vec![Anomaly { line: 9, what: Oddity::Turned, text: "turned".to_owned() }],
        };
        let before = format!("{receipt:?}");
        let response = encode(&Response::Taken(receipt.into()));
        let Response::Taken(taken) = serde_json::from_slice(&response).unwrap() else {
            panic!("not taken")
        };
        assert_eq!(format!("{:?}", Receipt::from(taken)), before);
    }
}
