using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Whitewater
{
    /// <summary>
    /// Owns a client or a server of the library, and lets one thread use it at a time, because the library relies on that. The garbage collector
    /// frees what nobody disposed of.
    /// </summary>
    internal abstract class NativeHandle : SafeHandle
    {
        private int used;

        internal NativeHandle(IntPtr native) : base(IntPtr.Zero, true)
        {
            SetHandle(native);
        }

        public override bool IsInvalid => handle == IntPtr.Zero;

        /// <summary>Lets the caller use the object until it disposes of the result.</summary>
        internal Use Enter(object owner)
        {
            if (IsClosed)
            {
                throw new ObjectDisposedException(owner.GetType().Name);
            }
            if (Interlocked.Exchange(ref used, 1) != 0)
            {
                throw new InvalidOperationException("another thread uses it: call it from one thread at a time");
            }
            bool isHeld = false;
            try
            {
                DangerousAddRef(ref isHeld); // if another thread disposes of it now, it is freed afterwards
            }
            catch (ObjectDisposedException)
            {
                Volatile.Write(ref used, 0);
                throw new ObjectDisposedException(owner.GetType().Name);
            }
            return new Use(this);
        }

        /// <summary>The object while a thread uses it.</summary>
        internal readonly struct Use : IDisposable
        {
            private readonly NativeHandle owner;

            internal Use(NativeHandle owner)
            {
                this.owner = owner;
            }

            internal IntPtr Pointer => owner.handle;

            public void Dispose()
            {
                Volatile.Write(ref owner.used, 0);
                owner.DangerousRelease();
            }
        }
    }

    internal sealed class ClientHandle : NativeHandle
    {
        internal ClientHandle(IntPtr native) : base(native)
        {
        }

        protected override bool ReleaseHandle()
        {
            Native.ww_client_free(handle);
            return true;
        }
    }

    internal sealed class ServerHandle : NativeHandle
    {
        internal ServerHandle(IntPtr native) : base(native)
        {
        }

        protected override bool ReleaseHandle()
        {
            Native.ww_server_free(handle);
            return true;
        }
    }
}
