using System;
using System.Collections.Generic;
using Mirror;

namespace Whitewater
{
    /// <summary>What Mirror sends on a connection. Mirror sends on without asking for room, so what a full channel refuses is kept here.</summary>
    internal sealed class Outgoing
    {
        internal enum Outcome
        {
            Sent,
            Dropped,
            Invalid,
            Congested,
        }

        private readonly Func<int, ArraySegment<byte>, SendResult> send;
        private readonly Queue<byte[]> waiting = new Queue<byte[]>();
        private long bytes;

        internal Outgoing(Func<int, ArraySegment<byte>, SendResult> send)
        {
            this.send = send;
        }

        internal Outcome Send(ArraySegment<byte> message, int channelId, int max)
        {
            bool isReliable = channelId == Channels.Reliable;
            if (message.Count == 0 || isReliable && message.Count > max)
            {
                return Outcome.Invalid;
            }
            bool waits = isReliable && waiting.Count > 0;
            switch (waits ? SendResult.Full : send(isReliable ? Channels.Reliable : Channels.Unreliable, message))
            {
                case SendResult.Sent:
                    return Outcome.Sent;
                case SendResult.TooLong:
                    return Outcome.Invalid;
                case SendResult.Full:
                    return isReliable ? Keep(message) : Outcome.Dropped;
                default:
                    return Outcome.Dropped; // it is over, and Mirror is about to be told
            }
        }

        /// <summary>Sends what has waited, as far as there is room for it.</summary>
        internal void Resume()
        {
            while (waiting.Count > 0 && send(Channels.Reliable, new ArraySegment<byte>(waiting.Peek())) != SendResult.Full)
            {
                bytes -= waiting.Dequeue().Length;
            }
        }

        private Outcome Keep(ArraySegment<byte> message)
        {
            if (bytes + message.Count > WhitewaterTransport.BacklogMax)
            {
                return Outcome.Congested;
            }
            waiting.Enqueue(message.AsSpan().ToArray());
            bytes += message.Count;
            return Outcome.Sent;
        }
    }
}
