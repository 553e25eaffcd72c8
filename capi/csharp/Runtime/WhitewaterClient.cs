using System;

namespace Whitewater
{
    /// <summary>The client's end of a session.</summary>
    /// <example>
    /// <code>
    /// var client = new WhitewaterClient("game.example.org:4000", new ClientOptions { ProtocolId = 7, Suite = Suite.Psk, Psk = secret });
    /// client.Connected += () => client.Send(0, hello);
    /// client.Message += (channel, message) => Handle(message);
    /// // each frame:
    /// client.Pump();
    /// </code>
    /// </example>
    public sealed unsafe class WhitewaterClient : WhitewaterEnd
    {
        private bool isKicked;

        /// <summary>The session is up.</summary>
        public event Action Connected;

        /// <summary>The session is over, or could not be made. Nothing follows.</summary>
        public event Action<Disconnect> Disconnected;

        /// <summary>A message has arrived. Those that nobody handles are dropped.</summary>
        public event ClientMessageHandler Message;

        /// <summary>An unreliable datagram has arrived. Those that nobody handles are dropped.</summary>
        public event ClientDatagramHandler Datagram;

        /// <summary>
        /// The server sends this client to another one. The bytes are the <see cref="ClientOptions.Token"/> for it: dispose of this client, and make
        /// another with them.
        /// </summary>
        public event Action<byte[]> Redirected;

        /// <summary>The server has another address: <see cref="PeerAddress"/>.</summary>
        public event Action Moved;

        /// <summary>A channel that was full has room again.</summary>
        public event Action Writable;

        /// <summary>Begins to connect. <see cref="Connected"/> or <see cref="Disconnected"/> is raised later, by a pump.</summary>
        /// <param name="address">"host:port". A name is resolved before this returns, which may take seconds.</param>
        /// <param name="options">How to connect. They are copied.</param>
        /// <exception cref="WhitewaterException">An option or the address is wrong, or there is no socket.</exception>
        /// <exception cref="ArgumentException">A key has the wrong length.</exception>
        public WhitewaterClient(string address, ClientOptions options)
            : base(Connect(address, options ?? throw new ArgumentNullException(nameof(options))), options.ChannelCount)
        {
        }

        /// <summary>Begins to connect to the server that is in <see cref="ClientOptions.Token"/>.</summary>
        /// <param name="options">How to connect, with a token. They are copied.</param>
        /// <exception cref="WhitewaterException">An option or the token is wrong, or there is no socket.</exception>
        public WhitewaterClient(ClientOptions options) : this("", options)
        {
        }

        private static ClientHandle Connect(string address, ClientOptions options)
        {
            byte[] host = Terminated(address, nameof(address));
            Native.Options native = options.ToNative();
            Native.Channel[] list = options.NativeChannels();
            int error;
            fixed (Native.Channel* channels = list)
            fixed (byte* at = host, psk = options.Psk, serverKey = options.ServerKey)
            fixed (byte* user = options.User, ticket = options.Ticket, token = options.Token)
            {
                native.Channels = channels;
                native.ChannelCount = (UIntPtr)(list?.Length ?? 0);
                native.Psk = psk;
                native.ServerKey = serverKey;
                native.User = user;
                native.UserLen = (UIntPtr)(options.User?.Length ?? 0);
                native.Ticket = ticket;
                native.TicketLen = (UIntPtr)(options.Ticket?.Length ?? 0);
                native.Token = token;
                native.TokenLen = (UIntPtr)(options.Token?.Length ?? 0);
                IntPtr client = Native.ww_client_connect(at, &native, &error);
                return client == IntPtr.Zero ? throw WhitewaterException.Last(error) : new ClientHandle(client);
            }
        }

        /// <summary>Whether the session is up and can be sent to.</summary>
        public bool IsConnected
        {
            get
            {
                using (var native = Use())
                {
                    return Check(Native.ww_client_is_connected(native.Pointer)) > 0;
                }
            }
        }

