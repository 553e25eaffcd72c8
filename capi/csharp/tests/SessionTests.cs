using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;

namespace Whitewater.Tests
{
    /// <summary>Both ends in C#, over loopback.</summary>
    public sealed class SessionTests
    {
        private static readonly byte[] Hello = Encoding.UTF8.GetBytes("hello");

        [Test]
        public void Messages_and_datagrams_are_raised_with_their_channel_at_both_ends()
        {
            using (var pair = new Pair())
            {
                var heard = new List<string>();
                pair.Server.Message += (session, channel, message) =>
                {
                    Check.Equal(pair.Session, session);
                    heard.Add("server " + channel + " " + Encoding.UTF8.GetString(message.ToArray()));
                };
                pair.Server.Datagram += (session, datagram) => heard.Add("server datagram " + datagram.Length);
                pair.Client.Message += (channel, message) => heard.Add("client " + channel + " " + message.Length);
                pair.Client.Datagram += datagram => heard.Add("client datagram " + datagram.Length);
                Check.Equal(SendResult.Sent, pair.Client.Send(Pair.Ordered, Hello));
                Check.Equal(SendResult.Sent, pair.Client.Send(Pair.Unreliable, Hello));
                Check.Equal(SendResult.Sent, pair.Client.SendDatagram(Hello));
                Check.Equal(SendResult.Sent, pair.Server.Send(pair.Session, Pair.Ordered, Hello.AsSpan(0, 4)));
                Check.Equal(SendResult.Sent, pair.Server.Send(pair.Session, Pair.Unreliable, ReadOnlySpan<byte>.Empty));
                Check.Equal(SendResult.Sent, pair.Server.SendDatagram(pair.Session, Hello.AsSpan(1)));
                pair.Until("all arrive", () => heard.Count == 6);
                heard.Sort(StringComparer.Ordinal);
                Check.Equal(
                    "client 0 4, client 1 0, client datagram 4, server 0 hello, server 1 hello, server datagram 5",
                    string.Join(", ", heard));
                pair.Until("that is known", () => pair.Client.IsDelivered(Pair.Ordered) && pair.Server.IsDelivered(pair.Session, Pair.Ordered));
                Check.Equal(pair.Server.LocalAddress, pair.Client.PeerAddress);
                Check.Equal(pair.Client.LocalAddress.Split(':').Last(), pair.Server.PeerAddress(pair.Session).Split(':').Last());
                Check.That(pair.Server.TryGetStats(pair.Session, out SessionStats stats) && stats.Rtt > TimeSpan.Zero, "it is measured");
            }
        }

        [Test]
        public void A_message_of_a_mebibyte_arrives_and_a_longer_one_is_refused()
        {
            using (var pair = new Pair())
            {
                var message = new byte[1 << 20];
                new Random(1).NextBytes(message);
                byte[] received = null;
                pair.Server.Message += (session, channel, bytes) => received = bytes.ToArray();
                Check.Equal(SendResult.TooLong, pair.Client.Send(Pair.Ordered, new byte[(1 << 20) + 1]));
                Check.Equal(SendResult.TooLong, pair.Client.Send(Pair.Unreliable, new byte[1200]));
                Check.Equal(SendResult.TooLong, pair.Client.SendDatagram(new byte[1200]));
                Check.Equal(SendResult.Sent, pair.Client.Send(Pair.Ordered, message));
                pair.Until("it arrives", () => received != null);
                Check.That(message.SequenceEqual(received), "every byte of it");
                foreach (int length in new[] { Options.UnreliableMax, 1, 0 })
                {
                    received = null;
                    Check.Equal(SendResult.Sent, pair.Client.Send(Pair.Unreliable, message.AsSpan(0, length)));
                    pair.Until("it arrives", () => received != null);
                    Check.Equal(length, received.Length);
                }
            }
        }

        [Test]
        public void A_full_channel_refuses_messages_until_it_is_writable()
        {
            using (var pair = new Pair())
            {
                int sent = 0, received = 0, writable = 0;
                pair.Client.Writable += () => writable++;
                pair.Server.Message += (session, channel, message) => received++;
                while (pair.Client.Send(Pair.Ordered, new byte[1000]) == SendResult.Sent)
                {
                    sent++;
                }
                Check.That(sent > 100 && sent < 1000, "there is room for some: " + sent);
                pair.Until("there is room again", () => writable > 0);
                Check.Equal(SendResult.Sent, pair.Client.Send(Pair.Ordered, Hello));
                pair.Until("all arrive", () => received == sent + 1);
            }
        }

