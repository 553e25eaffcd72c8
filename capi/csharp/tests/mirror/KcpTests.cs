// kcp2k's test cases for one client, restated for this transport: kcp2k/kcp2k.Tests/ClientServerTests.cs at commit
// 66efda6686f649838d42f078fbaabf56ac449de4 of github.com/MirrorNetworking/kcp2k, which has the MIT licence. Above each test is the case that it restates.
using System;
using System.Linq;
using System.Threading;
using Mirror;

namespace Whitewater.Tests
{
    public sealed class KcpTests : Rig
    {
        public KcpTests() : base(1)
        {
        }

        private WhitewaterTransport Client => Clients[0];

        // ServerUpdateOnce, UpdateBeforeConnected
        [Test]
        public void Updates_before_anything_has_started_do_nothing()
        {
            Updates(10);
            Check.That(!Server.ServerActive() && !Client.ClientConnected(), "nothing has started");
        }

        // ServerStartStop, ServerStartStopMultiple
        [Test]
        public void A_server_starts_and_stops_ten_times()
        {
            for (int i = 0; i < 10; i++)
            {
                Server.ServerStart();
                Check.That(Server.ServerActive(), "it runs");
                Server.ServerStop();
                Check.That(!Server.ServerActive(), "it does not");
            }
        }

        // ConnectWithoutServer
        [Test]
        public void A_client_without_a_server_ends_with_a_timeout()
        {
            SetTimeout(2000);
            Client.ClientConnect("127.0.0.1");
            Until("it gives up", () => ClientDisconnects[0] == 1);
            Check.That(ClientErrors[0].Single().StartsWith("Timeout"), ClientErrors[0][0]);
            Check.Equal(0, ClientConnects[0]);
        }

        // ConnectAndDisconnectClient, ConnectAndDisconnectClientMultipleTimes, ClientVoluntaryDisconnect
        [Test]
        public void A_client_connects_and_disconnects_ten_times()
        {
            Server.ServerStart();
            for (int i = 1; i <= 10; i++)
            {
                Connect();
                Check.Equal(i, ClientConnects[0]);
                Client.ClientDisconnect();
                AllAreGone();
                Check.Equal(i, ClientDisconnects[0]);
            }
            Check.Equal(0, ClientErrors[0].Count + ServerErrors.Count);
        }

        // ConnectInvalidHostname_CallsOnDisconnected
        [Test]
        public void An_invalid_host_name_ends_with_an_error()
        {
            Client.ClientConnect("asdasdasd.invalid");
            Updates(10);
            Check.That(!Client.ClientConnected(), "it is not connected");
            Check.Equal(1, ClientDisconnects[0]);
            Check.That(ClientErrors[0].Single().StartsWith("DnsResolve"), ClientErrors[0][0]);
        }

        // ClientToServerMessage, ClientToServerTwoMessages, ClientToServerSlightlySmallerThanMTUSizedMessage
        [Test]
        public void Messages_to_the_server_arrive_on_both_channels()
        {
            Start();
            foreach (int channel in Both)
            {
                ToServer(new byte[] { 1, 2 }, channel);
                ToServer(new byte[] { 3, 4 }, channel);
                ToServer(Numbered(Options.UnreliableMax - 6), channel);
            }
        }

        // ClientToServerTwoMixedMessages
        [Test]
        public void Messages_to_the_server_on_different_channels_mix()
        {
            Start();
            ToServer(new byte[] { 3, 4 }, Channels.Unreliable);
            ToServer(new byte[] { 5, 6 }, Channels.Reliable);
        }

        // ClientToServerEmptyMessage, ServerToClientReliableEmptyMessage
        [Test]
        public void An_empty_message_is_refused()
        {
            Start();
            foreach (int channel in Both)
            {
                Client.ClientSend(new ArraySegment<byte>(new byte[0]), channel);
                Server.ServerSend(Connections[0], new ArraySegment<byte>(new byte[0]), channel);
            }
            ToServer(new byte[] { 1 }, Channels.Reliable); // nothing has come before
            ToClient(new ArraySegment<byte>(new byte[] { 1 }), Channels.Reliable);
            Check.That(ClientErrors[0].Concat(ServerErrors).All(error => error.StartsWith("InvalidSend")), "all are told");
            Check.Equal(4, ClientErrors[0].Count + ServerErrors.Count);
        }

        // ClientToServerReliableMaxSizedMessage, ClientToServerUnreliableMaxSizedMessage, and both ServerToClient..
        [Test]
        public void The_longest_messages_arrive()
        {
            Start();
            foreach (int channel in Both)
            {
                ToServer(Numbered(Client.GetMaxPacketSize(channel)), channel);
                ToClient(new ArraySegment<byte>(Numbered(Server.GetMaxPacketSize(channel))), channel);
            }
            Check.Equal(1 << 20, Client.GetMaxPacketSize(Channels.Reliable));
            Check.Equal(Options.UnreliableMax, Client.GetBatchThreshold(Channels.Reliable));
        }

