//! What the body of a DATA packet is made of.

use crate::seq::Seq16;
use crate::wire::reader::{Reader, Short, Value, values};

/// One frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// Nothing, up to the end of the body: so many bytes, the type included; at least 1.
    Pad(usize),
    /// Segments of KCP.
    Kcp(&'a [u8]),
    /// A message that is not sent again.
    Dgram(&'a [u8]),
    /// Which packets have arrived.
    Ack(AckFrame),
    /// Are you there? With any number, which comes back.
    Ping(u64),
    /// The answer, with the number of the question.
    Pong(u64),
    /// Are you really there, at this address?
    PathChallenge([u8; 8]),
    /// The answer, with the bytes of the question.
    PathResponse([u8; 8]),
    /// The session is over: why, for programs, and in words: see [`is_close_text`].
    Close(u16, &'a str),
    /// Go to another server, with this connect token.
    Redirect(&'a [u8]),
    /// Messages packed into bits.
    Packed(&'a [u8]),
    /// A part of the content of a [`Kcp`](Self::Kcp) that is too long for the path, which never is empty.
    KcpPart(KcpPart, &'a [u8]),
    /// How many packets have arrived with which marks.
    Ecn(EcnFrame),
    /// A sum of earlier packets, of which one that is lost is rebuilt: the low half of the number of the first of them, then as in
    /// `code`. The first frame of its body.
    Repair(u32, &'a [u8]),
    /// How much gets lost of what its receiver sends, and what was rebuilt.
    Loss(LossFrame),
}

values! {
    /// What gets lost, and what of it was rebuilt.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    LossFrame {
        /// The low 16 bits of a packet number.
        newest: Seq16,
        /// Bit i: the packet `newest` - i did not arrive and was rebuilt.
        rebuilt: u32,
        /// The share of packets that get lost, of 255; 0: so few that no repairs are wanted.
        share: u8,
    }

    /// Packets that have arrived, by what their IP headers said; each count is modulo 2^32.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    EcnFrame {
        /// Not marked, or in a way that its sender does not use.
        unmarked: u32,
        /// Marked by their sender: ECT(0).
        capable: u32,
        /// Marked by the path: CE.
        congested: u32,
    }

    /// The place of a part among those of its frame. All parts but the last have one length, and the last is no longer.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    KcpPart {
        /// The number of the frame: each end counts those that it cuts up.
        number: Seq16,
        /// The number of the part, from 0.
        id: u8,
        /// The number of the last part, at least 1.
        last: u8,
    }

    /// The newest packet that has arrived, and which of the 32 before it have.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    AckFrame {
        /// The low 16 bits of the newest packet number that was received.
        ack: Seq16,
        /// Bit i: `ack` - 1 - i was received.
        bits: u32,
        /// How long its receiver has had it, in units of 0.1 ms.
        delay: u16,
    }
}

impl EcnFrame {
    /// All packets that have arrived, modulo 2^32.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.unmarked.wrapping_add(self.capable).wrapping_add(self.congested)
    }
}

errors! {
    /// Why a body is not a sequence of frames. Nothing of it counts.
    FrameError {
        /// There is no such frame, or it may not extend to the end.
        "{found:#04x} is no frame" Kind { found: u8 },
        "a frame is cut off" Truncated,
        "the last frame is not the shortest that says this" NotShortest,
        "the padding is not zero" Padding,
        /// The text of a CLOSE is too long, no UTF-8, or has control characters.
        "the text of a close is none" Text,
        /// A KCP_PART is none: it has no bytes, comes after the last, or is a whole frame.
        "a part of a frame is none" Part,
        "a repair behind another frame" Repair,
        "more frames than a body may have" TooMany,
    }
}

impl From<Short> for FrameError {
    fn from(_: Short) -> Self {
        Self::Truncated
    }
}

/// The frames of a body that is one as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    rest: Reader<'a>,
    /// The first of them, and what is behind it: most bodies have no other.
    first: Option<(Frame<'a>, Reader<'a>)>,
    /// Of each frame of the body, the bit of its type.
    types: u16,
}

impl<'a> Frames<'a> {
    /// Looks at the whole body, and then gives the frames one by one. An empty body has none. It fails when any of it is no frame, or
    /// stands where it may not, or there are more than [`FRAMES_MAX`].
    pub fn parse(body: &'a [u8]) -> Result<Self, FrameError> {
        let mut rest = Reader::new(body);
        let mut frames = Self { rest, first: None, types: 0 };
        for index in 0..FRAMES_MAX {
            let Some(found) = rest.rest().first() else { return Ok(frames) };
            let frame = Frame::decode(&mut rest)?;
            frames.types |= 1 << (found & !frame_type::TO_END);
            match (&frame, index) {
                (_, 0) => frames.first = Some((frame, rest)),
                (Frame::Repair(..), _) => return Err(FrameError::Repair),
                _ => {}
            }
        }
        rest.finish().map_err(|_| FrameError::TooMany)?;
        Ok(frames)
    }

    /// Whether the body says something of packets that have come, and nothing else.
    pub(in crate::session) const fn only_tells(&self) -> bool {
        self.types & !frame_type::TELLS == 0
    }

    /// Whether the body has more than signs of life, what asks for one, and what comes along with one.
    pub(in crate::session) const fn has_more_than_signs(&self) -> bool {
        self.types & !frame_type::SIGNS != 0
    }