        [Test]
        public void A_server_that_asks_hears_the_clients_bytes_and_its_own_reach_the_client_it_admits()
        {
            ServerOptions options = Pair.ServerOptions();
            options.Ask = true;
            ClientOptions clientOptions = Pair.ClientOptions();
            clientOptions.User = Hello;
            byte[] asked = null;
            using (var pair = new Pair(options, clientOptions, server => server.Requested += (session, user) =>
            {
                asked = user.ToArray();
                Check.That(!server.Admit(default(SessionId)), "nobody else asks");
                Check.Throws<ArgumentException>(() => server.Admit(session, new byte[257]));
                Check.That(server.Admit(session, Encoding.UTF8.GetBytes("seat 4")), "it still asks");
                Check.That(!server.Admit(session), "and not any more");
            }))
            {
                Check.Bytes(Hello, asked);
                Check.Bytes(Encoding.UTF8.GetBytes("seat 4"), pair.Client.User());
                Check.Bytes(Hello, pair.Server.User(pair.Session));
                Check.That(pair.Server.User(default(SessionId)) == null, "nobody else says anything");
            }
        }

        [Test]
        public void A_rejected_client_learns_the_code_and_the_bytes()
        {
            ServerOptions options = Pair.ServerOptions();
            options.Ask = true;
            using (var server = new WhitewaterServer("127.0.0.1:0", options))
            using (var client = new WhitewaterClient(server.LocalAddress, Pair.ClientOptions()))
            {
                Disconnect end = null;
                server.Requested += (session, user) =>
                {
                    Check.Throws<ArgumentOutOfRangeException>(() => server.Reject(session, WhitewaterEnd.ReservedCodes));
                    Check.That(server.Reject(session, 9, Hello), "it asks");
                };
                client.Disconnected += how => end = how;
                Pair.Until("it is rejected", () => end != null, server, client);
                Check.Equal(CloseReason.Rejected, end.Reason);
                Check.Equal(9, (int)end.Code);
                Check.Bytes(Hello, end.Rejection);
                Check.That(end.Description.Contains("code 9"), end.Description);
            }
        }

        [Test]
        public void A_client_that_closes_takes_leave_with_a_text_after_its_last_message()
        {
            using (var pair = new Pair())
            {
                var heard = new List<string>();
                pair.Server.Message += (session, channel, message) => heard.Add("message");
                pair.Server.Disconnected += (session, end) => heard.Add(end.Reason + " " + end.Code + " " + end.Text + " " + end.IsUndelivered);
                Disconnect here = null;
                pair.Client.Disconnected += end => here = end;
                pair.Client.Send(Pair.Ordered, Hello);
                pair.Client.Close(42, "dinner: \u00fc");
                Check.Equal(SendResult.Closed, pair.Client.Send(Pair.Ordered, Hello));
                pair.Until("both are told", () => heard.Count == 2 && here != null);
                Check.Equal("message, Peer 42 dinner: \u00fc False", string.Join(", ", heard));
                Check.Equal("Local 42  False", here.Reason + " " + here.Code + " " + here.Text + " " + here.IsUndelivered);
                Check.Equal(0, pair.Server.ClientCount);
            }
        }

        [Test]
        public void A_kick_from_within_a_message_is_the_last_that_is_heard_of_the_client()
        {
            using (var pair = new Pair())
            {
                int messages = 0;
                Disconnect here = null, there = null;
                pair.Server.Message += (session, channel, message) =>
                {
                    messages++;
                    pair.Server.Kick(session, 8, "no cheating");
                    pair.Server.Kick(session, 9); // too late, and harmless
                };
                pair.Server.Disconnected += (session, end) => here = end;
                pair.Client.Disconnected += end => there = end;
                for (int i = 0; i < 10; i++)
                {
                    pair.Client.Send(Pair.Ordered, Hello);
                }
                pair.Until("both are told", () => here != null && there != null);
                Check.Equal(1, messages);
                Check.Equal("Local 8", here.Reason + " " + here.Code);
                Check.Equal("Peer 8 no cheating", there.Reason + " " + there.Code + " " + there.Text);
                Check.That(there.Description.Contains("closed"), there.Description);
            }
        }

