//! Sending and receiving: by KCP or in packets, as each channel says.

use super::Connection;
use super::large::PART;
use super::memory::SEGMENT;
use crate::channel::{
    AnyChannel, Carrier, Channel, ChannelConfig, ChannelError, ChannelKind, ChannelStats, DATAGRAMS,
    PackedNext, RecvError, SendError, cure,
};
use crate::kcp::{Kcp, Stats};
use crate::message::pack::Payload;
use crate::seq::Seq16;
use crate::session::event::{CloseReason, DatagramId};
use bytes::Bytes;

impl Connection {
    /// Queues a message. It leaves when the session is polled next, or when the path and the peer have room for it. A
    /// long message is cut and put together again.
    ///
    /// # Errors
    ///
    /// The channel is full ([`is_full`](SendError::is_full)): try again later. Or the message is too long, the handle
    /// belongs to no channel of the session, or the session is not up. Nothing is queued then.
    pub fn send<P: Payload + ?Sized>(
        &mut self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Result<(), SendError> {
        let mut spare = self.scratch.take().unwrap_or_default();
        let sent = P::pack(message, &mut spare)
            .map_err(SendError::from)
            .and_then(|(bytes, bits)| self.send_packed(channel.into(), bytes, bits));
        if spare.capacity() <= PART {
            self.scratch = Some(spare);
        }
        sent
    }

    /// Takes the next message of a channel; `None`: there is none yet. For a stream, it is the next bytes that have
    /// arrived.
    ///
    /// A handle that belongs to no channel of the session is a bug in the program, and is logged as an error.
    pub fn recv<P: Payload + ?Sized>(&mut self, channel: Channel<P>) -> Option<P::Received> {
        let number = channel.number();
        let config = self.channel(channel.into()).inspect_err(|error| log::error!("recv: {error}")).ok()?;
        let is_in_packets = config.carrier == Carrier::Packets;
        let packed = self.packed.as_mut().filter(|_| is_in_packets);
        let message = match packed.and_then(|packed| packed.take(number, P::unpack)) {
            Some(PackedNext::Message(message)) => message,
            _ => P::unpack_owned(self.recv_long(number)?),
        };
        message.inspect_err(|error| self.on_bad_message(error)).ok()
    }

    /// Takes the next message of a channel of bytes into `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// There is no message yet; or it does not fit and stays queued; or the handle belongs to no channel of the
    /// session.
    pub fn recv_into(&mut self, channel: Channel, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.channel(channel.into())?;
        self.read_packed(channel.number(), buf)
    }

    /// Bytes of the next message of a channel; `None`: there is none yet.
    #[must_use]
    pub fn peek_size(&self, channel: impl Into<AnyChannel>) -> Option<usize> {
        self.next_len(self.checked(channel)?.number())
    }

    /// Marks the end of what this end sends on a stream: the peer receives 0 bytes. What that means is up to the
    /// programs.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send).
    pub fn send_end(&mut self, channel: Channel) -> Result<(), SendError> {
        self.channel(channel.into())?;
        self.end_packed(channel.number())
    }

    /// Queues as many bytes of a stream as there is room for. Returns how many.
    ///
    /// # Errors
    ///
    /// There is no room for any ([`is_full`](SendError::is_full)), the handle belongs to no stream of the session, or
    /// the session is not up.
    pub fn write(&mut self, channel: Channel, bytes: &[u8]) -> Result<usize, SendError> {
        self.channel(channel.into())?;
        self.write_packed(channel.number(), bytes)
    }

    /// Whether everything sent on a reliable channel is known to have arrived. If not,
    /// [`Event::Writable`](crate::Event::Writable) reports when it has. For a handle that belongs to no channel of the
    /// session, an error is logged, and it is `true`.
    pub fn is_delivered(&mut self, channel: impl Into<AnyChannel>) -> bool {
        let channel = channel.into();
        if let Err(error) = self.channel(channel) {
            log::error!("is_delivered: {error}");
            return true;
        }
        let channel = channel.number();
        if self.packed.as_ref().is_some_and(|packed| packed.waits(channel)) {
            self.budget.asked |= 1 << channel;
            return false;
        }
        self.lanes.is_delivered(channel)
    }

    /// Queues an unreliable datagram. It leaves as soon as the session is polled, once.
    ///
    /// # Errors
    ///
    /// Too many bytes wait ([`is_full`](SendError::is_full)), the datagram is too long, or the session is not up.
    pub fn send_datagram(&mut self, datagram: &[u8]) -> Result<DatagramId, SendError> {
        self.check_up()?;
        if !self.budget.has_room(datagram.len()) {
            return Err(SendError::Full { channel: DATAGRAMS });
        }
        let id = self.datagrams.send(&self.lanes.config, datagram)?;
        self.budget.spend(datagram.len() + SEGMENT);
        Ok(id)
    }

    /// Takes the next unreliable datagram; `None`: there is none.
    pub fn recv_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.recv()
    }

