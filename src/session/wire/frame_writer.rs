//! Frames into a body of limited size.

use super::frame::{FRAMES_MAX, Frame, KCP, KcpPart, REPAIR, TO_END};
use crate::wire::reader::Value;
use thiserror::Error;

/// A frame does not fit any more, or cannot be one. Nothing was written.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[error("the frame does not fit")]
pub struct NoRoom;

/// Appends frames to a buffer.
///
/// A frame of any length extends to the end for as long as it is the last one. When another follows it gets its length, for which
/// it moves by two bytes; so the longest is best written last.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    buffer: &'a mut Vec<u8>,
    end: usize,
    count: usize,
    /// Where the last frame begins, if it extends to the end.
    open: Option<usize>,
}

impl<'a> FrameWriter<'a> {
    /// Writes behind what is in `buffer`, until that is `end` bytes long.
    #[must_use]
    pub const fn new(buffer: &'a mut Vec<u8>, end: usize) -> Self {
        Self { buffer, end, count: 0, open: None }
    }

    /// Begins a frame of KCP in an empty body, whose content is to be written behind it.
    pub(in crate::session) fn begin_kcp(buffer: &mut Vec<u8>) {
        buffer.push(KCP | TO_END);
    }

    /// Writes behind such a frame, which begins at `start`.
    pub(in crate::session) const fn behind_kcp(buffer: &'a mut Vec<u8>, start: usize, end: usize) -> Self {
        Self { buffer, end, count: 1, open: Some(start) }
    }

    /// From now on writes until the buffer is `end` bytes long: for what room was left for.
    pub const fn set_end(&mut self, end: usize) {
        self.end = end;
    }

    /// Frames written.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Most bytes that the next frame may have as content, if it is one of KCP, DGRAM, REDIRECT, PACKED, KCP_PART or REPAIR; `None`: there is no
    /// room for any.
    #[must_use]
    pub fn room(&self) -> Option<usize> {
        self.left()?.checked_sub(1)
    }

    /// Appends a frame. It fails when there is no room for it, padding has been written, there are [`FRAMES_MAX`], what it holds is
    /// nothing that it may hold, or it is a REPAIR and not the first.
    pub fn push(&mut self, frame: &Frame<'_>) -> Result<(), NoRoom> {
        let left = self.left().ok_or(NoRoom)?;
        let is_late = matches!(frame, Frame::Repair(..)) && self.count > 0;
        if is_late || frame.fault().is_some() || frame.len() > left.min(1 + usize::from(u16::MAX)) {
            return Err(NoRoom);
        }
        self.close_last();
        let start = self.buffer.len();
        frame.write(self.buffer);
        self.open = self.buffer.get(start).is_some_and(|found| found & TO_END != 0).then_some(start);
        self.count = if let Frame::Pad(_) = frame { FRAMES_MAX } else { self.count + 1 }; // nothing comes behind padding
        Ok(())
    }

    /// Bytes for another frame, once the last one has a length.
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
        let len = u16::try_from(len).unwrap_or(u16::MAX); // nothing longer was let in
        if let Some(frame_type) = self.buffer.get_mut(start) {
            *frame_type &= !TO_END;
        }
        self.buffer.splice(content..content, len.to_le_bytes());
    }
}

/// Puts a REPAIR before the frames that have been written from `start` of the buffer on, of which there is room for one more. Returns where its
/// payload of `len` bytes is to be written.
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
        let len = u16::try_from(REPAIR_FIRST + usize::from(len)).unwrap_or(u16::MAX); // it fits in a datagram
        buffer.extend_from_slice(&len.to_le_bytes());
    }
    buffer.extend_from_slice(&first.to_le_bytes());
    let head = buffer.len() - end;
    buffer.resize(buffer.len() + usize::from(len), 0);
    let body = buffer.get_mut(start..).unwrap_or_default();
    body.rotate_left(end - start);
    body.get_mut(head..head + usize::from(len)).unwrap_or_default()
}

/// Bytes of a KCP_PART before those of the frame that was cut up.
pub(in crate::session) const PART_HEAD: usize = KcpPart::LEN;
/// Bytes of a REPAIR that say which packet is the first.
pub(in crate::session) const REPAIR_FIRST: usize = u32::LEN;
const LENGTH_LEN: usize = 2;