        [Test]
        public void A_broadcast_reaches_all_and_one_with_an_exception_all_others()
        {
            using (var pair = new Pair())
            using (var other = new WhitewaterClient(pair.Server.LocalAddress, Pair.ClientOptions()))
            {
                int first = 0, second = 0;
                Pair.Until("the other is connected", () => pair.Server.ClientCount == 2 && other.IsConnected, pair.Server, pair.Client, other);
                SessionId last = pair.Session;
                var sessions = new SessionId[3];
                Check.Equal(2, pair.Server.Clients(sessions));
                Check.That(sessions[0] != sessions[1] && sessions.Contains(last) && sessions[2] == default(SessionId), "both are listed");
                Check.Equal(2, pair.Server.Clients(sessions.AsSpan(0, 1)));
                pair.Client.Message += (channel, message) => first += message.Length;
                other.Message += (channel, message) => second += message.Length;
                Check.Equal(SendResult.Sent, pair.Server.Broadcast(Pair.Ordered, Hello, out int full));
                Check.Equal(0, full);
                Check.Equal(SendResult.Sent, pair.Server.BroadcastExcept(last, Pair.Ordered, Hello.AsSpan(0, 1), out full));
                Check.Equal(SendResult.TooLong, pair.Server.Broadcast(Pair.Unreliable, new byte[1200], out full));
                Pair.Until("they arrive", () => first == 6 && second == 5, pair.Server, pair.Client, other);
                SendResult result;
                do
                {
                    result = pair.Server.Broadcast(Pair.Ordered, new byte[1000], out full);
                }
                while (result == SendResult.Sent);
                Check.Equal(SendResult.Full, result);
                Check.Equal(2, full);
            }
        }

        [Test]
        public void A_stream_carries_bytes_and_a_sequenced_channel_the_newest_message()
        {
            ServerOptions options = Pair.ServerOptions();
            ClientOptions clientOptions = Pair.ClientOptions();
            options.Channels = clientOptions.Channels = new[]
            {
                ChannelOptions.Stream,
                ChannelOptions.Sequenced,
                new ChannelOptions(ChannelKind.Unordered, Carrier.Packets, 5000),
            };
            using (var pair = new Pair(options, clientOptions))
            {
                var lengths = new int[3];
                pair.Server.Message += (session, channel, message) => lengths[channel] += message.Length;
                for (int i = 0; i < 100; i++)
                {
                    Check.Equal(SendResult.Sent, pair.Client.Send(0, Hello));
                }
                Check.Equal(SendResult.Sent, pair.Client.Send(1, Hello));
                Check.Equal(SendResult.Sent, pair.Client.Send(2, new byte[5000]));
                Check.Equal(SendResult.TooLong, pair.Client.Send(2, new byte[5001]));
                pair.Until("all arrive", () => lengths[0] == 500 && lengths[1] == 5 && lengths[2] == 5000);
            }
        }

        [Test]
        public void A_client_verifies_the_server_by_its_public_key()
        {
            byte[] secret = Pair.Fill(3);
            var options = new ServerOptions { Suite = Suite.HybridKey, ServerKey = secret };
            var right = new ClientOptions { Suite = Suite.HybridKey, ServerKey = Options.PublicKey(secret) };
            var wrong = new ClientOptions { Suite = Suite.HybridKey, ServerKey = Options.PublicKey(Pair.Fill(4)) };
            using (var pair = new Pair(options, right))
            using (var stranger = new WhitewaterClient(pair.Server.LocalAddress, wrong))
            {
                bool isIn = false;
                stranger.Connected += () => isIn = true;
                Pair.CountPumps(200, pair.Server, pair.Client, stranger);
                Check.That(!isIn && pair.Client.IsConnected, "only one of them");
                byte[] ticket = null;
                pair.Until("there is a ticket", () => (ticket = pair.Client.TakeTicket()).Length > 0);
                Check.That(ticket.Length <= 64, "a short one");
                right.Ticket = ticket;
                pair.Client.Close();
                using (var again = new WhitewaterClient(pair.Server.LocalAddress, right))
                {
                    Pair.Until("it is back", () => again.IsConnected, pair.Server, again);
                }
            }
        }

        [Test]
        public void A_client_with_other_channels_is_denied_and_the_reason_is_in_words()
        {
            ClientOptions options = Pair.ClientOptions();
            options.Channels = new[] { ChannelOptions.Ordered };
            using (var server = new WhitewaterServer("127.0.0.1:0", Pair.ServerOptions()))
            using (var client = new WhitewaterClient(server.LocalAddress, options))
            {
                Disconnect end = null;
                client.Disconnected += how => end = how;
                Pair.Until("it is denied", () => end != null, server, client);
                Check.Equal(CloseReason.Denied, end.Reason);
                Check.That(end.Description.Contains("channel"), end.Description);
            }
        }

        [Test]
        public void Options_of_a_server_limit_the_sessions_of_an_address()
        {
            ServerOptions options = Pair.ServerOptions();
            options.SessionsPerAddress = 2;
            options.Timeout = TimeSpan.FromSeconds(60);
            options.Keepalive = TimeSpan.FromSeconds(10);
            options.Repairs = Repairs.Within(80);
            options.MaxSessions = 100;
            using (var pair = new Pair(options))
            using (var second = new WhitewaterClient(pair.Server.LocalAddress, Pair.ClientOptions()))
            using (var third = new WhitewaterClient(pair.Server.LocalAddress, Pair.ClientOptions()))
            {
                Disconnect end = null;
                second.Disconnected += how => end = how;
                third.Disconnected += how => end = how;
                Pair.Until("one of them is refused", () => end != null, pair.Server, pair.Client, second, third);
                Check.Equal(CloseReason.Denied, end.Reason);
                Check.Equal(2, pair.Server.ClientCount);
            }
        }