    /// Takes the next unreliable datagram into `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// There is no datagram, or it does not fit and stays queued.
    pub fn recv_datagram_into(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.datagrams.recv_into(buf)
    }

    /// Takes the id of an unreliable datagram that is known to have arrived. Others may have arrived all the same.
    /// The newest 1024 ids are kept until they are taken.
    pub fn pop_delivered(&mut self) -> Option<DatagramId> {
        self.datagrams.pop_delivered()
    }

    /// Takes the number of a message in packets that is known to have arrived, counted from 0 on its channel, which
    /// must have [`receipts`](ChannelConfig::receipts). The newest `send_buffer` numbers are kept until they are
    /// taken.
    ///
    /// A message too long for a packet is never among them: [`is_delivered`](Self::is_delivered) reports when
    /// everything has arrived. It has a number on an ordered channel, and none on an unordered one.
    pub fn pop_delivered_message(&mut self, channel: impl Into<AnyChannel>) -> Option<Seq16> {
        let channel = self.checked(channel)?;
        self.packed.as_mut()?.pop_delivered(channel)
    }

    /// Takes the number of a message in packets that was given up because it had
    /// [expired](ChannelConfig::expire_after).
    pub fn pop_expired_message(&mut self, channel: impl Into<AnyChannel>) -> Option<Seq16> {
        let channel = self.checked(channel)?;
        self.packed.as_mut()?.pop_expired(channel)
    }

    /// Statistics of a channel's KCP control block; `None`: KCP carries nothing of it.
    #[must_use]
    pub fn kcp_stats(&self, channel: impl Into<AnyChannel>) -> Option<Stats> {
        self.lanes.look(self.checked(channel)?.number(), Kcp::stats)
    }

    /// Statistics of a channel in packets; zeros for any other.
    #[must_use]
    pub fn channel_stats(&self, channel: impl Into<AnyChannel>) -> ChannelStats {
        let (channel, packed) = (self.checked(channel), self.packed.as_ref());
        channel.zip(packed).map(|(channel, packed)| packed.stats(channel)).unwrap_or_default()
    }

