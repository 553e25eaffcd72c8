using System;

namespace Whitewater
{
    /// <summary>How sessions are protected, the same at both ends.</summary>
    public enum Suite : ushort
    {
        /// <summary>None is chosen, which is an error, so that nobody goes without encryption unknowingly.</summary>
        None = 0,

        /// <summary>Not encrypted, only a checksum: for local networks and tests.</summary>
        Checked = 1,

        /// <summary>Encrypted with a secret that both ends know: <see cref="Options.Psk"/>.</summary>
        Psk = 0x201,

        /// <summary>Encrypted, and the client verifies the server: <see cref="Options.ServerKey"/>.</summary>
        Key = 0x301,

        /// <summary>As <see cref="Psk"/>, and recordings stay closed to quantum computers.</summary>
        HybridPsk = 0x8201,

        /// <summary>As <see cref="Key"/>, and recordings stay closed to quantum computers.</summary>
        HybridKey = 0x8301,
    }

    /// <summary>What both ends of a session set. What is left as it is has the library's default.</summary>
    public abstract class Options
    {
        /// <summary>Length of all keys, bytes.</summary>
        public const int KeyLength = 32;

        /// <summary>Most channels of a session.</summary>
        public const int ChannelsMax = 32;

        /// <summary>Most bytes of what the programs tell each other while a session begins.</summary>
        public const int UserMax = 256;

        /// <summary>An unreliable message or datagram of this many bytes always fits, if the peer takes datagrams of 1200 bytes, as it does by default.</summary>
        public const int UnreliableMax = 1150;

        /// <summary>The game and its version: any number, the same at both ends.</summary>
        public ulong ProtocolId { get; set; }

        /// <summary>How sessions are protected. Needed everywhere but at a client with a token.</summary>
        public Suite Suite { get; set; }

        /// <summary>32 random bytes that both ends know, for <see cref="Suite.Psk"/> and <see cref="Suite.HybridPsk"/>.</summary>
        public byte[] Psk { get; set; }

        /// <summary>
        /// 32 bytes, for <see cref="Suite.Key"/> and <see cref="Suite.HybridKey"/>: at a server its private key, at a client what
        /// <see cref="PublicKey"/> makes of that.
        /// </summary>
        public byte[] ServerKey { get; set; }

        /// <summary>
        /// The channels by number from 0, the most urgent first: the same at both ends. None: one, <see cref="ChannelOptions.Ordered"/>.
        /// </summary>
        public ChannelOptions[] Channels { get; set; }

        /// <summary>Silence after which a session is over: 2 to 120 s, and at least twice <see cref="Keepalive"/>.</summary>
        public TimeSpan Timeout { get; set; }

        /// <summary>Time between two pings of a session without other traffic: 100 ms to 10 s.</summary>
        public TimeSpan Keepalive { get; set; }

        /// <summary>Repairs of lost packets. Used if both ends have them.</summary>
        public Repairs Repairs { get; set; }

        internal Options()
        {
        }

        /// <summary>The public half of a server's private key, 32 bytes each.</summary>
        /// <param name="privateKey">32 random bytes that only the server knows.</param>
        /// <returns>What clients need as <see cref="ServerKey"/>.</returns>
        /// <exception cref="ArgumentException">The key has another length, or only zeros.</exception>
        public static unsafe byte[] PublicKey(byte[] privateKey)
        {
            CheckKey(privateKey ?? throw new ArgumentNullException(nameof(privateKey)), nameof(privateKey));
            var publicKey = new byte[KeyLength];
            fixed (byte* from = privateKey, to = publicKey)
            {
                if (Native.ww_public_key(from, to) < 0)
                {
                    throw new ArgumentException("the key has only zeros", nameof(privateKey));
                }
            }
            return publicKey;
        }

        internal int ChannelCount => Channels == null || Channels.Length == 0 ? 1 : Channels.Length;