        [Test]
        public void A_matchmaker_in_CSharp_makes_tokens_and_the_server_learns_what_is_in_them()
        {
            var order = new TokenOrder { ProtocolId = 7, ServerId = 3, KeyId = 2, ClientId = 42, MatchId = new byte[16], User = Hello };
            order.RoutingToken = new byte[8];
            ServerOptions options = Pair.ServerOptions();
            options.RoutingTokenLength = 8; // so that only clients with such a token come in
            options.Proxies = "proxy";
            Check.Throws<WhitewaterException>(() => new WhitewaterServer("127.0.0.1:0", options));
            options.Proxies = "192.0.2.1,2001:db8::1"; // from where nobody sends
            options.Psk = null;
            options.TokenKey = order.TokenKey = Pair.Fill(9);
            options.ServerId = 3;
            options.KeyId = 2;
            order.MatchId[15] = 5;
            using (var server = new WhitewaterServer("127.0.0.1:0", options))
            {
                Pass pass = null;
                server.Connected += session => pass = server.Pass(session);
                Check.Throws<WhitewaterException>(() => order.Mint()); // without an address
                order.Addresses = server.LocalAddress;
                Check.Throws<WhitewaterException>(() => new TokenOrder { Addresses = order.Addresses, ServerId = 3 }.Mint());
                Check.Throws<ArgumentException>(() => new TokenOrder { MatchId = Hello }.Mint());
                Check.Throws<ArgumentException>(() => new TokenOrder { TokenKey = Hello }.Mint());
                while (pass == null) // a token of the second in which the server started may be refused
                {
                    byte[] token = order.Mint();
                    Check.That(token.Length <= 577, "it is short");
                    bool isOver = false;
                    using (var client = new WhitewaterClient(new ClientOptions { ProtocolId = 7, Token = token, Channels = Pair.Channels() }))
                    {
                        client.Disconnected += end => isOver = true;
                        Pair.Until("it comes in or not", () => isOver || pass != null, server, client);
                    }
                }
                Check.Equal(42UL, pass.ClientId);
                Check.Bytes(order.MatchId, pass.MatchId);
                Check.Bytes(Hello, pass.User);
            }
        }

        [Test]
        public void A_redirected_client_gets_the_token_for_the_other_server()
        {
            using (var pair = new Pair())
            {
                byte[] token = Peer.Token("127.0.0.1:9", "right");
                byte[] received = null;
                pair.Client.Redirected += bytes => received = bytes;
                Check.Throws<ArgumentException>(() => pair.Server.Redirect(pair.Session, Hello));
                Check.Equal(SendResult.Closed, pair.Server.Redirect(default(SessionId), token));
                Check.Equal(SendResult.Sent, pair.Server.Redirect(pair.Session, token));
                pair.Until("it is told", () => received != null);
                Check.Bytes(token, received);
            }
        }

        [Test]
        public void A_client_that_changes_networks_keeps_its_session_and_the_server_is_told()
        {
            using (var pair = new Pair())
            {
                SessionId moved = default(SessionId);
                int received = 0;
                string before = pair.Server.PeerAddress(pair.Session);
                pair.Server.Moved += session => moved = session;
                pair.Server.Message += (session, channel, message) => received++;
                pair.Client.PathChanged();
                pair.Client.Send(Pair.Ordered, Hello);
                pair.Until("it has moved", () => moved == pair.Session && received == 1);
                Check.That(pair.Server.PeerAddress(pair.Session) != before, "to another port");
            }
        }

        [Test]
        public void A_shutdown_waits_until_everything_has_arrived()
        {
            using (var pair = new Pair())
            {
                var received = new List<int>();
                bool isOver = false;
                pair.Client.Message += (channel, message) => received.Add(message.Length);
                pair.Client.Disconnected += end => isOver = end.Code == 3;
                for (int i = 0; i < 100; i++)
                {
                    pair.Server.Send(pair.Session, Pair.Ordered, new byte[i]);
                }
                var pump = new System.Threading.Thread(() => Pair.Until("it is over", () => isOver, pair.Client));
                pump.Start();
                pair.Server.Shutdown(3);
                pump.Join();
                Check.That(received.SequenceEqual(Enumerable.Range(0, 100)), "all in order: " + received.Count);
            }
        }
    }
}