    /// Checks that a handle belongs to a channel of the session.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn check<P: Payload + ?Sized>(&self, channel: Channel<P>) -> Result<(), ChannelError> {
        self.channel(channel.into()).map(drop)
    }

    /// The channel of the session that a handle belongs to.
    fn channel(&self, handle: AnyChannel) -> Result<&ChannelConfig, ChannelError> {
        let channels = &self.lanes.config.channels;
        let missing = ChannelError::Missing { number: handle.number(), count: channels.len() };
        let config = channels.get(usize::from(handle.number())).ok_or(missing)?;
        if config.channel == handle { Ok(config) } else { Err(ChannelError::wrong(handle, config.channel)) }
    }

    /// A handle, if it belongs to a channel of the session.
    pub(super) fn checked(&self, handle: impl Into<AnyChannel>) -> Option<AnyChannel> {
        self.channel(handle.into()).ok().map(|config| config.channel)
    }

    fn check_up(&self) -> Result<(), SendError> {
        if self.is_connected() { Ok(()) } else { Err(SendError::Closed) }
    }

    /// Queues a packed message.
    pub(crate) fn send_packed(
        &mut self,
        handle: AnyChannel,
        bytes: &[u8],
        bits: usize,
    ) -> Result<(), SendError> {
        self.check_up()?;
        let ChannelConfig { carrier, max_message, .. } = self.channel(handle)?;
        let (channel, len, max) = (handle.number(), bytes.len(), *max_message as usize);
        match carrier {
            Carrier::Kcp if handle.kind() == ChannelKind::Stream => self.send_stream(channel, bytes),
            _ if len > max => Err(SendError::TooLong { channel, len, max, cure: cure::MAX_MESSAGE }),
            Carrier::Kcp => self.send_long(channel, bytes),
            Carrier::Packets => self.send_in_packet(handle, bytes, bits),
        }
    }

    /// As [`write`](Self::write), whatever the type of the channel.
    pub(crate) fn write_packed(&mut self, channel: u8, bytes: &[u8]) -> Result<usize, SendError> {
        self.check_up()?;
        self.check_stream(channel)?;
        self.send_kcp(channel, bytes)
    }

    /// As [`send_end`](Self::send_end), whatever the type of the channel.
    pub(crate) fn end_packed(&mut self, channel: u8) -> Result<(), SendError> {
        self.check_up()?;
        self.check_stream(channel)?;
        self.lanes.send_end(channel)
    }

    /// As [`recv_into`](Self::recv_into), on a stream.
    #[cfg(feature = "tokio")]
    pub(crate) fn read_stream(&mut self, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.check_stream(channel)?;
        self.read_packed(channel, buf)
    }

    fn check_stream(&self, channel: u8) -> Result<(), ChannelError> {
        self.channel(Channel::stream(channel).into()).map(drop)
    }

    /// As [`recv_into`](Self::recv_into), whatever the type of the channel.
    pub(crate) fn read_packed(&mut self, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        if self.packed.is_none() {
            return self.read_lane(channel, buf);
        }
        let (have, need) = (buf.len(), self.next_len(channel).ok_or(RecvError::Empty)?);
        let room = buf.get_mut(..need).ok_or(RecvError::BufferTooSmall { have, need })?;
        self.read_into(channel, room);
        Ok(need)
    }

    /// Segments and long messages of a channel that are not known to have arrived. If there are some,
    /// [`Event::Writable`](crate::Event::Writable) reports when there are none.
    #[cfg(feature = "tokio")]
    pub(crate) fn unacked_of(&mut self, channel: u8) -> usize {
        if self.lanes.is_delivered(channel) { 0 } else { self.lanes.unacked_of(channel) }
    }

    /// Takes the next message of a channel, whatever its type, as it was packed.
    #[cfg(feature = "net")]
    pub(crate) fn recv_packed(&mut self, channel: u8) -> Option<Bytes> {
        let packed = self.packed.as_mut().and_then(|packed| packed.take(channel, Bytes::copy_from_slice));
        match packed {
            Some(PackedNext::Message(message)) => Some(message),
            _ => self.recv_long(channel),
        }
    }

    /// Sends all of the bytes on a stream, or none.
    fn send_stream(&mut self, channel: u8, bytes: &[u8]) -> Result<(), SendError> {
        let fits = self.within_memory(channel, bytes).map_or(0, <[u8]>::len);
        if fits < bytes.len() {
            let (len, max) = (bytes.len(), self.lanes.send_most());
            if len > max {
                return Err(SendError::TooLong { channel, len, max, cure: cure::WRITE });
            }
            self.wait_for_room(channel, len);
            return Err(SendError::Full { channel });
        }
        self.lanes.send_stream(channel, bytes)?;
        self.budget.spend(bytes.len() + SEGMENT);
        self.turns.is_eager = self.lanes.are_open();
        Ok(())
    }

    /// Queues a message by KCP, cut if it is long.
    #[inline]
    fn send_long(&mut self, channel: u8, bytes: &[u8]) -> Result<(), SendError> {
        if !self.lanes.is_large(channel, bytes.len()) {
            return self.send_kcp(channel, bytes).map(drop);
        }
        if !self.budget.has_room(bytes.len()) {
            self.wait_for_room(channel, bytes.len());
            return Err(SendError::Full { channel });
        }
        let sent = self.lanes.send_large(channel, bytes);
        if sent.is_err_and(|error| error.is_full()) {
            self.lanes.await_room(channel, 1);
            self.wait_for_room(channel, bytes.len());
        }
        sent?;
        self.budget.spend(bytes.len() + SEGMENT);
        self.turns.is_eager = self.lanes.are_open();
        Ok(())
    }

    /// Passes a message to KCP, or as much of a stream as there is room for.
    #[inline]
    fn send_kcp(&mut self, channel: u8, bytes: &[u8]) -> Result<usize, SendError> {
        let room = self.within_memory(channel, bytes);
        if room.is_err_and(|error| error.is_full()) {
            self.wait_for_room(channel, if self.lanes.is_stream(channel) { 1 } else { bytes.len() });
        }
        let taken = self.lanes.send(channel, room?)?;
        self.budget.spend(taken + SEGMENT);
        self.turns.is_eager = self.lanes.are_open();
        Ok(taken)
    }

    fn wait_for_room(&mut self, channel: u8, need: usize) {
        self.budget.is_short = true;
        self.lanes.wait_for_room(self.keepalive.now, channel, need);
    }

    /// Stores a message for the next packets, or sends it by KCP if it is too long for one.
    fn send_in_packet(&mut self, handle: AnyChannel, bytes: &[u8], bits: usize) -> Result<(), SendError> {
        let (channel, kind, now) = (handle.number(), handle.kind(), self.keepalive.now);
        let Some(packed) = &mut self.packed else { return Err(SendError::Closed) };
        let is_long = bytes.len() > packed.payload_max();
        if !self.budget.has_room(bytes.len()) {
            if is_long && kind.is_reliable() {
                self.wait_for_room(channel, bytes.len());
            } else {
                self.budget.awaits |= 1 << channel;
            }
            return Err(SendError::Full { channel });
        }
        if !packed.has_room(handle) && (kind != ChannelKind::Unordered || !is_long) {
            self.budget.awaits |= 1 << channel;
            return Err(SendError::Full { channel });
        }
        if packed.store(now, channel, (bytes, bits))?.is_some() {
            self.budget.spend(self.mtu.least().into()); // also for its place and the record of its packet
            return Ok(());
        }
        if !kind.is_reliable() {
            return Err(SendError::TooLong {
                channel,
                len: bytes.len(),
                max: packed.payload_max(),
                cure: cure::RELIABLE,
            });
        }
        self.send_long(channel, bytes)?;
        if kind == ChannelKind::Ordered
            && let Some(packed) = &mut self.packed
        {
            packed.store_elsewhere(now, channel)?; // there is room for it
        }
        Ok(())
    }

    /// Whether a message that KCP has received is the next one of its channel.
    pub(super) fn is_next(&self, channel: u8) -> bool {
        self.packed.as_ref().is_none_or(|packed| packed.lets_read(channel))
    }

    /// Whether a channel may give its user what KCP has received now.
    pub(super) fn is_next_in_lane(&self, channel: u8) -> bool {
        self.lanes.config.channels.get(usize::from(channel)).is_some_and(|config| {
            config.carrier == Carrier::Kcp
                || config.channel.kind() == ChannelKind::Unordered
                || self.packed.as_ref().is_some_and(|packed| packed.is_elsewhere(channel))
        })
    }

    pub(crate) fn next_len(&self, channel: u8) -> Option<usize> {
        let packed = self.packed.as_ref();
        let in_lane = || self.lanes.next_len(channel).filter(|_| self.is_next_in_lane(channel));
        packed.and_then(|packed| packed.next_len(channel)).or_else(in_lane)
    }

    /// Takes the next message into `buf`. The message exists and is as long as `buf`.
    fn read_into(&mut self, channel: u8, buf: &mut [u8]) {
        if let Some(packed) = &mut self.packed {
            let copy = |bytes: &[u8]| buf.copy_from_slice(bytes);
            if let Some(PackedNext::Message(())) = packed.take(channel, copy) {
                return;
            }
            packed.pop_elsewhere(channel);
        }
        let _ = self.read_lane(channel, buf); // it exists and fits
    }

    /// Takes the next message that KCP has received on a channel into `buf`.
    #[inline]
    fn read_lane(&mut self, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        let len = self.lanes.recv_into(channel, buf)?;
        self.join_next(channel);
        Ok(len)
    }

    /// Takes the next message that KCP has received on a channel, if it is its turn.
    fn recv_long(&mut self, channel: u8) -> Option<Bytes> {
        self.next_len(channel)?;
        let message = self.lanes.recv(channel)?;
        self.join_next(channel);
        if let Some(packed) = &mut self.packed {
            packed.pop_elsewhere(channel);
        }
        Some(message)
    }

    /// Joins the next message, now that one by KCP was read.
    #[inline]
    fn join_next(&mut self, channel: u8) {
        match self.lanes.join_next(channel, self.left()) {
            Ok(joined) => self.budget.on_joined(joined),
            Err(reason) => self.fail(self.keepalive.now, reason),
        }
    }

    /// Fails the session: a message is not of its type, and no peer with the same channels sends that.
    #[cold]
    pub(crate) fn on_bad_message(&mut self, error: &crate::message::BitsError) {
        log::debug!("a message that is none: {error}");
        self.stats.rare_mut().messages_refused += 1;
        self.fail(self.keepalive.now, CloseReason::Protocol);
    }
}
