using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Whitewater
{
    /// <summary>
    /// What clients and servers have in common. Call one from one thread at a time: a second thread that calls it meanwhile gets an
    /// <see cref="InvalidOperationException"/>. Event handlers may call everything except the pumps, and may dispose of it.
    /// </summary>
    public abstract unsafe class WhitewaterEnd : IDisposable
    {
        /// <summary>From here on, codes are the library's own.</summary>
        public const ushort ReservedCodes = 0xff00;

        /// <summary>Most bytes of the text that a session is closed with, in UTF-8.</summary>
        public const int CloseTextMax = 128;

        private readonly NativeHandle handle;
        private readonly int channels;

        // What is received is copied here, and handed out as a span. It grows to the longest message.
        private byte[] buffer = new byte[64 * 1024];
        private bool isPumping;

        // An event that was taken, and whose messages are not all read, because a handler threw.
        private Native.Event unread;
        private bool isUnread;

        internal WhitewaterEnd(NativeHandle handle, int channels)
        {
            this.handle = handle;
            this.channels = channels;
        }

        /// <summary>Whether it was disposed of.</summary>
        public bool IsDisposed => handle.IsClosed;

        /// <summary>
        /// Says goodbye and frees it. It does not wait: what has not arrived is lost; see <see cref="Shutdown"/>. May be called more than once, and
        /// by an event handler.
        /// </summary>
        public void Dispose()
        {
            handle.Dispose();
        }

        /// <summary>
        /// Receives, runs timers, sends what is due, and raises events. Call it once a frame. What a handler throws comes out of here; the next
        /// call goes on with the next event or message.
        /// </summary>
        /// <exception cref="InvalidOperationException">An event handler called it.</exception>
        /// <exception cref="WhitewaterException">The socket has failed.</exception>
        public void Pump()
        {
            Begin();
            try
            {
                using (var native = Use())
                {
                    Check(NativePump(native.Pointer));
                }
                RaiseAll();
            }
            finally
            {
                isPumping = false;
            }
        }

        /// <summary>As <see cref="Pump()"/>, but first waits until there is an event: for programs without a frame rate.</summary>
        /// <param name="milliseconds">Longest time to wait; negative: no limit.</param>
        /// <returns>Whether there was an event.</returns>
        /// <exception cref="InvalidOperationException">An event handler called it.</exception>
        /// <exception cref="WhitewaterException">The socket has failed.</exception>
        public bool Pump(int milliseconds)
        {
            Begin();
            try
            {
                bool isAny;
                using (var native = Use())
                {
                    isAny = Check(NativePoll(native.Pointer, milliseconds)) > 0;
                }
                RaiseAll();
                return isAny;
            }
            finally
            {
                isPumping = false;
            }
        }

        /// <summary>
        /// As <see cref="Pump()"/>, but raises no event; the next pump raises them. Call it at the end of a frame, so that what the frame sent leaves
        /// now.
        /// </summary>
        /// <exception cref="WhitewaterException">The socket has failed.</exception>
        public void Flush()
        {
            using (var native = Use())
            {
                Check(NativePump(native.Pointer));
            }
        }

        /// <summary>
        /// Ends all sessions and waits until that is done: until everything sent has arrived and the goodbyes are said, for a few seconds at most.
        /// Raises no events.
        /// </summary>
        /// <param name="code">What it means is up to the game; below <see cref="ReservedCodes"/>.</param>
        /// <exception cref="ArgumentOutOfRangeException">The code is one of the library's own.</exception>
        /// <exception cref="WhitewaterException">The socket has failed.</exception>
        public void Shutdown(ushort code = 0)
        {
            if (code >= ReservedCodes)
            {
                throw new ArgumentOutOfRangeException(nameof(code), code, "the code is 0xff00 or more");
            }
            using (var native = Use())
            {
                Check(NativeShutdown(native.Pointer, code));
            }
        }

        /// <summary>The address that its socket is bound to, such as "192.0.2.1:4000".</summary>
        public string LocalAddress
        {
            get
            {
                using (var native = Use())
                {
                    return Text((to, size) => NativeLocalAddress(native.Pointer, to, size));
                }
            }
        }

        internal abstract int NativePump(IntPtr native);
        internal abstract int NativePoll(IntPtr native, long milliseconds);
        internal abstract int NativeShutdown(IntPtr native, ushort code);
        internal abstract int NativeLocalAddress(IntPtr native, byte* to, UIntPtr size);
        internal abstract int NativePollEvent(IntPtr native, Native.Event* happened);
        internal abstract int NativeRecv(IntPtr native, uint session, uint channel, byte* to, UIntPtr size);
        internal abstract int NativeRecvDatagram(IntPtr native, uint session, byte* to, UIntPtr size);

        /// <summary>Whether the program has had enough of a session: nothing more of it is raised but its end.</summary>
        internal abstract bool IsKicked(uint session);

        internal abstract void RaiseMessage(uint session, int channel, ReadOnlySpan<byte> message);
        internal abstract void RaiseDatagram(uint session, ReadOnlySpan<byte> datagram);
        internal abstract void Raise(in Native.Event happened);

        internal NativeHandle.Use Use()
        {
            return handle.Enter(this);
        }

        private void Begin()
        {
            if (isPumping)
            {
                throw new InvalidOperationException("an event handler cannot pump: the pump that raised the event goes on when the handler returns");
            }
            isPumping = true;
        }

        private void RaiseAll()
        {
            while (isUnread || TakeEvent())
            {
                if (unread.Kind == Native.EventKind.Readable || unread.Kind == Native.EventKind.Closed)
                {
                    RaiseMessages(unread.Session);
                }
                isUnread = false;
                if (unread.Kind != Native.EventKind.Readable && !IsDisposed)
                {
                    Native.Event happened = unread;
                    Raise(in happened);
                }
            }
        }

        private bool TakeEvent()
        {
            if (IsDisposed)
            {
                return false;
            }
            using (var native = Use())
            {
                Native.Event happened;
                isUnread = Check(NativePollEvent(native.Pointer, &happened)) > 0;
                unread = happened;
            }
            return isUnread;
        }

        private void RaiseMessages(uint session)
        {
            for (int channel = 0; channel < channels; channel++)
            {
                for (int length; (length = Take(session, channel)) >= 0;)
                {
                    RaiseMessage(session, channel, new ReadOnlySpan<byte>(buffer, 0, length));
                }
            }
            for (int length; (length = Take(session, -1)) >= 0;)
            {
                RaiseDatagram(session, new ReadOnlySpan<byte>(buffer, 0, length));
            }
        }

        /// <summary>Copies the next message to the buffer. -1 as a channel: the next datagram. Returns its length, or a negative number.</summary>
        private int Take(uint session, int channel)
        {
            while (!IsDisposed && !IsKicked(session))
            {
                int length;
                using (var native = Use())
                {
                    fixed (byte* to = buffer)
                    {
                        length = channel < 0
                            ? NativeRecvDatagram(native.Pointer, session, to, (UIntPtr)buffer.Length)
                            : NativeRecv(native.Pointer, session, (uint)channel, to, (UIntPtr)buffer.Length);
                    }
                }
                if (length != Native.TooLong)
                {
                    return length == Native.Panic ? throw WhitewaterException.Of(length) : length;
                }
                buffer = new byte[buffer.Length * 2]; // a message has at most 64 MiB
            }
            return Native.Closed;
        }

        /// <summary>A result that is no error of the program's.</summary>
        internal static int Check(int result)
        {
            return result >= 0 ? result : throw WhitewaterException.Of(result);
        }

        internal static SendResult Sent(int result, int channel)
        {
            switch (result)
            {
                case 0:
                case Native.Again:
                case Native.TooLong:
                case Native.Closed:
                    return (SendResult)result;
                case Native.Misuse:
                    throw new ArgumentOutOfRangeException(nameof(channel), channel, "the session has no such channel");
                default:
                    throw WhitewaterException.Of(result);
            }
        }

        internal void CheckClose(int result)
        {
            if (result == Native.Misuse)
            {
                throw new ArgumentException("the code is 0xff00 or more, or the text is longer than 128 bytes or has control characters");
            }
            Check(result);
        }

        /// <summary>A text for C: UTF-8 that ends with a zero.</summary>
        internal static byte[] Terminated(string text, string name)
        {
            if ((text ?? throw new ArgumentNullException(name)).IndexOf('\0') >= 0)
            {
                throw new ArgumentException("a text has no zeros", name);
            }
            return Encoding.UTF8.GetBytes(text + '\0');
        }

        internal delegate int Writer(byte* to, UIntPtr size);

        /// <summary>What a function writes, at most 2048 bytes. <c>null</c>: there is none.</summary>
        internal static byte[] Bytes(Writer write)
        {
            byte* room = stackalloc byte[2048];
            int length = write(room, (UIntPtr)2048);
            if (length == Native.Closed || length == Native.Again)
            {
                return null;
            }
            return new ReadOnlySpan<byte>(room, Check(length)).ToArray();
        }

        /// <summary>The text that a function writes. <c>null</c>: there is none.</summary>
        internal static string Text(Writer write)
        {
            byte[] bytes = Bytes(write);
            return bytes == null ? null : Encoding.UTF8.GetString(bytes);
        }

        /// <summary>The first byte, to be pinned; null for an empty span.</summary>
        internal static ref byte First(ReadOnlySpan<byte> bytes)
        {
            return ref MemoryMarshal.GetReference(bytes);
        }
    }
}