        internal Native.Options ToNative()
        {
            CheckKey(Psk, nameof(Psk));
            CheckKey(ServerKey, nameof(ServerKey));
            return new Native.Options
            {
                ProtocolId = ProtocolId,
                Suite = (ushort)Suite,
                TimeoutMs = Milliseconds(Timeout, nameof(Timeout)),
                KeepaliveMs = Milliseconds(Keepalive, nameof(Keepalive)),
                Repairs = Repairs.Percent,
                RepairsWithinMs = Repairs.WithinMs,
            };
        }

        /// <summary>The channels as C has them. <c>null</c> if there are none.</summary>
        internal Native.Channel[] NativeChannels()
        {
            return Channels == null ? null : Array.ConvertAll(Channels, channel => channel.ToNative());
        }

        // The library reads 32 bytes from the pointer, whatever is there.
        internal static void CheckKey(byte[] key, string name)
        {
            if (key != null && key.Length != KeyLength)
            {
                throw new ArgumentException("a key has 32 bytes, not " + key.Length, name);
            }
        }

        internal static uint Milliseconds(TimeSpan time, string name)
        {
            double milliseconds = Math.Ceiling(time.TotalMilliseconds);
            if (time < TimeSpan.Zero || milliseconds > uint.MaxValue)
            {
                throw new ArgumentOutOfRangeException(name, time, "a time from 0 to 49 days");
            }
            return (uint)milliseconds;
        }
    }

    /// <summary>How a client connects.</summary>
    public sealed class ClientOptions : Options
    {
        /// <summary>What to tell the server's program, up to 256 bytes.</summary>
        public byte[] User { get; set; }

        /// <summary>What <see cref="WhitewaterClient.TakeTicket"/> returned in the last session with this server. It saves a round trip.</summary>
        public byte[] Ticket { get; set; }

        /// <summary>
        /// A connect token from a matchmaker. It contains the address of the server and how the session is protected: the address,
        /// <see cref="Options.Suite"/> and the keys are then ignored.
        /// </summary>
        public byte[] Token { get; set; }
    }

    /// <summary>How a server serves.</summary>
    public sealed class ServerOptions : Options
    {
        /// <summary>Most sessions at a time, up to 16,384. 0: the library's default.</summary>
        public ushort MaxSessions { get; set; }

        /// <summary>Most sessions at a time from one address, up to 16,384. 0: the library's default.</summary>
        public ushort SessionsPerAddress { get; set; }

        /// <summary>
        /// Whether to be asked about each client: <see cref="WhitewaterServer.Requested"/> is raised, and somebody has to admit or reject it.
        /// </summary>
        public bool Ask { get; set; }

        /// <summary>
        /// The 32 bytes with which the matchmaker seals connect tokens. With it, only clients with a token for this server can join.
        /// <see cref="Options.Suite"/> has to be one with a secret, which is in the token.
        /// </summary>
        public byte[] TokenKey { get; set; }

        /// <summary>With <see cref="TokenKey"/>: the number of this server in its tokens, not 0, and unique to this process.</summary>
        public ulong ServerId { get; set; }

        /// <summary>With <see cref="TokenKey"/>: distinguishes the keys of a server.</summary>
        public byte KeyId { get; set; }

        /// <summary>How many bytes of a routing token each datagram ends with, up to 20, if the proxy leaves it there.</summary>
        public byte RoutingTokenLength { get; set; }

        /// <summary>
        /// The IP addresses of proxies that put a header of the PROXY protocol, version 2, before each datagram: at most 64, with commas between. Limits
        /// then count the addresses of the clients. Whoever can send from these addresses can claim to be any client.
        /// </summary>
        public string Proxies { get; set; } = "";

        internal new Native.Options ToNative()
        {
            CheckKey(TokenKey, nameof(TokenKey));
            Native.Options native = base.ToNative();
            native.MaxSessions = MaxSessions;
            native.Ask = (byte)(Ask ? 1 : 0);
            native.ServerId = ServerId;
            native.KeyId = KeyId;
            native.RoutingTokenLen = RoutingTokenLength;
            native.SessionsPerAddress = SessionsPerAddress;
            return native;
        }
    }
}
