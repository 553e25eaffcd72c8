using System;
using System.Runtime.InteropServices;

namespace Whitewater
{
    /// <summary>The functions and structs of whitewater.h that this package uses, with the layout that C gives them.</summary>
    internal static unsafe class Native
    {
#if UNITY_IOS && !UNITY_EDITOR
        private const string Library = "__Internal"; // a static library, inside of the program
#else
        private const string Library = "whitewater";
#endif

        internal const int Again = -1, TooLong = -2, Closed = -3, Misuse = -4, Io = -5, Config = -6, Panic = -7;

        internal enum EventKind
        {
            Requested = 1,
            Connected = 2,
            Readable = 3,
            Writable = 4,
            Redirected = 5,
            Moved = 6,
            Closed = 7,
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Channel
        {
            internal byte Kind, Carrier;
            internal uint MaxMessage;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Options
        {
            internal ulong ProtocolId;
            internal ushort Suite, MaxSessions;
            internal uint TimeoutMs, KeepaliveMs;
            internal Channel* Channels;
            internal UIntPtr ChannelCount;
            internal byte* Psk, ServerKey, User;
            internal UIntPtr UserLen;
            internal byte* Ticket;
            internal UIntPtr TicketLen;
            internal byte Ask, Repairs;
            internal ushort RepairsWithinMs;
            internal byte* Token;
            internal UIntPtr TokenLen;
            internal byte* TokenKey;
            internal ulong ServerId;
            internal byte KeyId, RoutingTokenLen;
            internal ushort SessionsPerAddress;
            internal byte* Proxies;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Stats
        {
            internal ulong RttUs, RttvarUs;
            internal double Loss;
            internal ulong Sent, BytesSent, Received, BytesReceived;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Pass
        {
            internal ulong ClientId, Created;
            internal fixed byte MatchId[16];
            internal fixed byte User[256];
            internal uint UserLen;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Order
        {
            internal ulong ProtocolId, ServerId, ClientId;
            internal fixed byte MatchId[16];
            internal byte* TokenKey, Addresses, User;
            internal UIntPtr UserLen;
            internal byte* RoutingToken;
            internal UIntPtr RoutingTokenLen;
            internal uint LifeS;
            internal ushort Suite;
            internal byte KeyId;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Event
        {
            internal EventKind Kind;
            internal uint Session;
            internal int Reason;
            internal ushort Code;
            internal byte IsUndelivered;
        }

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_error_text(byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_public_key(byte* privateKey, byte* publicKey);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_token_mint(Order* order, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern IntPtr ww_client_connect(byte* address, Options* options, int* error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_send(IntPtr client, uint channel, byte* message, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_recv(IntPtr client, uint channel, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_send_datagram(IntPtr client, byte* datagram, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_recv_datagram(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_is_delivered(IntPtr client, uint channel);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_stats(IntPtr client, Stats* stats);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_pump(IntPtr client, long* next);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_poll(IntPtr client, long timeoutMs);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_poll_event(IntPtr client, Event* happened);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_path_changed(IntPtr client);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_close_with(IntPtr client, ushort code, byte* message);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_kick(IntPtr client, ushort code, byte* message);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_shutdown(IntPtr client, ushort code);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_is_connected(IntPtr client);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_peer_addr(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_local_addr(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_close_reason(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_close_text(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_user(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_rejection(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_ticket(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_client_take_redirect(IntPtr client, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern void ww_client_free(IntPtr client);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern IntPtr ww_server_bind(byte* address, Options* options, int* error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_pump(IntPtr server, long* next);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_poll(IntPtr server, long timeoutMs);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_poll_event(IntPtr server, Event* happened);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_clients(IntPtr server, uint* sessions, UIntPtr count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_broadcast(IntPtr server, uint channel, byte* message, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_broadcast_except(IntPtr server, uint session, uint channel, byte* message, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_local_addr(IntPtr server, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_close_reason(IntPtr server, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_shutdown(IntPtr server, ushort code);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern void ww_server_free(IntPtr server);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_admit(IntPtr server, uint session, byte* user, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_reject(IntPtr server, uint session, ushort code, byte* user, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_pass(IntPtr server, uint session, Pass* pass);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_user(IntPtr server, uint session, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_send(IntPtr server, uint session, uint channel, byte* message, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_recv(IntPtr server, uint session, uint channel, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_send_datagram(IntPtr server, uint session, byte* datagram, UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_recv_datagram(IntPtr server, uint session, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_is_delivered(IntPtr server, uint session, uint channel);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_is_connected(IntPtr server, uint session);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_stats(IntPtr server, uint session, Stats* stats);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_peer_addr(IntPtr server, uint session, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_close_with(IntPtr server, uint session, ushort code, byte* message);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_kick(IntPtr server, uint session, ushort code, byte* message);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_close_text(IntPtr server, uint session, byte* buffer, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int ww_server_redirect(IntPtr server, uint session, byte* token, UIntPtr len);
    }
}
