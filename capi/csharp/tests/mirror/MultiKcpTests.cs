// kcp2k's test cases for several clients, restated for this transport: kcp2k/kcp2k.Tests/MultiClientServerTests.cs at the commit that KcpTests.cs names. Above
// each test is the case that it restates.
using System;
using Mirror;

namespace Whitewater.Tests
{
    public sealed class MultiKcpTests : Rig
    {
        public MultiKcpTests() : base(2)
        {
        }

        // ConnectAndDisconnectClients, ConnectAndDisconnectClientsMultipleTimes
        [Test]
        public void Two_clients_connect_and_disconnect_ten_times()
        {
            Server.ServerStart();
            for (int i = 1; i <= 10; i++)
            {
                Connect();
                Check.That(Connections[0] != Connections[1], "each has a number");
                Clients[0].ClientDisconnect();
                Clients[1].ClientDisconnect();
                AllAreGone();
                Check.Equal(2 * i, ClientDisconnects[0] + ClientDisconnects[1]);
            }
        }

        // ClientsToServerMessage
        [Test]
        public void Messages_of_each_client_arrive_on_both_channels()
        {
            Start();
            foreach (int channel in Both)
            {
                ToServer(new byte[] { 1, 2 }, channel, 0);
                ToServer(new byte[] { 1, 2 }, channel, 1);
            }
        }

        // ServerToClientsReliableMessage, ServerToClientUnreliableMessage
        [Test]
        public void A_message_to_one_client_does_not_reach_the_other()
        {
            Start();
            int count = 0;
            foreach (int channel in Both)
            {
                ToClient(new ArraySegment<byte>(new byte[] { 3, 4 }), channel, 0);
                Check.Equal(count, ClientHeard[1].Count);
                ToClient(new ArraySegment<byte>(new byte[] { 3, 4 }), channel, 1);
                count++;
                Check.Equal(count, ClientHeard[0].Count);
            }
        }
    }
}
