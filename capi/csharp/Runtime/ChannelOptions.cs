using System;

namespace Whitewater
{
    /// <summary>How the messages of a channel arrive.</summary>
    public enum ChannelKind : byte
    {
        /// <summary>All messages, in order.</summary>
        Ordered = 0,

        /// <summary>All messages, in any order.</summary>
        Unordered = 1,

        /// <summary>The newest of the messages that arrive.</summary>
        Sequenced = 2,

        /// <summary>Those messages that arrive, in any order.</summary>
        Unreliable = 3,

        /// <summary>All bytes in order, without message boundaries.</summary>
        Stream = 4,
    }

    /// <summary>What carries a channel.</summary>
    public enum Carrier : byte
    {
        /// <summary>KCP for ordered channels and streams, packets for all others.</summary>
        Default = 0,

        /// <summary>KCP: a message is sent at once. For ordered channels and streams.</summary>
        Kcp = 1,

        /// <summary>Packets, which many small messages share. For all kinds except streams.</summary>
        Packets = 2,
    }

    /// <summary>A channel of a session.</summary>
    public readonly struct ChannelOptions
    {
        /// <summary>How messages arrive.</summary>
        public ChannelKind Kind { get; }

        /// <summary>What carries the channel.</summary>
        public Carrier Carrier { get; }

        /// <summary>Longest message, bytes, up to 2^26; 0: 1 MiB. An unreliable message also has to fit into a datagram.</summary>
        public int MaxMessage { get; }

        /// <summary>A channel of any kind.</summary>
        /// <param name="kind">How messages arrive.</param>
        /// <param name="carrier">What carries the channel.</param>
        /// <param name="maxMessage">Longest message, bytes, up to 2^26; 0: 1 MiB.</param>
        /// <exception cref="ArgumentOutOfRangeException">The length is negative.</exception>
        public ChannelOptions(ChannelKind kind, Carrier carrier = Carrier.Default, int maxMessage = 0)
        {
            if (maxMessage < 0)
            {
                throw new ArgumentOutOfRangeException(nameof(maxMessage), maxMessage, "a length is not negative");
            }
            Kind = kind;
            Carrier = carrier;
            MaxMessage = maxMessage;
        }

        /// <summary>All messages arrive, in order.</summary>
        public static ChannelOptions Ordered => new ChannelOptions(ChannelKind.Ordered);

        /// <summary>All messages arrive, in any order.</summary>
        public static ChannelOptions Unordered => new ChannelOptions(ChannelKind.Unordered);

        /// <summary>The newest of the messages that arrive.</summary>
        public static ChannelOptions Sequenced => new ChannelOptions(ChannelKind.Sequenced);

        /// <summary>Those messages that arrive, in any order.</summary>
        public static ChannelOptions Unreliable => new ChannelOptions(ChannelKind.Unreliable);

        /// <summary>All bytes arrive in order, without message boundaries.</summary>
        public static ChannelOptions Stream => new ChannelOptions(ChannelKind.Stream);

        internal Native.Channel ToNative()
        {
            return new Native.Channel { Kind = (byte)Kind, Carrier = (byte)Carrier, MaxMessage = (uint)MaxMessage };
        }
    }

    /// <summary>How much to spend on repairs, from which the peer rebuilds lost packets without a round trip.</summary>
    public readonly struct Repairs
    {
        internal readonly byte Percent;
        internal readonly ushort WithinMs;

        private Repairs(byte percent, ushort withinMs)
        {
            Percent = percent;
            WithinMs = withinMs;
        }

        /// <summary>No repairs.</summary>
        public static Repairs Off => new Repairs(255, 0);

        /// <summary>As many repairs as replace about their own bytes of resends.</summary>
        public static Repairs Auto => new Repairs(254, 0);

        /// <summary>Most bytes of repairs in percent of the packets that they protect.</summary>
        /// <param name="percent">1 to 200.</param>
        /// <returns>These repairs.</returns>
        /// <exception cref="ArgumentOutOfRangeException">It is out of range.</exception>
        public static Repairs Budget(int percent)
        {
            return new Repairs((byte)InRange(percent, 200, nameof(percent)), 0);
        }

        /// <summary>As few repairs as it takes for 99 of 100 packets to arrive in time.</summary>
        /// <param name="milliseconds">1 to 10,000.</param>
        /// <returns>These repairs.</returns>
        /// <exception cref="ArgumentOutOfRangeException">It is out of range.</exception>
        public static Repairs Within(int milliseconds)
        {
            return new Repairs(0, (ushort)InRange(milliseconds, 10000, nameof(milliseconds)));
        }

        private static int InRange(int value, int most, string name)
        {
            return value >= 1 && value <= most ? value : throw new ArgumentOutOfRangeException(name, value, "from 1 to " + most);
        }
    }
}