    /// The bytes of the frames that have not been given.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest.rest()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        if let Some((frame, rest)) = self.first.take() {
            self.rest = rest;
            return Some(frame);
        }
        if self.rest.rest().is_empty() {
            return None;
        }
        Frame::decode(&mut self.rest).ok()
    }
}

impl<'a> Frame<'a> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, FrameError> {
        let padded = from.rest().len();
        let found = from.u8()?;
        Ok(match found {
            frame_type::PAD => {
                if from.take_rest().iter().any(|byte| *byte != 0) {
                    return Err(FrameError::Padding);
                }
                Self::Pad(padded)
            }
            frame_type::ACK => Self::Ack(Value::read(from)?),
            frame_type::ECN => Self::Ecn(Value::read(from)?),
            frame_type::LOSS => Self::Loss(Value::read(from)?),
            frame_type::PING => Self::Ping(from.u64()?),
            frame_type::PONG => Self::Pong(from.u64()?),
            frame_type::PATH_CHALLENGE => Self::PathChallenge(from.array()?),
            frame_type::PATH_RESPONSE => Self::PathResponse(from.array()?),
            frame_type::CLOSE => {
                let (reason, len) = (from.u16()?, from.u8()?);
                let text = str::from_utf8(from.bytes(len)?).ok();
                let text = text.filter(|text| is_close_text(text)).ok_or(FrameError::Text)?;
                Self::Close(reason, text)
            }
            _ => {
                let make = frame_type::of_any_length(found & !frame_type::TO_END);
                make.ok_or(FrameError::Kind { found })?(Reader::new(content(found, from)?))?
            }
        })
    }

    fn part(mut content: Reader<'a>) -> Result<Self, FrameError> {
        let (part, bytes) = (KcpPart::read(&mut content)?, content.take_rest());
        let is_one = part.is_possible() && !bytes.is_empty();
        if is_one { Ok(Self::KcpPart(part, bytes)) } else { Err(FrameError::Part) }
    }
}

impl KcpPart {
    /// Whether there is such a part: a whole frame is none.
    pub(super) const fn is_possible(self) -> bool {
        self.last > 0 && self.id <= self.last
    }
}

/// The content of a frame of any length: up to the end, or by the length before it if others follow.
fn content<'a>(found: u8, from: &mut Reader<'a>) -> Result<&'a [u8], FrameError> {
    if found & frame_type::TO_END != 0 {
        return Ok(from.take_rest());
    }
    let len = from.u16()?;
    let content = from.bytes(len)?;
    if from.rest().is_empty() { Err(FrameError::NotShortest) } else { Ok(content) }
}

/// Whether a [`Frame::Close`] may have this text: at most [`CLOSE_TEXT_MAX`] bytes, and no control characters (U+0000 to U+001F and
/// U+007F to U+009F), for it ends up in logs and on terminals.
#[must_use]
pub fn is_close_text(text: &str) -> bool {
    text.len() <= CLOSE_TEXT_MAX && !text.chars().any(char::is_control)
}

/// Most frames of a body.
pub const FRAMES_MAX: usize = 64;
/// Most bytes of the text of a [`Frame::Close`].
pub const CLOSE_TEXT_MAX: usize = 128;

/// The first byte of a frame.
pub(super) mod frame_type {
    use super::{Frame, FrameError, Reader};

    pub(in super::super) const PAD: u8 = 0;
    pub(in super::super) const KCP: u8 = 1;
    pub(in super::super) const DGRAM: u8 = 2;
    pub(in super::super) const ACK: u8 = 3;
    pub(in super::super) const PING: u8 = 4;
    pub(in super::super) const PONG: u8 = 5;
    pub(in super::super) const PATH_CHALLENGE: u8 = 6;
    pub(in super::super) const PATH_RESPONSE: u8 = 7;
    pub(in super::super) const CLOSE: u8 = 8;
    pub(in super::super) const REDIRECT: u8 = 9;
    pub(in super::super) const PACKED: u8 = 10;
    pub(in super::super) const KCP_PART: u8 = 11;
    pub(in super::super) const ECN: u8 = 12;
    pub(in super::super) const REPAIR: u8 = 13;
    pub(in super::super) const LOSS: u8 = 14;
    /// Set in the type of a frame of any length that is the last one: it has no length then.
    pub(in super::super) const TO_END: u8 = 0x80;

    /// What says something of packets that have come.
    pub(in super::super) const TELLS: u16 = 1 << ACK | 1 << ECN | 1 << LOSS | 1 << PONG | 1 << PAD;
    /// Signs of life, what asks for one, and what comes along with one.
    pub(in super::super) const SIGNS: u16 =
        1 << PING | 1 << PONG | 1 << PAD | 1 << ECN | 1 << PATH_CHALLENGE | 1 << PATH_RESPONSE;

    /// The frames that have a length, or extend to the end.
    pub(super) fn of_any_length<'a>(found: u8) -> Option<fn(Reader<'a>) -> Result<Frame<'a>, FrameError>> {
        Some(match found {
            KCP => |content| Ok(Frame::Kcp(content.rest())),
            DGRAM => |content| Ok(Frame::Dgram(content.rest())),
            REDIRECT => |content| Ok(Frame::Redirect(content.rest())),
            PACKED => |content| Ok(Frame::Packed(content.rest())),
            REPAIR => |mut content| Ok(Frame::Repair(content.u32()?, content.rest())),
            KCP_PART => Frame::part,
            _ => return None,
        })
    }
}