        // ClientToServerTooLargeReliableMessage, ClientToServerTooLargeUnreliableMessage, and both ServerToClient..
        [Test]
        public void Longer_messages_are_refused()
        {
            Start();
            int reliable = Client.GetMaxPacketSize(Channels.Reliable) + 1, unreliable = Client.GetMaxPacketSize(Channels.Unreliable) + 50;
            Client.ClientSend(new ArraySegment<byte>(new byte[reliable]), Channels.Reliable);
            Client.ClientSend(new ArraySegment<byte>(new byte[unreliable]), Channels.Unreliable);
            Server.ServerSend(Connections[0], new ArraySegment<byte>(new byte[reliable]), Channels.Reliable);
            Server.ServerSend(Connections[0], new ArraySegment<byte>(new byte[unreliable]), Channels.Unreliable);
            Check.That(ClientErrors[0].Concat(ServerErrors).All(error => error.StartsWith("InvalidSend")), "all are told");
            Check.Equal(4, ClientErrors[0].Count + ServerErrors.Count);
            ToServer(new byte[] { 1 }, Channels.Reliable);
            ToClient(new ArraySegment<byte>(new byte[] { 1 }), Channels.Reliable);
        }

        // ClientToServerMultipleReliableMaxSizedMessagesAtOnce
        [Test]
        public void Ten_of_the_longest_reliable_messages_sent_at_once_all_arrive_in_order()
        {
            Start();
            byte[][] messages = Enumerable.Range(0, 10).Select(i => Numbered(Client.GetMaxPacketSize(Channels.Reliable), i)).ToArray();
            foreach (byte[] message in messages)
            {
                Client.ClientSend(new ArraySegment<byte>(message), Channels.Reliable);
            }
            Until("all arrive", () => ServerHeard.Count == messages.Length);
            for (int i = 0; i < messages.Length; i++)
            {
                Check.That(messages[i].SequenceEqual(ServerHeard[i].Data), "message " + i);
                Check.Equal(Channels.Reliable, ServerHeard[i].Channel);
            }
        }

        // ClientToServerMultipleUnreliableMaxSizedMessagesAtOnce
        [Test]
        public void Ten_of_the_longest_unreliable_messages_sent_at_once_all_arrive_without_loss()
        {
            Start();
            byte[][] messages = Enumerable.Range(0, 10).Select(i => Numbered(Client.GetMaxPacketSize(Channels.Unreliable), i)).ToArray();
            foreach (byte[] message in messages)
            {
                Client.ClientSend(new ArraySegment<byte>(message), Channels.Unreliable);
            }
            Until("all arrive", () => ServerHeard.Count == messages.Length);
            Check.That(messages.All(message => ServerHeard.Any(heard => message.SequenceEqual(heard.Data))), "each of them");
        }

        // ServerToClientReliableMessage, ServerToClientUnreliableMessage, ServerToClientTwoMessages, ServerToClientTwoReliableMessages,
        // ServerToClientSlightlySmallerThanMTUSizedMessage
        [Test]
        public void Messages_to_a_client_arrive_on_both_channels()
        {
            Start();
            foreach (int channel in Both)
            {
                ToClient(new ArraySegment<byte>(new byte[] { 3, 4 }), channel);
                ToClient(new ArraySegment<byte>(new byte[] { 5, 6 }), channel);
                ToClient(new ArraySegment<byte>(Numbered(Options.UnreliableMax - 6)), channel);
            }
        }

        // ServerToClientReliableMessage_RespectsOffset, ServerToClientUnreliableMessage_RespectsOffset
        [Test]
        public void A_part_of_an_array_is_sent_from_its_offset()
        {
            Start();
            foreach (int channel in Both)
            {
                ToClient(new ArraySegment<byte>(new byte[] { 0xff, 3, 4, 0xff }, 1, 2), channel);
            }
        }

        // ServerToClientTwoMixedMessages
        [Test]
        public void Messages_to_a_client_on_different_channels_mix()
        {
            Start();
            ToClient(new ArraySegment<byte>(new byte[] { 3, 4 }), Channels.Unreliable);
            ToClient(new ArraySegment<byte>(new byte[] { 5, 6 }), Channels.Reliable);
        }

        // ClientInvoluntaryDisconnect
        [Test]
        public void A_client_that_the_server_disconnects_is_told()
        {
            Start();
            Server.ServerDisconnect(Connections[0]);
            AllAreGone();
            Check.Equal(1, ClientDisconnects[0]);
            Check.Equal(0, ClientErrors[0].Count + ServerErrors.Count);
        }

