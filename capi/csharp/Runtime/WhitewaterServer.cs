using System;
using System.Collections.Generic;

namespace Whitewater
{
    /// <summary>The server's end of sessions.</summary>
    /// <example>
    /// <code>
    /// var server = new WhitewaterServer("[::]:4000", new ServerOptions { ProtocolId = 7, Suite = Suite.Psk, Psk = secret });
    /// server.Message += (session, channel, message) => server.Broadcast(channel, message, out _);
    /// // each frame:
    /// server.Pump();
    /// </code>
    /// </example>
    public sealed unsafe class WhitewaterServer : WhitewaterEnd
    {
        private readonly HashSet<uint> kicked = new HashSet<uint>(); // until their end is raised

        /// <summary>
        /// With <see cref="ServerOptions.Ask"/>: a client wants to join. <see cref="Admit"/> or <see cref="Reject"/> it, now or within 10 s.
        /// </summary>
        public event ServerRequestedHandler Requested;

        /// <summary>A session is up.</summary>
        public event Action<SessionId> Connected;

        /// <summary>A session is over. Nothing follows.</summary>
        public event Action<SessionId, Disconnect> Disconnected;

        /// <summary>A message has arrived. Those that nobody handles are dropped.</summary>
        public event ServerMessageHandler Message;

        /// <summary>An unreliable datagram has arrived. Those that nobody handles are dropped.</summary>
        public event ServerDatagramHandler Datagram;

        /// <summary>A client has another address: <see cref="PeerAddress"/>.</summary>
        public event Action<SessionId> Moved;

        /// <summary>A channel of a session that was full has room again.</summary>
        public event Action<SessionId> Writable;

        /// <summary>Binds a server.</summary>
        /// <param name="address">"0.0.0.0:4000", or "[::]:4000" for IPv4 as well as IPv6; port 0: the system chooses one.</param>
        /// <param name="options">How to serve. They are copied.</param>
        /// <exception cref="WhitewaterException">An option or the address is wrong, or there is no such socket.</exception>
        /// <exception cref="ArgumentException">A key has the wrong length.</exception>
        public WhitewaterServer(string address, ServerOptions options)
            : base(Bind(address, options ?? throw new ArgumentNullException(nameof(options))), options.ChannelCount)
        {
        }

        private static ServerHandle Bind(string address, ServerOptions options)
        {
            byte[] host = Terminated(address, nameof(address));
            Native.Options native = options.ToNative();
            Native.Channel[] list = options.NativeChannels();
            int error;
            fixed (Native.Channel* channels = list)
            fixed (byte* at = host, psk = options.Psk, serverKey = options.ServerKey, tokenKey = options.TokenKey)
            fixed (byte* proxies = Terminated(options.Proxies, nameof(options.Proxies)))
            {
                native.Channels = channels;
                native.ChannelCount = (UIntPtr)(list?.Length ?? 0);
                native.Psk = psk;
                native.ServerKey = serverKey;
                native.TokenKey = tokenKey;
                native.Proxies = proxies;
                IntPtr server = Native.ww_server_bind(at, &native, &error);
                return server == IntPtr.Zero ? throw WhitewaterException.Last(error) : new ServerHandle(server);
            }
        }

        /// <summary>Number of connected clients.</summary>
        public int ClientCount => Clients(default(Span<SessionId>));

        /// <summary>Writes the sessions of connected clients, in no order.</summary>
        /// <param name="sessions">Where to.</param>
        /// <returns>How many clients are connected, which may be more than there was room for.</returns>
        public int Clients(Span<SessionId> sessions)
        {
            using (var native = Use())
            {
                fixed (SessionId* first = &System.Runtime.InteropServices.MemoryMarshal.GetReference(sessions))
                {
                    return Check(Native.ww_server_clients(native.Pointer, (uint*)first, (UIntPtr)sessions.Length));
                }
            }
        }

        /// <summary>Whether a session is up and can be sent to.</summary>
        /// <param name="session">Which session.</param>
        /// <returns>Whether it is.</returns>
        public bool IsConnected(SessionId session)
        {
            using (var native = Use())
            {
                return Check(Native.ww_server_is_connected(native.Pointer, session.Bits)) > 0;
            }
        }

