using System;
using System.Text;

namespace Whitewater
{
    /// <summary>What kind of error it is.</summary>
    public enum Error
    {
        /// <summary>An option or an address makes no sense.</summary>
        Misuse = Native.Misuse,

        /// <summary>The socket has failed, or could not be created.</summary>
        Io = Native.Io,

        /// <summary>An option is missing or out of range.</summary>
        Config = Native.Config,

        /// <summary>A bug in the library. The object cannot be used any more: dispose of it.</summary>
        Panic = Native.Panic,
    }

    /// <summary>The library could not do it. The message says why, for example which option is missing.</summary>
    public sealed class WhitewaterException : Exception
    {
        /// <summary>What kind of error it is.</summary>
        public Error Error { get; }

        internal WhitewaterException(int error, string message) : base(message)
        {
            Error = (Error)error;
        }

        /// <summary>For a client or a server that could not be made.</summary>
        internal static unsafe WhitewaterException Last(int error)
        {
            var text = new byte[512];
            fixed (byte* buffer = text)
            {
                int length = Native.ww_error_text(buffer, (UIntPtr)text.Length);
                return new WhitewaterException(error, Encoding.UTF8.GetString(text, 0, Math.Max(length, 0)));
            }
        }

        /// <summary>For a call that failed although its arguments are good.</summary>
        internal static WhitewaterException Of(int error)
        {
            string text = error == Native.Panic ? "a panic, which is a bug in the library" : "the socket has failed";
            return new WhitewaterException(error, text);
        }
    }
}
