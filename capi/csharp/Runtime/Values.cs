using System;

namespace Whitewater
{
    /// <summary>A session of a server. That of a session that is gone finds nothing.</summary>
    public readonly struct SessionId : IEquatable<SessionId>
    {
        internal readonly uint Bits;

        internal SessionId(uint bits)
        {
            Bits = bits;
        }

        /// <inheritdoc/>
        public bool Equals(SessionId other)
        {
            return Bits == other.Bits;
        }

        /// <inheritdoc/>
        public override bool Equals(object other)
        {
            return other is SessionId id && Equals(id);
        }

        /// <inheritdoc/>
        public override int GetHashCode()
        {
            return (int)Bits;
        }

        /// <inheritdoc/>
        public override string ToString()
        {
            return Bits.ToString("x8");
        }

        /// <summary>Whether both are the same session.</summary>
        /// <param name="a">One.</param>
        /// <param name="b">Another.</param>
        /// <returns>Whether they are equal.</returns>
        public static bool operator ==(SessionId a, SessionId b)
        {
            return a.Bits == b.Bits;
        }

        /// <summary>Whether they are different sessions.</summary>
        /// <param name="a">One.</param>
        /// <param name="b">Another.</param>
        /// <returns>Whether they differ.</returns>
        public static bool operator !=(SessionId a, SessionId b)
        {
            return a.Bits != b.Bits;
        }
    }

    /// <summary>What became of a message.</summary>
    public enum SendResult
    {
        /// <summary>It is queued, and leaves with the next pump or flush.</summary>
        Sent = 0,

        /// <summary>The channel is full, and nothing was queued: send it again when <c>Writable</c> is raised.</summary>
        Full = Native.Again,

        /// <summary>It is longer than the channel's longest message, or on an unreliable channel than a datagram.</summary>
        TooLong = Native.TooLong,

        /// <summary>The session is not up: not yet, or not any more.</summary>
        Closed = Native.Closed,
    }

    /// <summary>Why a session has ended.</summary>
    public enum CloseReason
    {
        /// <summary>This end closed it, with a code.</summary>
        Local = 1,

        /// <summary>The peer closed it, with a code and perhaps a text.</summary>
        Peer = 2,

        /// <summary>The server's program rejected the client, with a code and perhaps bytes.</summary>
        Rejected = 3,

        /// <summary>The server refused the client: it is busy, or the version, the secret or the channels differ.</summary>
        Denied = 4,

        /// <summary>The peer fell silent, or never answered.</summary>
        Timeout = 5,

        /// <summary>Any other reason: <see cref="Disconnect.Description"/> says which.</summary>
        Other = 100,
    }

    /// <summary>How a session has ended.</summary>
    public sealed class Disconnect
    {
        /// <summary>Why.</summary>
        public CloseReason Reason { get; }

        /// <summary>The code that it was closed or rejected with. It means what the game says.</summary>
        public ushort Code { get; }

        /// <summary>The text that the peer closed it with, empty if there is none. Trust it as far as you trust the peer.</summary>
        public string Text { get; }

        /// <summary>The reason in words, for a log.</summary>
        public string Description { get; }

        /// <summary>At a client: what the server's program said when it rejected it, at most 256 bytes; empty if it said nothing.</summary>
        public byte[] Rejection { get; }

        /// <summary>Whether something was sent that is not known to have arrived.</summary>
        public bool IsUndelivered { get; }

        internal Disconnect(in Native.Event happened, string text, string description, byte[] rejection)
        {
            Reason = (CloseReason)happened.Reason;
            Code = happened.Code;
            Text = text;
            Description = description;
            Rejection = rejection;
            IsUndelivered = happened.IsUndelivered != 0;
        }
    }

    /// <summary>What a matchmaker said about a client, in its connect token.</summary>
    public sealed class Pass
    {
        /// <summary>The client.</summary>
        public ulong ClientId { get; }

        /// <summary>The match, or anything else that the matchmaker chose: 16 bytes.</summary>
        public byte[] MatchId { get; }

        /// <summary>When the token was made, in seconds since 1970.</summary>
        public ulong Created { get; }

        /// <summary>The matchmaker's other data, at most 256 bytes.</summary>
        public byte[] User { get; }

        internal unsafe Pass(Native.Pass* pass)
        {
            ClientId = pass->ClientId;
            Created = pass->Created;
            MatchId = new ReadOnlySpan<byte>(pass->MatchId, 16).ToArray();
            User = new ReadOnlySpan<byte>(pass->User, (int)pass->UserLen).ToArray();
        }
    }

    /// <summary>The state of a session. Bytes are of UDP payload.</summary>
    public readonly struct SessionStats
    {
        /// <summary>Smoothed round-trip time; zero before the first measurement.</summary>
        public TimeSpan Rtt { get; }

        /// <summary>Mean deviation of the round-trip time.</summary>
        public TimeSpan RttVariation { get; }

        /// <summary>Share of the packets sent in the last 10 s that were lost, 0 to 1; <c>null</c>: too few were sent to tell.</summary>
        public double? Loss { get; }

        /// <summary>Datagrams sent.</summary>
        public ulong Sent { get; }

        /// <summary>Bytes sent.</summary>
        public ulong BytesSent { get; }

        /// <summary>Datagrams received.</summary>
        public ulong Received { get; }

        /// <summary>Bytes received.</summary>
        public ulong BytesReceived { get; }

        internal SessionStats(in Native.Stats stats)
        {
            Rtt = Time(stats.RttUs);
            RttVariation = Time(stats.RttvarUs);
            Loss = stats.Loss < 0 ? (double?)null : stats.Loss;
            Sent = stats.Sent;
            BytesSent = stats.BytesSent;
            Received = stats.Received;
            BytesReceived = stats.BytesReceived;
        }

        private static TimeSpan Time(ulong microseconds)
        {
            const long PerMicrosecond = TimeSpan.TicksPerMillisecond / 1000;
            return TimeSpan.FromTicks((long)Math.Min(microseconds, long.MaxValue / PerMicrosecond) * PerMicrosecond);
        }
    }
}
