//! The frames in the body of a DATA packet.

use crate::seq::Seq16;
use crate::wire::reader::{Reader, Short, Value, values};

/// Declares the frames, each once with its type: those with an encoding of their own, those that encode one value, and
/// those of any length, with the value before their bytes if there is one.
macro_rules! frames {
    (
        own { $($(#[$own_doc:meta])* $own:ident($($own_type:ty),*) = $own_const:ident $own_code:literal,)* }
        values { $($(#[$doc:meta])* $value:ident($type:ty) = $const:ident $code:literal,)* }
        of_any_length {
            $($(#[$any_doc:meta])* $any:ident($($head:ident: $head_type:ty)?) = $any_const:ident $any_code:literal,)*
        }
    ) => {
        /// One frame.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[non_exhaustive]
        pub enum Frame<'a> {
            $($(#[$own_doc])* $own($($own_type),*),)*
            $($(#[$doc])* $value($type),)*
            $($(#[$any_doc])* $any($($head_type,)? &'a [u8]),)*
        }

        $(pub(super) const $own_const: u8 = $own_code;)*
        $(pub(super) const $const: u8 = $code;)*
        $(pub(super) const $any_const: u8 = $any_code;)*

        impl<'a> Frame<'a> {
            /// Decodes a frame without an encoding of its own, after its type.
            fn decode_content(found: u8, from: &mut Reader<'a>) -> Result<Self, FrameError> {
                match found {
                    $($const => return Ok(Self::$value(Value::read(from)?)),)*
                    _ => {}
                }
                match found & !TO_END {
                    $($any_const => {
                        let content = &mut content(found, from)?;
                        $(let $head = Value::read(content)?;)?
                        Ok(Self::$any($($head,)? content.rest()))
                    })*
                    _ => Err(FrameError::Kind { found }),
                }
            }

            /// Appends the frame as the last one.
            #[inline]
            pub(super) fn write(&self, to: &mut Vec<u8>) {
                match self {
                    Self::Pad(len) => to.resize(to.len() + len, PAD),
                    Self::Copy() => to.push(COPY),
                    Self::Close(reason, text) => {
                        to.push(CLOSE);
                        reason.write(to);
                        to.push(u8::try_from(text.len()).unwrap_or(u8::MAX)); // at most `CLOSE_TEXT_MAX`
                        to.extend_from_slice(text.as_bytes());
                    }
                    $(Self::$value(value) => {
                        to.push($const);
                        value.write(to);
                    })*
                    $(Self::$any($($head,)? content) => {
                        to.push($any_const | TO_END);
                        $($head.write(to);)?
                        to.extend_from_slice(content);
                    })*
                }
            }

            /// Its length in bytes as the last frame.
            pub(super) const fn len(&self) -> usize {
                match self {
                    Self::Pad(len) => *len,
                    Self::Copy() => 1,
                    Self::Close(_, text) => 4 + text.len(),
                    $(Self::$value(_) => 1 + <$type as Value<'_>>::LEN,)*
                    $(Self::$any($($head,)? content) => {
                        $(let _ = $head;)?
                        1 $(+ <$head_type as Value<'_>>::LEN)? + content.len()
                    })*
                }
            }
        }
    };
}

frames! {
    own {
        /// Padding up to the end of the body: this many bytes including the type, at least 1.
        Pad(usize) = PAD 0,
        /// The session is over. The code is for programs, the text for people; see [`is_close_text`].
        Close(u16, &'a str) = CLOSE 8,
        /// The frames that follow are those of the packet whose number is one less, for another address where the peer
        /// may be. Always the first frame of its body.
        Copy() = COPY 17,
    }
    values {
        /// Which packets have arrived.
        Ack(AckFrame) = ACK 3,
        /// A question whether the peer is alive. The answer returns the number.
        Ping(u64) = PING 4,
        /// The answer, with the number from the question.
        Pong(u64) = PONG 5,
        /// A question whether the peer receives packets at this address.
        PathChallenge([u8; 8]) = PATH_CHALLENGE 6,
        /// The answer, with the bytes from the question.
        PathResponse([u8; 8]) = PATH_RESPONSE 7,
        /// How many packets have arrived with which marks.
        Ecn(EcnFrame) = ECN 12,
        /// How much of what the receiver of this frame sends gets lost, and what was rebuilt.
        Loss(LossFrame) = LOSS 14,
        /// Half of an exchange of new keys.
        Rekey(RekeyFrame) = REKEY 15,
        /// Another number for the session, or the same with another reset token.
        NewId(NewId) = NEW_ID 16,
    }
    of_any_length {
        /// Segments of KCP.
        Kcp() = KCP 1,
        /// An unreliable message: not resent.
        Dgram() = DGRAM 2,
        /// Asks the client to move to another server, with this connect token.
        Redirect() = REDIRECT 9,
        /// Messages packed into bits.
        Packed() = PACKED 10,
        /// A part of the content of a [`Kcp`](Self::Kcp) that is too long for the path. Never empty.
        KcpPart(part: KcpPart) = KCP_PART 11,
        /// A sum of earlier packets, from which one lost packet can be rebuilt: the low half of the number of the
        /// first, then as in `code`. Always the first frame of its body.
        Repair(first: u32) = REPAIR 13,
    }
}

values! {
    /// Half of an exchange of new keys: the client's, or the server's answer.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    RekeyFrame {
        /// The phase that the keys are for: how often keys were updated then, modulo 2^16.
        phase: Seq16,
        /// A public key of X25519.
        half: [u8; 32],
    }

    /// What gets lost, and which lost packets were rebuilt.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    LossFrame {
        /// The low 16 bits of a packet number.
        newest: Seq16,
        /// Bit i: the packet `newest` - i was lost and rebuilt.
        rebuilt: u32,
        /// The share of packets that get lost, of 255. 0: so few that no repairs are wanted.
        share: u8,
    }

    /// A number by which the server knows the session.
    #[derive(Clone, Copy, Eq, PartialEq)]
    NewId {
        /// The client may write it into its packets from now on.
        sid: u32,
        /// With this token in a [`Reset`](super::Reset) of the same number, the server may end the session,
        /// as long as the client is at the address where it was told the token. Zeros: it never will.
        reset_token: [u8; 16],
    }

    /// Number of packets that have arrived, by the mark in their IP headers. Each count is modulo 2^32.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    EcnFrame {
        /// Not marked, or with a mark that the sender does not use.
        unmarked: u32,
        /// Marked by their sender: ECT(0).
        capable: u32,
        /// Marked by the path: CE.
        congested: u32,
    }

    /// The position of a part within its frame. All parts but the last have the same length, and the last is not
    /// longer.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    KcpPart {
        /// The number of the frame. Each end counts the frames that it cuts.
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
        /// How long ago the acknowledging end received it, in units of 0.1 ms.
        delay: u16,
    }
}

printed_without_secrets! { NewId { sid } }

impl EcnFrame {
    /// The number of packets that have arrived, modulo 2^32.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.unmarked.wrapping_add(self.capable).wrapping_add(self.congested)
    }
}

errors! {
    /// Why a body is not a sequence of frames. Nothing in it counts.
    FrameError {
        /// An unknown frame, or one that may not extend to the end.
        "{found:#04x} is not a frame" Kind { found: u8 },
        "a frame is cut off" Truncated,
        "the last frame is not in its shortest form" NotShortest,
        "the padding is not zero" Padding,
        /// The text of a CLOSE is too long, is not UTF-8 or has control characters.
        "the text of a close is invalid" Text,
        /// An invalid KCP_PART: it is empty, lies after the last part, or is a whole frame.
        "a part of a frame is invalid" Part,
        "a repair after another frame" Repair,
        "a copy within a packet" Copy,
        "too many frames in a body" TooMany,
    }
}

impl From<Short> for FrameError {
    fn from(_: Short) -> Self {
        Self::Truncated
    }
}

/// The frames of a body, all of which are valid.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    rest: Reader<'a>,
    /// The first frame and what follows it: most bodies have only one.
    first: Option<(Frame<'a>, Reader<'a>)>,
    /// A bit for the type of each frame in the body.
    types: u32,
}

impl<'a> Frames<'a> {
    /// Checks the whole body; then returns its frames one by one. An empty body has none. Fails if any part of it is
    /// not a frame or is in a place where it may not be, or if there are more than [`FRAMES_MAX`].
    pub fn parse(body: &'a [u8]) -> Result<Self, FrameError> {
        if let [KCP_TO_END, segments @ ..] = body {
            let first = Some((Frame::Kcp(segments), Reader::new(&[])));
            return Ok(Self { rest: Reader::new(body), first, types: 1 << KCP }); // most bodies are such a frame alone
        }
        let mut rest = Reader::new(body);
        let mut frames = Self { rest, first: None, types: 0 };
        for index in 0..FRAMES_MAX {
            let Some(found) = rest.rest().first() else { return Ok(frames) };
            let frame = Frame::decode(&mut rest)?;
            frames.types |= 1 << (found & !TO_END);
            match (&frame, index) {
                (_, 0) => frames.first = Some((frame, rest)),
                (Frame::Repair(..), _) => return Err(FrameError::Repair),
                (Frame::Copy(), _) => return Err(FrameError::Copy),
                _ => {}
            }
        }
        rest.finish().map_err(|_| FrameError::TooMany)?;
        Ok(frames)
    }

    /// Whether the body contains only news about received packets.
    pub(in crate::session) const fn only_tells(&self) -> bool {
        self.types & !TELLS == 0
    }

    /// Whether the body contains more than signs of life, questions for one, and what accompanies them.
    pub(in crate::session) const fn has_more_than_signs(&self) -> bool {
        self.types & !SIGNS != 0
    }

    /// Takes a [`Frame::Copy`]. Returns whether there was one.
    pub(in crate::session) fn take_copy(&mut self) -> bool {
        let is_copy = self.are_copied();
        if is_copy {
            self.next();
        }
        is_copy
    }

    /// Whether a [`Frame::Copy`] comes first.
    pub(in crate::session) const fn are_copied(&self) -> bool {
        matches!(self.first, Some((Frame::Copy(), _)))
    }

    /// The bytes of the frames that have not been returned yet.
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
        let (padded, found) = (from.rest().len(), from.u8()?);
        let frame = match found {
            PAD => {
                if from.take_rest().iter().any(|byte| *byte != 0) {
                    return Err(FrameError::Padding);
                }
                Self::Pad(padded)
            }
            COPY => Self::Copy(),
            CLOSE => {
                let (reason, len) = (from.u16()?, from.u8()?);
                Self::Close(reason, str::from_utf8(from.bytes(len)?).map_err(|_| FrameError::Text)?)
            }
            _ => Self::decode_content(found, from)?,
        };
        frame.fault().map_or(Ok(frame), Err)
    }

    /// What makes the frame invalid, if anything.
    pub(super) fn fault(&self) -> Option<FrameError> {
        match *self {
            Self::Pad(0) => Some(FrameError::Padding),
            Self::Close(_, text) if !is_close_text(text) => Some(FrameError::Text),
            Self::KcpPart(KcpPart { id, last, .. }, bytes) if last == 0 || id > last || bytes.is_empty() => {
                Some(FrameError::Part)
            }
            _ => None,
        }
    }
}

/// The content of a frame of any length: up to the end, or by its length field if others follow.
fn content<'a>(found: u8, from: &mut Reader<'a>) -> Result<Reader<'a>, FrameError> {
    if found & TO_END != 0 {
        return Ok(Reader::new(from.take_rest()));
    }
    let content: &[u8] = Value::read(from)?;
    if from.rest().is_empty() { Err(FrameError::NotShortest) } else { Ok(Reader::new(content)) }
}

/// Whether a [`Frame::Close`] may have this text: at most [`CLOSE_TEXT_MAX`] bytes and no control characters (U+0000 to
/// U+001F and U+007F to U+009F), because it ends up in logs and on terminals.
#[must_use]
pub fn is_close_text(text: &str) -> bool {
    text.len() <= CLOSE_TEXT_MAX && !text.chars().any(char::is_control)
}

/// Most frames in a body.
pub const FRAMES_MAX: usize = 64;
/// Most bytes of the text of a [`Frame::Close`].
pub const CLOSE_TEXT_MAX: usize = 128;

/// This bit marks a frame of any length as the last one. It then has no length field.
pub(super) const TO_END: u8 = 0x80;
const KCP_TO_END: u8 = KCP | TO_END;
/// The types with news about received packets.
const TELLS: u32 = 1 << ACK | 1 << ECN | 1 << LOSS | 1 << PONG | 1 << PAD | 1 << COPY;
/// The types of signs of life, questions for one, and what accompanies them.
const SIGNS: u32 = TELLS & !(1 << ACK | 1 << LOSS)
    | 1 << PING
    | 1 << PATH_CHALLENGE
    | 1 << PATH_RESPONSE
    | 1 << NEW_ID
    | 1 << REKEY;
