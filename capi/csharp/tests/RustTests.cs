using System;
using System.Collections.Generic;
using System.Text;

namespace Whitewater.Tests
{
    /// <summary>Encrypted sessions with a program in Rust, through a network that loses one datagram in ten each way.</summary>
    public sealed class RustTests
    {
        private const int Count = 10000;

        [Test]
        public void A_client_gets_10000_messages_back_from_Rust_once_and_in_order_under_loss()
        {
            using (var server = new Peer("server"))
            using (var relay = new Peer("relay", server.ReadLine(), "1"))
            using (var client = new WhitewaterClient(relay.ReadLine(), Pair.ClientOptions()))
            {
                int sent = 0, received = 0, unreliable = 0;
                var datagrams = new HashSet<int>();
                Disconnect end = null;
                client.Message += (channel, message) =>
                {
                    if (channel == Pair.Ordered)
                    {
                        Check.Equal(received++, Number(message));
                    }
                    else
                    {
                        unreliable++;
                    }
                };
                client.Datagram += datagram => Check.That(datagrams.Add(Number(datagram)), "a datagram comes once");
                client.Disconnected += how => end = how;
                Pair.Until("all came back", () =>
                {
                    while (sent < Count && client.Send(Pair.Ordered, BitConverter.GetBytes(sent)) == SendResult.Sent)
                    {
                        if (sent % 100 == 0)
                        {
                            client.Send(Pair.Unreliable, BitConverter.GetBytes(sent));
                            client.SendDatagram(BitConverter.GetBytes(sent));
                        }
                        sent++;
                    }
                    return received == Count;
                }, client);
                Check.That(unreliable > 0 && unreliable <= Count / 100, "some unreliable messages arrive: " + unreliable);
                Check.That(datagrams.Count > 0 && datagrams.Count <= Count / 100, "some datagrams arrive: " + datagrams.Count);
                Check.That(client.TryGetStats(out SessionStats stats), "there are statistics");
                Check.That(stats.Rtt > TimeSpan.Zero && stats.BytesSent > 40000 && stats.BytesReceived > 40000, "they count");
                Check.That(stats.Loss > 0.02 && stats.Loss < 0.3, "the loss is seen: " + stats.Loss);

                Check.Equal(SendResult.Sent, client.Send(Pair.Ordered, Encoding.UTF8.GetBytes("kick me")));
                Pair.Until("it is kicked", () => end != null, client);
                Check.Equal(CloseReason.Peer, end.Reason);
                Check.Equal(8, (int)end.Code);
                Check.Equal("no cheating", end.Text);
                LosesOneInTen(relay.Stop());
            }
        }

        [Test]
        public void A_server_returns_10000_messages_to_Rust_once_and_in_order_under_loss()
        {
            using (var server = new WhitewaterServer("127.0.0.1:0", Pair.ServerOptions()))
            using (var relay = new Peer("relay", server.LocalAddress, "2"))
            using (var client = new Peer("client", relay.ReadLine(), Count.ToString()))
            {
                int received = 0;
                var unsent = new Queue<byte[]>();
                SessionId session = default(SessionId);
                bool isOver = false;
                server.Connected += id => session = id;
                server.Disconnected += (id, end) => isOver = true;
                server.Message += (id, channel, message) =>
                {
                    if (message.SequenceEqual(Encoding.UTF8.GetBytes("kick me")))
                    {
                        server.Kick(id, 8, "no cheating, please: \u00fc"); // from within a handler
                        return;
                    }
                    Check.Equal(received++, Number(message));
                    if (unsent.Count > 0 || server.Send(id, channel, message) == SendResult.Full)
                    {
                        unsent.Enqueue(message.ToArray());
                    }
                };
                Pair.Until("Rust has all", () =>
                {
                    while (unsent.Count > 0 && server.Send(session, Pair.Ordered, unsent.Peek()) == SendResult.Sent)
                    {
                        unsent.Dequeue();
                    }
                    return isOver && client.HasExited;
                }, server);
                Check.Equal(Count, received);
                Check.Equal(Count + " in order", client.ReadLine());
                Check.Equal("kicked with 8: no cheating, please: \u00fc", client.ReadLine());
                Check.Equal(0, client.Wait());
                LosesOneInTen(relay.Stop());
            }
        }

        [Test]
        public void A_token_of_the_matchmaker_lets_a_client_in_at_Rust_and_a_wrong_one_does_not()
        {
            using (var server = new Peer("server", "tokens"))
            {
                string address = server.ReadLine();
                Check.That(ComesIn(Peer.Token(address, "right")), "the right one lets it in");
                Check.That(!ComesIn(Peer.Token(address, "wrong")), "the wrong one does not");
            }
        }

        [Test]
        public void A_server_with_a_token_key_takes_its_matchmakers_tokens_and_no_others()
        {
            ServerOptions options = Pair.ServerOptions();
            options.Psk = null;
            options.TokenKey = Pair.Fill(5);
            options.ServerId = 9;
            options.KeyId = 1;
            using (var server = new WhitewaterServer("127.0.0.1:0", options))
            {
                byte[] token = Peer.Token(server.LocalAddress, "right");
                Pass pass = null;
                server.Connected += session => pass = server.Pass(session);
                Check.That(ComesIn(token, server), "the right one lets it in");
                Pair.Until("the server knows who it is", () => pass != null, server);
                Check.Equal(42UL, pass.ClientId);
                Check.Bytes(new byte[] { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, pass.MatchId);
                Check.Bytes(System.Text.Encoding.UTF8.GetBytes("gold"), pass.User);
                Check.That(pass.Created > 1700000000 && server.Pass(default(SessionId)) == null, "of that session only");
                Check.That(!ComesIn(token, server), "once");
                Check.That(!ComesIn(Peer.Token(server.LocalAddress, "wrong"), server), "a wrong one does not");
                using (var stranger = new WhitewaterClient(server.LocalAddress, Pair.ClientOptions()))
                {
                    Check.That(!Comes(stranger, server), "and nobody comes in without");
                }
            }
        }

        private static bool ComesIn(byte[] token, params WhitewaterEnd[] server)
        {
            using (var client = new WhitewaterClient(new ClientOptions { ProtocolId = 7, Token = token, Channels = Pair.Channels() }))
            {
                return Comes(client, server);
            }
        }

        private static bool Comes(WhitewaterClient client, params WhitewaterEnd[] server)
        {
            bool isIn = false, isOver = false;
            client.Connected += () => isIn = true;
            client.Disconnected += end => isOver = true;
            var ends = new List<WhitewaterEnd>(server) { client };
            Pair.Until("it comes in or not", () => isIn || isOver, ends.ToArray());
            return isIn;
        }

        private static int Number(ReadOnlySpan<byte> message)
        {
            Check.Equal(4, message.Length);
            return BitConverter.ToInt32(message.ToArray(), 0);
        }

        private static void LosesOneInTen(string says)
        {
            string[] words = says.Split(' '); // "lost 123 of 1234"
            double share = double.Parse(words[1]) / double.Parse(words[3]);
            Check.That(share > 0.05 && share < 0.15 && double.Parse(words[3]) > 100, says);
        }
    }
}