        /// <summary>The server's address, such as "192.0.2.1:4000"; <c>null</c>: the session was never up.</summary>
        public string PeerAddress
        {
            get
            {
                using (var native = Use())
                {
                    return Text((to, size) => Native.ww_client_peer_addr(native.Pointer, to, size));
                }
            }
        }

        /// <summary>Queues a message on a channel.</summary>
        /// <param name="channel">Which channel.</param>
        /// <param name="message">The message. It is copied.</param>
        /// <returns>Whether it was queued, or why not.</returns>
        /// <exception cref="ArgumentOutOfRangeException">There is no such channel.</exception>
        public SendResult Send(int channel, ReadOnlySpan<byte> message)
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(message))
                {
                    return Sent(Native.ww_client_send(native.Pointer, (uint)channel, bytes, (UIntPtr)message.Length), channel);
                }
            }
        }

        /// <summary>Queues an unreliable datagram.</summary>
        /// <param name="datagram">The datagram. It is copied.</param>
        /// <returns>Whether it was queued, or why not.</returns>
        public SendResult SendDatagram(ReadOnlySpan<byte> datagram)
        {
            using (var native = Use())
            {
                fixed (byte* bytes = &First(datagram))
                {
                    return Sent(Native.ww_client_send_datagram(native.Pointer, bytes, (UIntPtr)datagram.Length), 0);
                }
            }
        }

        /// <summary>
        /// Whether everything that was sent on a reliable channel is known to have arrived. If not, <see cref="Writable"/> is raised when it has.
        /// </summary>
        /// <param name="channel">Which channel.</param>
        /// <returns>Whether it is; <c>false</c> if the session was never up.</returns>
        /// <exception cref="ArgumentOutOfRangeException">There is no such channel.</exception>
        public bool IsDelivered(int channel)
        {
            using (var native = Use())
            {
                int result = Native.ww_client_is_delivered(native.Pointer, (uint)channel);
                return result >= 0 ? result > 0 : Sent(result, channel) == SendResult.Sent;
            }
        }

        /// <summary>The state of the session.</summary>
        /// <param name="stats">The state.</param>
        /// <returns><c>false</c>: the session was never up.</returns>
        public bool TryGetStats(out SessionStats stats)
        {
            using (var native = Use())
            {
                Native.Stats now;
                int result = Native.ww_client_stats(native.Pointer, &now);
                stats = result == 0 ? new SessionStats(in now) : default(SessionStats);
                return result == Native.Closed ? false : Check(result) == 0;
            }
        }

        /// <summary>What the server's program said when it admitted this client; <c>null</c>: the session was never up.</summary>
        /// <returns>At most 256 bytes.</returns>
        public byte[] User()
        {
            using (var native = Use())
            {
                return Bytes((to, size) => Native.ww_client_user(native.Pointer, to, size));
            }
        }

        /// <summary>Takes what saves a round trip when this player's next client connects to this server: <see cref="ClientOptions.Ticket"/>.</summary>
        /// <returns>The ticket; empty: there is none.</returns>
        public byte[] TakeTicket()
        {
            using (var native = Use())
            {
                return Bytes((to, size) => Native.ww_client_ticket(native.Pointer, to, size));
            }
        }

        /// <summary>
        /// Call this when the machine has changed networks and the system tells you. The session goes on in the new one. The client also notices
        /// by itself, within 250 ms.
        /// </summary>
        public void PathChanged()
        {
            using (var native = Use())
            {
                Check(Native.ww_client_path_changed(native.Pointer));
            }
        }

        /// <summary>Ends the session once everything sent has arrived; then <see cref="Disconnected"/> is raised.</summary>
        /// <param name="code">What it means is up to the game; below <see cref="WhitewaterEnd.ReservedCodes"/>.</param>
        /// <param name="text">For the server's log: at most 128 bytes of UTF-8, without control characters.</param>
        /// <exception cref="ArgumentException">The code or the text is out of range.</exception>
        public void Close(ushort code = 0, string text = "")
        {
            byte[] terminated = Terminated(text, nameof(text));
            using (var native = Use())
            {
                fixed (byte* bytes = terminated)
                {
                    CheckClose(Native.ww_client_close_with(native.Pointer, code, bytes));
                }
            }
        }

        /// <summary>
        /// Ends the session, or the attempt to connect, at once: what has not arrived is lost, and no message is raised any more. The next pump
        /// tells the server, and <see cref="Disconnected"/> is raised.
        /// </summary>
        /// <param name="code">As <see cref="Close"/>.</param>
        /// <param name="text">As <see cref="Close"/>.</param>
        /// <exception cref="ArgumentException">The code or the text is out of range.</exception>
        public void Kick(ushort code = 0, string text = "")
        {
            byte[] terminated = Terminated(text, nameof(text));
            using (var native = Use())
            {
                fixed (byte* bytes = terminated)
                {
                    CheckClose(Native.ww_client_kick(native.Pointer, code, bytes));
                }
            }
            isKicked = true;
        }

        internal override int NativePump(IntPtr native)
        {
            return Native.ww_client_pump(native, null);
        }

        internal override int NativePoll(IntPtr native, long milliseconds)
        {
            return Native.ww_client_poll(native, milliseconds);
        }

        internal override int NativeShutdown(IntPtr native, ushort code)
        {
            return Native.ww_client_shutdown(native, code);
        }

        internal override int NativeLocalAddress(IntPtr native, byte* to, UIntPtr size)
        {
            return Native.ww_client_local_addr(native, to, size);
        }

        internal override int NativePollEvent(IntPtr native, Native.Event* happened)
        {
            return Native.ww_client_poll_event(native, happened);
        }

        internal override int NativeRecv(IntPtr native, uint session, uint channel, byte* to, UIntPtr size)
        {
            return Native.ww_client_recv(native, channel, to, size);
        }

        internal override int NativeRecvDatagram(IntPtr native, uint session, byte* to, UIntPtr size)
        {
            return Native.ww_client_recv_datagram(native, to, size);
        }

        internal override bool IsKicked(uint session)
        {
            return isKicked;
        }

        internal override void RaiseMessage(uint session, int channel, ReadOnlySpan<byte> message)
        {
            Message?.Invoke(channel, message);
        }

        internal override void RaiseDatagram(uint session, ReadOnlySpan<byte> datagram)
        {
            Datagram?.Invoke(datagram);
        }

        internal override void Raise(in Native.Event happened)
        {
            switch (happened.Kind)
            {
                case Native.EventKind.Connected:
                    Connected?.Invoke();
                    break;
                case Native.EventKind.Closed:
                    Disconnect end = End(in happened);
                    Disconnected?.Invoke(end);
                    break;
                case Native.EventKind.Redirected:
                    byte[] token = TakeRedirect();
                    Redirected?.Invoke(token);
                    break;
                case Native.EventKind.Moved:
                    Moved?.Invoke();
                    break;
                case Native.EventKind.Writable:
                    Writable?.Invoke();
                    break;
            }
        }

        private Disconnect End(in Native.Event happened)
        {
            using (var native = Use())
            {
                IntPtr client = native.Pointer;
                string text = Text((to, size) => Native.ww_client_close_text(client, to, size));
                string description = Text((to, size) => Native.ww_client_close_reason(client, to, size));
                byte[] rejection = Bytes((to, size) => Native.ww_client_rejection(client, to, size));
                return new Disconnect(in happened, text, description, rejection);
            }
        }

        private byte[] TakeRedirect()
        {
            using (var native = Use())
            {
                return Bytes((to, size) => Native.ww_client_take_redirect(native.Pointer, to, size));
            }
        }
    }
}
