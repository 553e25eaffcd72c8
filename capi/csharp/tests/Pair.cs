using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

namespace Whitewater.Tests
{
    /// <summary>A server and a client over loopback, encrypted, with one channel of each reliability. The client is connected.</summary>
    internal sealed class Pair : IDisposable
    {
        internal const int Ordered = 0, Unreliable = 1;
        internal static readonly byte[] Secret = Fill(7);

        internal readonly WhitewaterServer Server;
        internal readonly WhitewaterClient Client;
        internal SessionId Session;

        internal Pair(ServerOptions serverOptions = null, ClientOptions clientOptions = null, Action<WhitewaterServer> prepare = null)
        {
            Server = new WhitewaterServer("127.0.0.1:0", serverOptions ?? ServerOptions());
            Server.Connected += session => Session = session;
            prepare?.Invoke(Server);
            Client = new WhitewaterClient(Server.LocalAddress, clientOptions ?? ClientOptions());
            Until("both are connected", () => Client.IsConnected && Server.ClientCount == 1 && Session != default(SessionId));
        }

        internal static byte[] Fill(byte value)
        {
            var bytes = new byte[Options.KeyLength];
            for (int i = 0; i < bytes.Length; i++)
            {
                bytes[i] = value;
            }
            return bytes;
        }

        internal static ServerOptions ServerOptions()
        {
            return new ServerOptions { ProtocolId = 7, Suite = Suite.Psk, Psk = Secret, Channels = Channels() };
        }

        internal static ClientOptions ClientOptions()
        {
            return new ClientOptions { ProtocolId = 7, Suite = Suite.Psk, Psk = Secret, Channels = Channels() };
        }

        internal static ChannelOptions[] Channels()
        {
            return new[] { ChannelOptions.Ordered, ChannelOptions.Unreliable };
        }

        internal void Until(string what, Func<bool> isDone)
        {
            Until(what, isDone, Server, Client);
        }

        /// <summary>Pumps the ends in turns until it is done.</summary>
        internal static void Until(string what, Func<bool> isDone, params WhitewaterEnd[] ends)
        {
            var waited = Stopwatch.StartNew();
            while (true)
            {
                foreach (WhitewaterEnd end in ends)
                {
                    if (!end.IsDisposed)
                    {
                        end.Pump();
                    }
                }
                if (isDone())
                {
                    return;
                }
                Check.That(waited.Elapsed < TimeSpan.FromSeconds(120), what);
                Thread.Sleep(1);
            }
        }

        internal static int CountPumps(int times, params WhitewaterEnd[] ends)
        {
            int turns = 0;
            Until("some turns", () => ++turns == times, ends);
            return turns;
        }

        public void Dispose()
        {
            Client.Dispose();
            Server.Dispose();
        }
    }
}
