using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using Mirror;

namespace Whitewater.Tests
{
    /// <summary>A transport for Mirror that serves, and some that connect, updated as Mirror does it. Keeps what they are told.</summary>
    public abstract class Rig : IDisposable
    {
        internal sealed class Heard
        {
            internal byte[] Data;
            internal int Channel;
        }

        internal static readonly int[] Both = { Channels.Reliable, Channels.Unreliable };

        internal readonly WhitewaterTransport Server = Make();
        internal readonly List<Heard> ServerHeard = new List<Heard>();
        internal readonly List<string> ServerErrors = new List<string>();
        internal readonly List<int> Connections = new List<int>();

        internal readonly WhitewaterTransport[] Clients;
        internal readonly List<Heard>[] ClientHeard;
        internal readonly List<string>[] ClientErrors;
        internal readonly int[] ClientConnects, ClientDisconnects;

        internal Rig(int clients)
        {
            Server.Port = FreePort();
            Server.OnServerConnectedWithAddress = (id, address) => Connections.Add(id);
            Server.OnServerDisconnected = id => Check.That(Connections.Remove(id), "it was connected: " + id);
            Server.OnServerDataReceived = (id, segment, channel) =>
            {
                Check.That(Connections.Contains(id), "it is connected: " + id);
                ServerHeard.Add(new Heard { Data = segment.ToArray(), Channel = channel });
            };
            Server.OnServerError = (id, error, text) => ServerErrors.Add(error + ": " + text);
            Clients = Enumerable.Range(0, clients).Select(_ => Make()).ToArray();
            ClientHeard = Clients.Select(_ => new List<Heard>()).ToArray();
            ClientErrors = Clients.Select(_ => new List<string>()).ToArray();
            ClientConnects = new int[clients];
            ClientDisconnects = new int[clients];
            for (int i = 0; i < clients; i++)
            {
                int which = i;
                Clients[i].Port = Server.Port;
                Clients[i].OnClientConnected = () => ClientConnects[which]++;
                Clients[i].OnClientDisconnected = () => ClientDisconnects[which]++;
                Clients[i].OnClientDataReceived = (segment, channel) => ClientHeard[which].Add(new Heard { Data = segment.ToArray(), Channel = channel });
                Clients[i].OnClientError = (error, text) => ClientErrors[which].Add(error + ": " + text);
            }
        }

        private static WhitewaterTransport Make()
        {
            return new WhitewaterTransport { Secret = string.Concat(Enumerable.Repeat("07", 32)) };
        }

        private static ushort FreePort()
        {
            using (var socket = new Socket(AddressFamily.InterNetworkV6, SocketType.Dgram, ProtocolType.Udp))
            {
                socket.Bind(new IPEndPoint(IPAddress.IPv6Any, 0));
                return (ushort)((IPEndPoint)socket.LocalEndPoint).Port;
            }
        }

        /// <summary>Lets a silent peer time out after so many ms.</summary>
        internal void SetTimeout(int milliseconds)
        {
            Server.Timeout = Clients[0].Timeout = milliseconds;
        }

        internal void Update()
        {
            foreach (WhitewaterTransport client in Clients)
            {
                client.ClientEarlyUpdate();
                client.ClientLateUpdate();
            }
            Server.ServerEarlyUpdate();
            Server.ServerLateUpdate();
        }

        internal void Updates(int count)
        {
            for (int i = 0; i < count; i++)
            {
                Update();
                Thread.Sleep(1);
            }
        }

        internal void Until(string what, Func<bool> isDone)
        {
            var waited = Stopwatch.StartNew();
            while (!isDone())
            {
                Check.That(waited.Elapsed < TimeSpan.FromSeconds(60), what);
                Updates(1);
            }
        }

        internal void Connect()
        {
            foreach (WhitewaterTransport client in Clients)
            {
                client.ClientConnect("127.0.0.1");
                Until("it connects", client.ClientConnected);
            }
            Until("the server knows all", () => Connections.Count == Clients.Length);
        }

        internal void Start()
        {
            Server.ServerStart();
            Connect();
        }

        internal void AllAreGone()
        {
            Until("all are gone", () => Connections.Count == 0 && !Clients.Any(client => client.ClientConnected()));
        }

        /// <summary>Sends one message from a client, and waits for it.</summary>
        internal void ToServer(byte[] message, int channel, int client = 0)
        {
            int before = ServerHeard.Count;
            Clients[client].ClientSend(new ArraySegment<byte>(message), channel);
            Until("it arrives", () => ServerHeard.Count > before);
            Same(message, channel, ServerHeard, before);
        }

        /// <summary>Sends one message to a client, and waits for it.</summary>
        internal void ToClient(ArraySegment<byte> message, int channel, int client = 0)
        {
            int before = ClientHeard[client].Count;
            Server.ServerSend(Connections[client], message, channel);
            Until("it arrives", () => ClientHeard[client].Count > before);
            Same(message.ToArray(), channel, ClientHeard[client], before);
        }

        internal static void Same(byte[] message, int channel, List<Heard> heard, int which)
        {
            Check.Equal(which + 1, heard.Count);
            Check.That(message.SequenceEqual(heard[which].Data), "every byte of " + message.Length);
            Check.Equal(channel, heard[which].Channel);
        }

        internal static byte[] Numbered(int length, int first = 0)
        {
            return Enumerable.Range(first, length).Select(number => (byte)number).ToArray();
        }

        public void Dispose()
        {
            foreach (WhitewaterTransport client in Clients)
            {
                client.Shutdown();
            }
            Server.Shutdown();
        }
    }
}
