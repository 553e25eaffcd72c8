using System;
using System.Linq;
using Mirror;

namespace Whitewater.Tests
{
    /// <summary>What the transport for Mirror promises beyond kcp2k's test cases.</summary>
    public sealed class TransportTests : Rig
    {
        public TransportTests() : base(1)
        {
        }

        private WhitewaterTransport Client => Clients[0];

        [Test]
        public void A_client_connects_by_a_Uri_of_the_server_and_by_no_other()
        {
            Server.ServerStart();
            Check.Throws<ArgumentException>(() => Client.ClientConnect(new Uri("kcp://127.0.0.1:1")));
            Check.Equal(Server.Port, (ushort)Server.ServerUri().Port);
            Client.Port = 1;
            Client.ClientConnect(new Uri(WhitewaterTransport.Scheme + "://127.0.0.1:" + Server.Port));
            Until("it connects", Client.ClientConnected);
            Client.ClientDisconnect();
            Client.Port = Server.Port;
            Client.ClientConnect("::1");
            Until("it connects by IPv6", Client.ClientConnected);
        }

        [Test]
        public void Ten_thousand_messages_each_way_allocate_nothing()
        {
            Start();
            int atServer = 0, atClient = 0, id = Connections[0];
            var message = new ArraySegment<byte>(new byte[100]);
            Server.OnServerDataReceived = (from, segment, channel) =>
            {
                atServer++;
                Server.ServerSend(from, segment, channel);
            };
            Client.OnClientDataReceived = (segment, channel) => atClient++;
            Action<int> exchange = count =>
            {
                atServer = atClient = 0;
                while (atClient < count)
                {
                    for (int i = 0; i < 20 && atServer < count; i++)
                    {
                        Client.ClientSend(message, i % 2);
                    }
                    Update();
                }
            };
            exchange(2000); // until everything is compiled
            long before = GC.GetAllocatedBytesForCurrentThread();
            exchange(10000);
            long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
            Check.That(atServer >= 10000, "they arrived");
            Check.Equal(0L, allocated);
        }

        [Test]
        public void A_disabled_transport_keeps_its_connections_and_raises_messages_when_it_is_enabled()
        {
            Start();
            Server.enabled = false;
            Client.ClientSend(new ArraySegment<byte>(new byte[] { 1 }), Channels.Reliable);
            Updates(100);
            Check.Equal(0, ServerHeard.Count);
            Server.enabled = true;
            Until("it arrives", () => ServerHeard.Count == 1);
        }

        [Test]
        public void Handlers_may_disconnect_and_stop()
        {
            Start();
            Server.OnServerDataReceived = (id, segment, channel) => Server.ServerDisconnect(id);
            Client.ClientSend(new ArraySegment<byte>(new byte[] { 1 }), Channels.Reliable);
            AllAreGone();
            Connect();
            Client.OnClientDataReceived = (segment, channel) => Client.ClientDisconnect();
            Server.ServerSend(Connections[0], new ArraySegment<byte>(new byte[] { 1 }), Channels.Reliable);
            AllAreGone();
            Check.Equal(2, ClientDisconnects[0]);
            Connect();
            Server.OnServerDataReceived = (id, segment, channel) => Server.ServerStop();
            Client.ClientSend(new ArraySegment<byte>(new byte[] { 1 }), Channels.Reliable);
            Until("the client is told", () => ClientDisconnects[0] == 3);
        }

        [Test]
        public void Without_a_secret_nothing_starts_and_the_error_says_what_to_set()
        {
            Server.Secret = Client.Secret = "";
            Check.That(Check.Throws<WhitewaterException>(Server.ServerStart).Message.Contains("psk"), "the secret is missing");
            Check.That(!Server.ServerActive(), "it has not started");
            Client.ClientConnect("127.0.0.1");
            Check.Equal(1, ClientDisconnects[0]);
            foreach (string secret in new[] { "07", new string('x', 64), new string('0', 63) })
            {
                Server.Secret = secret;
                Check.Throws<FormatException>(Server.ServerStart);
            }
            Check.That(Server.IsEncrypted && Server.EncryptionCipher == "ChaCha20-Poly1305", "it would be encrypted");
        }

        [Test]
        public void Options_that_code_changes_are_used()
        {
            Server.ServerStarting += options => options.ProtocolId = 9;
            Client.ClientConnecting += options => options.ProtocolId = 9;
            Start();
            ToServer(new byte[] { 1 }, Channels.Reliable);
        }
    }
}