        /// <summary>Admits a client that wants to join.</summary>
        /// <param name="session">Which client.</param>
        /// <param name="user">What to tell its program, at most 256 bytes: <see cref="WhitewaterClient.User"/>.</param>
        /// <returns><c>false</c>: it does not want to any more.</returns>
        /// <exception cref="ArgumentException">The bytes are too many.</exception>
        public bool Admit(SessionId session, ReadOnlySpan<byte> user = default(ReadOnlySpan<byte>))
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(user))
                {
                    return Decided(Native.ww_server_admit(native.Pointer, session.Bits, bytes, (UIntPtr)user.Length));
                }
            }
        }

        /// <summary>Rejects a client that wants to join.</summary>
        /// <param name="session">Which client.</param>
        /// <param name="code">What it means is up to the game; below <see cref="WhitewaterEnd.ReservedCodes"/>.</param>
        /// <param name="user">What to tell its program, at most 256 bytes: <see cref="Disconnect.Rejection"/>.</param>
        /// <returns><c>false</c>: it does not want to any more.</returns>
        /// <exception cref="ArgumentException">The bytes are too many, or the code is out of range.</exception>
        public bool Reject(SessionId session, ushort code, ReadOnlySpan<byte> user = default(ReadOnlySpan<byte>))
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(user))
                {
                    return Decided(Native.ww_server_reject(native.Pointer, session.Bits, code, bytes, (UIntPtr)user.Length));
                }
            }
        }

        /// <summary>What a client said in <see cref="ClientOptions.User"/>; <c>null</c>: there is no such session.</summary>
        /// <param name="session">Which client; one that wants to join as well.</param>
        /// <returns>At most 256 bytes.</returns>
        public byte[] User(SessionId session)
        {
            using (var native = Use())
            {
                return Bytes((to, size) => Native.ww_server_user(native.Pointer, session.Bits, to, size));
            }
        }

        /// <summary>What is in the connect token of a client; <c>null</c>: there is no such session, or the server requires no tokens.</summary>
        /// <param name="session">Which client; one that wants to join as well.</param>
        /// <returns>What the matchmaker said.</returns>
        public Pass Pass(SessionId session)
        {
            using (var native = Use())
            {
                Native.Pass pass;
                int result = Native.ww_server_pass(native.Pointer, session.Bits, &pass);
                return result == Native.Closed || Check(result) != 0 ? null : new Pass(&pass);
            }
        }

        /// <summary>The address of a client, such as "192.0.2.1:4000"; <c>null</c>: there is no such session.</summary>
        /// <param name="session">Which client.</param>
        /// <returns>The address.</returns>
        public string PeerAddress(SessionId session)
        {
            using (var native = Use())
            {
                return Text((to, size) => Native.ww_server_peer_addr(native.Pointer, session.Bits, to, size));
            }
        }

        /// <summary>Queues a message on a channel of a session.</summary>
        /// <param name="session">Which session.</param>
        /// <param name="channel">Which channel.</param>
        /// <param name="message">The message. It is copied.</param>
        /// <returns>Whether it was queued, or why not.</returns>
        /// <exception cref="ArgumentOutOfRangeException">There is no such channel.</exception>
        public SendResult Send(SessionId session, int channel, ReadOnlySpan<byte> message)
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(message))
                {
                    int result = Native.ww_server_send(native.Pointer, session.Bits, (uint)channel, bytes, (UIntPtr)message.Length);
                    return Sent(result, channel);
                }
            }
        }

        /// <summary>Queues a message for every connected client.</summary>
        /// <param name="channel">Which channel.</param>
        /// <param name="message">The message. It is copied.</param>
        /// <param name="full">For how many clients it was not queued, because their channel was full.</param>
        /// <returns>
        /// <see cref="SendResult.Full"/> if there are any of those, and otherwise as <see cref="Send"/>.
        /// </returns>
        /// <exception cref="ArgumentOutOfRangeException">There is no such channel.</exception>
        public SendResult Broadcast(int channel, ReadOnlySpan<byte> message, out int full)
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(message))
                {
                    int result = Native.ww_server_broadcast(native.Pointer, (uint)channel, bytes, (UIntPtr)message.Length);
                    return SentToAll(result, channel, out full);
                }
            }
        }

        /// <summary><see cref="Broadcast"/> to all clients but one, such as the one that a message came from.</summary>
        /// <param name="session">Which one not.</param>
        /// <param name="channel">As there.</param>
        /// <param name="message">As there.</param>
        /// <param name="full">As there.</param>
        /// <returns>As there.</returns>
        /// <exception cref="ArgumentOutOfRangeException">There is no such channel.</exception>
        public SendResult BroadcastExcept(SessionId session, int channel, ReadOnlySpan<byte> message, out int full)
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(message))
                {
                    UIntPtr length = (UIntPtr)message.Length;
                    int result = Native.ww_server_broadcast_except(native.Pointer, session.Bits, (uint)channel, bytes, length);
                    return SentToAll(result, channel, out full);
                }
            }
        }

        /// <summary>Queues an unreliable datagram for a session.</summary>
        /// <param name="session">Which session.</param>
        /// <param name="datagram">The datagram. It is copied.</param>
        /// <returns>Whether it was queued, or why not.</returns>
        public SendResult SendDatagram(SessionId session, ReadOnlySpan<byte> datagram)
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(datagram))
                {
                    return Sent(Native.ww_server_send_datagram(native.Pointer, session.Bits, bytes, (UIntPtr)datagram.Length), 0);
                }
            }
        }

        /// <summary>
        /// Whether everything that was sent on a reliable channel of a session is known to have arrived. If not, <see cref="Writable"/> is raised when
        /// it has.
        /// </summary>
        /// <param name="session">Which session.</param>
        /// <param name="channel">Which channel.</param>
        /// <returns>Whether it is; <c>false</c> if there is no such session.</returns>
        /// <exception cref="ArgumentOutOfRangeException">There is no such channel.</exception>
        public bool IsDelivered(SessionId session, int channel)
        {
            using (var native = Use())
            {
                int result = Native.ww_server_is_delivered(native.Pointer, session.Bits, (uint)channel);
                return result >= 0 ? result > 0 : Sent(result, channel) == SendResult.Sent;
            }
        }

        /// <summary>The state of a session.</summary>
        /// <param name="session">Which session.</param>
        /// <param name="stats">Its state.</param>
        /// <returns><c>false</c>: there is no such session.</returns>
        public bool TryGetStats(SessionId session, out SessionStats stats)
        {
            using (var native = Use())
            {
                Native.Stats now;
                int result = Native.ww_server_stats(native.Pointer, session.Bits, &now);
                stats = result == 0 ? new SessionStats(in now) : default(SessionStats);
                return result == Native.Closed ? false : Check(result) == 0;
            }
        }

        /// <summary>Ends a session once everything sent has arrived; then <see cref="Disconnected"/> is raised.</summary>
        /// <param name="session">Which session. If it is gone, nothing happens.</param>
        /// <param name="code">What it means is up to the game; below <see cref="WhitewaterEnd.ReservedCodes"/>.</param>
        /// <param name="text">For the client: at most 128 bytes of UTF-8, without control characters.</param>
        /// <exception cref="ArgumentException">The code or the text is out of range.</exception>
        public void Close(SessionId session, ushort code = 0, string text = "")
        {
            byte[] terminated = Terminated(text, nameof(text));
            using (var native = Use())
            {
                fixed (byte* bytes = terminated)
                {
                    CheckClose(Native.ww_server_close_with(native.Pointer, session.Bits, code, bytes));
                }
            }
        }

        /// <summary>
        /// Ends a session at once: what has not arrived is lost, and no message of it is raised any more. The next pump tells the client, and
        /// <see cref="Disconnected"/> is raised.
        /// </summary>
        /// <param name="session">As <see cref="Close"/>.</param>
        /// <param name="code">As <see cref="Close"/>.</param>
        /// <param name="text">As <see cref="Close"/>.</param>
        /// <exception cref="ArgumentException">The code or the text is out of range.</exception>
        public void Kick(SessionId session, ushort code = 0, string text = "")
        {
            byte[] terminated = Terminated(text, nameof(text));
            using (var native = Use())
            {
                fixed (byte* bytes = terminated)
                {
                    CheckClose(Native.ww_server_kick(native.Pointer, session.Bits, code, bytes));
                }
                Native.Stats unused;
                if (Native.ww_server_stats(native.Pointer, session.Bits, &unused) == 0)
                {
                    kicked.Add(session.Bits);
                }
            }
        }

        /// <summary>Sends the client of a session to another server: <see cref="WhitewaterClient.Redirected"/>.</summary>
        /// <param name="session">Which session.</param>
        /// <param name="token">A connect token that is valid at the other server.</param>
        /// <returns>
        /// <see cref="SendResult.Closed"/>: there is no such session; <see cref="SendResult.TooLong"/>: the token does not fit into a datagram.
        /// </returns>
        /// <exception cref="ArgumentException">It is not a token.</exception>
        public SendResult Redirect(SessionId session, ReadOnlySpan<byte> token)
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(token))
                {
                    int result = Native.ww_server_redirect(native.Pointer, session.Bits, bytes, (UIntPtr)token.Length);
                    return result == Native.Misuse ? throw new ArgumentException("not a token", nameof(token)) : Sent(result, 0);
                }
            }
        }

        private static bool Decided(int result)
        {
            switch (result)
            {
                case Native.Closed:
                    return false;
                case Native.TooLong:
                    throw new ArgumentException("more than 256 bytes", "user");
                case Native.Misuse:
                    throw new ArgumentOutOfRangeException("code", "the code is 0xff00 or more");
                default:
                    return Check(result) == 0;
            }
        }

        private static SendResult SentToAll(int result, int channel, out int full)
        {
            full = Math.Max(result, 0);
            return full > 0 ? SendResult.Full : Sent(result, channel);
        }

        internal override int NativePump(IntPtr native)
        {
            return Native.ww_server_pump(native, null);
        }

        internal override int NativePoll(IntPtr native, long milliseconds)
        {
            return Native.ww_server_poll(native, milliseconds);
        }

        internal override int NativeShutdown(IntPtr native, ushort code)
        {
            return Native.ww_server_shutdown(native, code);
        }

        internal override int NativeLocalAddress(IntPtr native, byte* to, UIntPtr size)
        {
            return Native.ww_server_local_addr(native, to, size);
        }

        internal override int NativePollEvent(IntPtr native, Native.Event* happened)
        {
            return Native.ww_server_poll_event(native, happened);
        }

        internal override int NativeRecv(IntPtr native, uint session, uint channel, byte* to, UIntPtr size)
        {
            return Native.ww_server_recv(native, session, channel, to, size);
        }

        internal override int NativeRecvDatagram(IntPtr native, uint session, byte* to, UIntPtr size)
        {
            return Native.ww_server_recv_datagram(native, session, to, size);
        }

        internal override bool IsKicked(uint session)
        {
            return kicked.Count > 0 && kicked.Contains(session);
        }

        internal override void RaiseMessage(uint session, int channel, ReadOnlySpan<byte> message)
        {
            Message?.Invoke(new SessionId(session), channel, message);
        }

        internal override void RaiseDatagram(uint session, ReadOnlySpan<byte> datagram)
        {
            Datagram?.Invoke(new SessionId(session), datagram);
        }

        internal override void Raise(in Native.Event happened)
        {
            var session = new SessionId(happened.Session);
            switch (happened.Kind)
            {
                case Native.EventKind.Requested:
                    byte[] user = User(session);
                    if (user != null)
                    {
                        Requested?.Invoke(session, user);
                    }
                    break;
                case Native.EventKind.Connected:
                    Connected?.Invoke(session);
                    break;
                case Native.EventKind.Closed:
                    Disconnect end = End(in happened);
                    try
                    {
                        Disconnected?.Invoke(session, end);
                    }
                    finally
                    {
                        kicked.Remove(happened.Session); // even if the handler kicks it once more
                    }
                    break;
                case Native.EventKind.Moved:
                    Moved?.Invoke(session);
                    break;
                case Native.EventKind.Writable:
                    Writable?.Invoke(session);
                    break;
            }
        }

        private Disconnect End(in Native.Event happened)
        {
            using (var native = Use())
            {
                IntPtr server = native.Pointer;
                uint session = happened.Session;
                string text = Text((to, size) => Native.ww_server_close_text(server, session, to, size));
                string description = Text((to, size) => Native.ww_server_close_reason(server, to, size));
                return new Disconnect(in happened, text ?? "", description, Array.Empty<byte>());
            }
        }
    }
}
