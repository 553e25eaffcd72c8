//! Writes frames into a body of limited size.

use super::frame::{FRAMES_MAX, Frame, KCP, KcpPart, REPAIR, TO_END};
use crate::wire::reader::Value;
use thiserror::Error;

/// A frame does not fit, or is invalid. Nothing was written.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[error("the frame does not fit")]
pub struct NoRoom;

/// Appends frames to a buffer.
///
/// The last frame extends to the end if it may have any length. When another frame follows, it gets a length field, for
/// which it moves by two bytes. So write the longest frame last.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    buffer: &'a mut Vec<u8>,
    end: usize,
    count: usize,
    /// Where the last frame begins, if it extends to the end.
    open: Option<usize>,
}

impl<'a> FrameWriter<'a> {
    /// Appends to `buffer`, until that is `end` bytes long.
    #[must_use]
    pub const fn new(buffer: &'a mut Vec<u8>, end: usize) -> Self {
        Self { buffer, end, count: 0, open: None }
    }

    /// Begins a KCP frame in an empty body. Its content is to be written after it.
    pub(in crate::session) fn begin_kcp(buffer: &mut Vec<u8>) {
        buffer.push(KCP | TO_END);
    }

    /// Continues after such a frame, which begins at `start`.
    pub(in crate::session) const fn behind_kcp(buffer: &'a mut Vec<u8>, start: usize, end: usize) -> Self {
        Self { buffer, end, count: 1, open: Some(start) }
    }

    /// From now on, writes until the buffer is `end` bytes long. Gives up a reserve.
    pub const fn set_end(&mut self, end: usize) {
        self.end = end;
    }

    /// The number of frames written.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Most bytes of content that the next frame may have, if it is a KCP, DGRAM, REDIRECT, PACKED, KCP_PART or REPAIR.
    /// `None`: there is no room.
    #[must_use]
    pub fn room(&self) -> Option<usize> {
        self.left()?.checked_sub(1)
    }

    /// Appends a frame. Fails if there is no room for it, padding was written, there are [`FRAMES_MAX`] already, its
    /// contents are invalid, or it is a REPAIR or COPY and not the first frame.
    pub fn push(&mut self, frame: &Frame<'_>) -> Result<(), NoRoom> {
        let left = self.left().ok_or(NoRoom)?;
        let is_late = matches!(frame, Frame::Repair(..) | Frame::Copy()) && self.count > 0;
        if is_late || frame.fault().is_some() || frame.len() > left.min(1 + usize::from(u16::MAX)) {
            return Err(NoRoom);
        }
        self.close_last();
        let start = self.buffer.len();
        frame.write(self.buffer);
        self.open = self.buffer.get(start).is_some_and(|found| found & TO_END != 0).then_some(start);
        self.count = if let Frame::Pad(_) = frame { FRAMES_MAX } else { self.count + 1 }; // nothing may follow padding
        Ok(())
    }

    /// Bytes left for another frame, once the last one has a length field.
    fn left(&self) -> Option<usize> {
        if self.count >= FRAMES_MAX {
            return None;
        }
        let used = self.buffer.len() + if self.open.is_some() { LENGTH_LEN } else { 0 };
        self.end.checked_sub(used)
    }

    fn close_last(&mut self) {
        let Some(start) = self.open.take() else {
            return;
        };
        let content = start + 1;
        let len = self.buffer.len() - content;
        let len = u16::try_from(len).unwrap_or(u16::MAX); // nothing longer was accepted
        if let Some(frame_type) = self.buffer.get_mut(start) {
            *frame_type &= !TO_END;
        }
        let end = self.buffer.len();
        self.buffer.extend_from_slice(&[0; LENGTH_LEN]);
        self.buffer.copy_within(content..end, content + LENGTH_LEN);
        if let Some(to) = self.buffer.get_mut(content..).and_then(<[u8]>::first_chunk_mut) {
            *to = len.to_le_bytes();
        }
    }
}

/// Inserts a REPAIR before the frames written from `start` of the buffer on, which leave room for it. Returns where to
/// write its payload of `len` bytes.
pub(in crate::session) fn insert_repair(
    buffer: &mut Vec<u8>,
    start: usize,
    first: u32,
    len: u16,
) -> &mut [u8] {
    let end = buffer.len();
    if end == start {
        buffer.push(REPAIR | TO_END);
    } else {
        buffer.push(REPAIR);
        let len = u16::try_from(REPAIR_FIRST + usize::from(len)).unwrap_or(u16::MAX); // it fits into a datagram
        buffer.extend_from_slice(&len.to_le_bytes());
    }
    buffer.extend_from_slice(&first.to_le_bytes());
    let head = buffer.len() - end;
    buffer.resize(buffer.len() + usize::from(len), 0);
    let body = buffer.get_mut(start..).unwrap_or_default();
    body.rotate_left(end - start);
    body.get_mut(head..head + usize::from(len)).unwrap_or_default()
}

/// Bytes of a KCP_PART before the part of the frame that was cut.
pub(in crate::session) const PART_HEAD: usize = KcpPart::LEN;
/// Bytes of a REPAIR that tell its first packet.
pub(in crate::session) const REPAIR_FIRST: usize = u32::LEN;
const LENGTH_LEN: usize = 2;
