using System;
using System.Net;
using Mirror;
using UnityEngine;

namespace Whitewater
{
    /// <summary>
    /// Mirror over whitewater: encrypted sessions, with Mirror's two channels. Add it to the object of the NetworkManager in the place of another
    /// transport, and set <see cref="Secret"/>.
    /// </summary>
    [DisallowMultipleComponent]
    public sealed partial class WhitewaterTransport : Transport, PortTransport
    {
        /// <summary>The scheme of addresses: "whitewater://host:port".</summary>
        public const string Scheme = "whitewater";

        /// <summary>Most bytes of reliable messages that wait for one connection. With more than that, the connection ends.</summary>
        public const int BacklogMax = 64 << 20;

        [Tooltip("UDP port of the server.")]
        [SerializeField] private ushort port = 7777;

        /// <summary>Whether the server takes IPv6 as well as IPv4. Turn it off where the system has no IPv6.</summary>
        [Tooltip("Take IPv6 as well as IPv4. Turn it off where the system has no IPv6.")]
        public bool DualMode = true;

        /// <summary>64 hexadecimal digits, random, that the server and its clients know. Needed, unless the options say something else.</summary>
        [Tooltip("64 random hexadecimal digits that the server and its clients know.")]
        public string Secret = "";

        /// <summary>Goes without encryption: for local networks and tests.</summary>
        [Tooltip("Goes without encryption: for local networks and tests.")]
        public bool Unencrypted;

        /// <summary>The game and its version: any number, the same at both ends.</summary>
        [Tooltip("The game and its version: any number, the same at both ends.")]
        public ulong ProtocolId;

        /// <summary>ms of silence after which a connection is over: 2000 to 120,000.</summary>
        [Tooltip("ms of silence after which a connection is over.")]
        public int Timeout = 10000;

        /// <summary>Longest reliable message, bytes: 1 to 2^26.</summary>
        [Tooltip("Longest reliable message, bytes. The same at both ends.")]
        public int MaxMessage = 1 << 20;

        /// <summary>Changes the options before the server starts, for example to take connect tokens.</summary>
        public event Action<ServerOptions> ServerStarting;

        /// <summary>Changes the options before the client connects, for example to bring a connect token.</summary>
        public event Action<ClientOptions> ClientConnecting;

        /// <summary>UDP port of the server.</summary>
        public ushort Port
        {
            get => port;
            set => port = value;
        }

        /// <inheritdoc/>
        public override bool IsEncrypted => !Unencrypted;

        /// <inheritdoc/>
        public override string EncryptionCipher => Unencrypted ? "" : "ChaCha20-Poly1305";

        /// <inheritdoc/>
        public override bool Available()
        {
#if UNITY_WEBGL && !UNITY_EDITOR
            return false; // a page has no sockets
#else
            return true;
#endif
        }

        /// <inheritdoc/>
        public override int GetMaxPacketSize(int channelId = Channels.Reliable)
        {
            return channelId == Channels.Reliable ? MaxMessage : Options.UnreliableMax;
        }

        /// <summary>A batch is one datagram, so that nothing waits for the rest of a long one.</summary>
        /// <param name="channelId">Which channel.</param>
        /// <returns>Bytes.</returns>
        public override int GetBatchThreshold(int channelId = Channels.Reliable)
        {
            return Math.Min(Options.UnreliableMax, GetMaxPacketSize(channelId));
        }

        /// <inheritdoc/>
        public override void Shutdown()
        {
            DropClient();
            ServerStop();
        }

        /// <inheritdoc/>
        public override string ToString()
        {
            return "whitewater [" + port + "]";
        }

        // Mirror's channels have the same numbers.
        private void Fill(Options options)
        {
            options.ProtocolId = ProtocolId;
            options.Suite = Unencrypted ? Suite.Checked : Suite.Psk;
            options.Psk = Unencrypted || string.IsNullOrEmpty(Secret) ? null : Bytes(Secret);
            options.Timeout = TimeSpan.FromMilliseconds(Timeout);
            options.Keepalive = TimeSpan.FromMilliseconds(Math.Min(2000, Timeout / 2));
            options.Channels = new[]
            {
                new ChannelOptions(ChannelKind.Ordered, Carrier.Default, MaxMessage),
                ChannelOptions.Unreliable,
            };
        }

        private static byte[] Bytes(string hex)
        {
            var bytes = new byte[hex.Length / 2];
            for (int i = 0; i < bytes.Length; i++)
            {
                string digits = hex.Substring(2 * i, 2);
                if (!byte.TryParse(digits, System.Globalization.NumberStyles.AllowHexSpecifier, null, out bytes[i]))
                {
                    throw new FormatException("the secret has something else than hexadecimal digits");
                }
            }
            return hex.Length == 2 * Options.KeyLength ? bytes : throw new FormatException("the secret has " + hex.Length + " digits, not 64");
        }

        private static readonly string Congested = "more than " + BacklogMax + " bytes wait";

        private static string Invalid(ArraySegment<byte> message, int channelId)
        {
            return message.Count == 0 ? "an empty message" : message.Count + " bytes are too many for channel " + channelId;
        }

        /// <summary>The error that an end amounts to. False: there is none.</summary>
        private static bool IsError(Disconnect end, out TransportError error, out string text)
        {
            text = end.Text.Length > 0 ? end.Text : end.Description;
            switch (end.Reason)
            {
                case CloseReason.Local:
                case CloseReason.Peer:
                    error = TransportError.ConnectionClosed;
                    return end.Reason == CloseReason.Peer && end.Text.Length > 0; // somebody has something to say
                case CloseReason.Timeout:
                    error = TransportError.Timeout;
                    return true;
                case CloseReason.Denied:
                case CloseReason.Rejected:
                    error = TransportError.Refused;
                    return true;
                default:
                    error = TransportError.Unexpected;
                    return true;
            }
        }

        /// <summary>The host of an address, as Mirror shows it.</summary>
        private static string Host(string address)
        {
            string host = address.Substring(0, Math.Max(address.LastIndexOf(':'), 0)).Trim('[', ']');
            return IPAddress.TryParse(host, out IPAddress ip) && ip.IsIPv4MappedToIPv6 ? ip.MapToIPv4().ToString() : host;
        }

        /// <summary>Copies a message to where Mirror can read it.</summary>
        private static ArraySegment<byte> Copy(ReadOnlySpan<byte> message, ref byte[] room)
        {
            if (room.Length < message.Length)
            {
                room = new byte[Math.Max(message.Length, 2 * room.Length)];
            }
            message.CopyTo(room);
            return new ArraySegment<byte>(room, 0, message.Length);
        }
    }
}