        // DisconnectAndCloseImmediately
        [Test]
        public void A_disconnect_leaves_at_once_even_with_a_full_queue()
        {
            Start();
            for (int i = 0; i < 50; i++)
            {
                Server.ServerSend(Connections[0], new ArraySegment<byte>(new byte[Server.MaxMessage]), Channels.Reliable);
            }
            Server.ServerDisconnect(Connections[0]);
            Server.ServerStop(); // and nobody updates it any more
            Until("the client is told", () => !Client.ClientConnected());
            Check.Equal(1, ClientDisconnects[0]);
        }

        // ServerGetClientAddress
        [Test]
        public void The_address_of_a_client_is_without_a_port_and_as_IPv4_if_it_is_that()
        {
            string told = null;
            Server.OnServerConnectedWithAddress += (id, address) => told = address;
            Start();
            Check.Equal("127.0.0.1", Server.ServerGetClientAddress(Connections[0]));
            Check.Equal("127.0.0.1", told);
            Check.Equal("", Server.ServerGetClientAddress(99));
        }

        // TimeoutDisconnects, and DeadLink_Fake: what waits to be acknowledged by a silent peer changes nothing
        [Test]
        public void A_silent_peer_times_out_at_both_ends()
        {
            SetTimeout(2000);
            Start();
            Server.ServerSend(Connections[0], new ArraySegment<byte>(new byte[100]), Channels.Reliable);
            int silent = Environment.TickCount;
            while (Connections.Count > 0)
            {
                Check.That(Environment.TickCount - silent < 60000, "it times out");
                Server.ServerEarlyUpdate();
                Server.ServerLateUpdate();
                Thread.Sleep(1);
            }
            Server.ServerStop();
            Until("the client as well", () => !Client.ClientConnected());
            Check.That(ServerErrors.Single().StartsWith("Timeout"), ServerErrors[0]);
            Check.Equal(1, ClientDisconnects[0]);
        }

        // TimeoutIsResetByMessage
        [Test]
        public void A_message_proves_that_a_peer_is_there()
        {
            SetTimeout(5000);
            foreach (int channel in Both)
            {
                Start();
                Thread.Sleep(Client.Timeout / 2);
                ToServer(new byte[1], channel, 0);
                ToClient(new ArraySegment<byte>(new byte[1]), channel);
                Thread.Sleep(Client.Timeout / 2 + 1);
                Updates(4);
                Check.That(Client.ClientConnected() && Connections.Count == 1, "they are connected");
                Client.ClientDisconnect();
                AllAreGone();
                Server.ServerStop();
                ServerHeard.Clear();
                ClientHeard[0].Clear();
            }
        }

        // TimeoutIsResetByPing
        [Test]
        public void Pings_keep_a_quiet_connection()
        {
            SetTimeout(4000);
            Start();
            int start = Environment.TickCount;
            while (Environment.TickCount - start < Client.Timeout + 500)
            {
                Updates(5);
            }
            Check.That(Client.ClientConnected() && Connections.Count == 1, "they are connected");
        }

        // PingUpdatesRtt
        [Test]
        public void The_round_trip_is_measured_at_both_ends()
        {
            Start();
            Until("both have measured", () =>
                Client.Client.TryGetStats(out SessionStats here) && here.Rtt > TimeSpan.Zero &&
                Server.TryGetSession(Connections[0], out SessionId session) &&
                Server.Server.TryGetStats(session, out SessionStats there) && there.Rtt > TimeSpan.Zero);
        }

        // ChokeConnectionAutoDisconnects
        [Test]
        public void A_connection_for_which_too_much_waits_is_ended()
        {
            Start();
            int id = Connections[0];
            for (int i = 0; i < WhitewaterTransport.BacklogMax / Server.MaxMessage + 2; i++)
            {
                Server.ServerSend(id, new ArraySegment<byte>(new byte[Server.MaxMessage]), Channels.Reliable);
            }
            Check.That(ServerErrors.Count > 0 && ServerErrors[0].StartsWith("Congestion"), "it was too much");
            AllAreGone();
            Check.Equal(1, ClientDisconnects[0]);
        }

        // ClientToServerReliableInvalidCookie, ClientToServerUnreliableInvalidCookie: there is no cookie in each datagram here, but a tag over all of it
        [Test]
        public void A_changed_datagram_is_dropped_by_the_server()
        {
            Server.ServerStart();
            using (var relay = new Relay(Server.Port))
            {
                Client.Port = relay.Port;
                Client.ClientConnect("127.0.0.1");
                Until("it connects", () => Client.ClientConnected() && Connections.Count == 1);
                relay.Changes = true;
                foreach (int channel in Both)
                {
                    Client.ClientSend(new ArraySegment<byte>(new byte[] { 1, 2 }), channel);
                }
                Updates(100);
                Check.That(relay.Changed > 0 && ServerHeard.Count == 0, "what was changed has not arrived");
                relay.Changes = false;
                Until("the reliable one is sent again", () => ServerHeard.Count > 0);
                Check.Equal(Channels.Reliable, ServerHeard.Single().Channel);
            }
        }
    }
}
