using System;

namespace Whitewater
{
    /// <summary>
    /// What a connect token should say, for a matchmaker: it lets one client join one server once. Give the token to that client over a connection that
    /// nobody else can read, as <see cref="ClientOptions.Token"/>.
    /// </summary>
    public sealed class TokenOrder
    {
        /// <summary>Length of <see cref="MatchId"/>, bytes.</summary>
        public const int MatchIdLength = 16;

        /// <summary>As in the options of the server.</summary>
        public ulong ProtocolId { get; set; }

        /// <summary>As in the options of the server.</summary>
        public Suite Suite { get; set; } = Suite.Psk;

        /// <summary>As in the options of the server.</summary>
        public byte[] TokenKey { get; set; }

        /// <summary>As in the options of the server.</summary>
        public ulong ServerId { get; set; }

        /// <summary>As in the options of the server.</summary>
        public byte KeyId { get; set; }

        /// <summary>The addresses of the server, the best first, at most 4 with commas between: "192.0.2.1:4000,[2001:db8::1]:4000".</summary>
        public string Addresses { get; set; } = "";

        /// <summary>The client: the server learns it by <see cref="WhitewaterServer.Pass"/>.</summary>
        public ulong ClientId { get; set; }

        /// <summary>The match, or anything else, 16 bytes: for <see cref="WhitewaterServer.Pass"/> as well.</summary>
        public byte[] MatchId { get; set; }

        /// <summary>Other data for the server, which the client cannot read: up to 256 bytes.</summary>
        public byte[] User { get; set; }

        /// <summary>What each datagram of the client ends with, so that a proxy finds the server by it: up to 20 bytes.</summary>
        public byte[] RoutingToken { get; set; }

        /// <summary>How long it is valid, up to 600 s. Zero: 45 s.</summary>
        public TimeSpan Life { get; set; }

        /// <summary>Makes a token.</summary>
        /// <returns>At most 577 bytes.</returns>
        /// <exception cref="WhitewaterException">Something is missing or out of range.</exception>
        /// <exception cref="ArgumentException">The key, the match or the life has the wrong length.</exception>
        public unsafe byte[] Mint()
        {
            Options.CheckKey(TokenKey, nameof(TokenKey));
            if (MatchId != null && MatchId.Length != MatchIdLength)
            {
                throw new ArgumentException("a match has 16 bytes, not " + MatchId.Length, nameof(MatchId));
            }
            var native = new Native.Order
            {
                ProtocolId = ProtocolId,
                ServerId = ServerId,
                ClientId = ClientId,
                UserLen = (UIntPtr)(User?.Length ?? 0),
                RoutingTokenLen = (UIntPtr)(RoutingToken?.Length ?? 0),
                LifeS = (Options.Milliseconds(Life, nameof(Life)) + 999) / 1000,
                Suite = (ushort)Suite,
                KeyId = KeyId,
            };
            for (int i = 0; i < MatchIdLength && MatchId != null; i++)
            {
                native.MatchId[i] = MatchId[i];
            }
            var token = new byte[1024];
            fixed (byte* key = TokenKey, user = User, routing = RoutingToken, to = token)
            fixed (byte* addresses = WhitewaterEnd.Terminated(Addresses, nameof(Addresses)))
            {
                native.TokenKey = key;
                native.User = user;
                native.RoutingToken = routing;
                native.Addresses = addresses;
                int length = Native.ww_token_mint(&native, to, (UIntPtr)token.Length);
                if (length < 0)
                {
                    throw WhitewaterException.Last(length);
                }
                Array.Resize(ref token, length);
            }
            return token;
        }
    }
}
