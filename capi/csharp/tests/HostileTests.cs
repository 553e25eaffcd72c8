using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using System.Threading;

namespace Whitewater.Tests
{
    /// <summary>What a program or a stranger does wrong is an error or nothing, and never a crash.</summary>
    public sealed class HostileTests
    {
        private static readonly byte[] Hello = { 1, 2, 3 };

        [Test]
        public void Options_that_are_missing_or_wrong_are_errors_that_say_so()
        {
            Says(Error.Config, "`suite` is 0", new ServerOptions());
            Says(Error.Config, "`psk` is null", new ServerOptions { Suite = Suite.Psk });
            Says(Error.Config, "`psk` has only zeros", new ServerOptions { Suite = Suite.Psk, Psk = new byte[32] });
            Says(Error.Config, "`server_key` is null", new ServerOptions { Suite = Suite.Key });
            Says(Error.Misuse, "WW_SUITE_", new ServerOptions { Suite = (Suite)999 });
            Says(Error.Config, "timeout", new ServerOptions { Suite = Suite.Checked, Timeout = TimeSpan.FromMilliseconds(1) });
            Says(Error.Config, "channels", new ServerOptions { Suite = Suite.Checked, Channels = new ChannelOptions[Options.ChannelsMax + 1] });
            Says(Error.Misuse, "channels", new ServerOptions { Suite = Suite.Checked, Channels = new[] { new ChannelOptions((ChannelKind)9) } });
            Says(Error.Config, "server_id", new ServerOptions { Suite = Suite.Psk, TokenKey = Pair.Fill(1) });
            foreach (string address in new[] { "", "no address", "127.0.0.1", "192.0.2.1:1", "127.0.0.1:99999", "\ud800:1" })
            {
                Check.Throws<WhitewaterException>(() => new WhitewaterServer(address, Pair.ServerOptions()).Dispose());
            }
            Check.Throws<WhitewaterException>(() => new WhitewaterClient("no address", Pair.ClientOptions()).Dispose());
            Check.Throws<WhitewaterException>(() => new WhitewaterClient(new ClientOptions { Token = Hello }).Dispose());
            Check.Throws<WhitewaterException>(() => new WhitewaterClient(new ClientOptions()).Dispose());
            var long257 = new ClientOptions { Suite = Suite.Checked, User = new byte[257] };
            Check.Throws<WhitewaterException>(() => new WhitewaterClient("127.0.0.1:1", long257).Dispose());
        }

        private static void Says(Error error, string part, ServerOptions options)
        {
            WhitewaterException thrown = Check.Throws<WhitewaterException>(() => new WhitewaterServer("127.0.0.1:0", options).Dispose());
            Check.Equal(error, thrown.Error);
            Check.That(thrown.Message.Contains(part), thrown.Message);
        }

        [Test]
        public void Nulls_and_keys_of_another_length_are_refused_before_the_library_sees_them()
        {
            Check.Throws<ArgumentNullException>(() => new WhitewaterServer("127.0.0.1:0", null).Dispose());
            Check.Throws<ArgumentNullException>(() => new WhitewaterServer(null, Pair.ServerOptions()).Dispose());
            Check.Throws<ArgumentNullException>(() => new WhitewaterClient(null, Pair.ClientOptions()).Dispose());
            Check.Throws<ArgumentNullException>(() => new WhitewaterClient(null).Dispose());
            Check.Throws<ArgumentNullException>(() => Options.PublicKey(null));
            Check.Throws<ArgumentException>(() => new WhitewaterServer("127.0.0.1:0\0", Pair.ServerOptions()).Dispose());
            foreach (byte[] key in new[] { new byte[0], new byte[31], new byte[33] })
            {
                foreach (ServerOptions options in new[] { new ServerOptions { Psk = key }, new ServerOptions { ServerKey = key }, new ServerOptions { TokenKey = key } })
                {
                    Check.Throws<ArgumentException>(() => new WhitewaterServer("127.0.0.1:0", options).Dispose());
                }
                Check.Throws<ArgumentException>(() => Options.PublicKey(key));
            }
            Check.Throws<ArgumentException>(() => Options.PublicKey(new byte[32]));
            Check.Throws<ArgumentOutOfRangeException>(() => new ChannelOptions(ChannelKind.Ordered, maxMessage: -1));
            Check.Throws<ArgumentOutOfRangeException>(() => Repairs.Budget(201));
            Check.Throws<ArgumentOutOfRangeException>(() => Repairs.Within(0));
            foreach (TimeSpan time in new[] { TimeSpan.FromTicks(-1), TimeSpan.MaxValue, TimeSpan.MinValue })
            {
                var options = new ServerOptions { Suite = Suite.Checked, Timeout = time };
                Check.Throws<ArgumentOutOfRangeException>(() => new WhitewaterServer("127.0.0.1:0", options).Dispose());
            }
        }

        [Test]
        public void Channels_sessions_codes_and_texts_that_do_not_exist_are_refused()
        {
            using (var pair = new Pair())
            {
                WhitewaterServer server = pair.Server;
                foreach (int channel in new[] { -1, 2, 256, int.MinValue, int.MaxValue })
                {
                    Check.Throws<ArgumentOutOfRangeException>(() => pair.Client.Send(channel, Hello));
                    Check.Throws<ArgumentOutOfRangeException>(() => pair.Client.IsDelivered(channel));
                    Check.Throws<ArgumentOutOfRangeException>(() => server.Send(pair.Session, channel, Hello));
                    Check.Throws<ArgumentOutOfRangeException>(() => server.Broadcast(channel, Hello, out _));
                    Check.Throws<ArgumentOutOfRangeException>(() => server.IsDelivered(pair.Session, channel));
                }
                SessionId nobody = default(SessionId);
                Check.Equal(SendResult.Closed, server.Send(nobody, 0, Hello));
                Check.Equal(SendResult.Closed, server.SendDatagram(nobody, Hello));
                Check.That(!server.IsConnected(nobody) && !server.IsDelivered(nobody, 0) && !server.TryGetStats(nobody, out _), "nobody");
                Check.That(server.PeerAddress(nobody) == null && server.User(nobody) == null, "nobody");
                Check.That(!server.Admit(nobody) && !server.Reject(nobody, 1), "nobody");
                server.Kick(nobody);
                server.Close(nobody);
                foreach (string text in new[] { "a\nb", "a\0b", new string('x', WhitewaterEnd.CloseTextMax + 1), new string('\u00fc', 65) })
                {
                    Check.Throws<ArgumentException>(() => server.Kick(pair.Session, 1, text));
                    Check.Throws<ArgumentException>(() => pair.Client.Close(1, text));
                }
                Check.Throws<ArgumentNullException>(() => server.Close(pair.Session, 1, null));
                Check.Throws<ArgumentException>(() => server.Kick(pair.Session, WhitewaterEnd.ReservedCodes));
                Check.Throws<ArgumentException>(() => pair.Client.Kick(ushort.MaxValue));
                Check.Throws<ArgumentException>(() => server.Shutdown(WhitewaterEnd.ReservedCodes));
                Check.That(pair.Client.IsConnected && server.IsConnected(pair.Session), "and the session has not noticed");
                server.Kick(pair.Session, 1, new string('x', WhitewaterEnd.CloseTextMax));
            }
        }

        [Test]
        public void Before_the_session_is_up_there_is_nothing_to_send_to_and_nothing_to_tell()
        {
            using (var server = new WhitewaterServer("127.0.0.1:0", Pair.ServerOptions()))
            using (var client = new WhitewaterClient(server.LocalAddress, Pair.ClientOptions()))
            {
                Check.Equal(SendResult.Closed, client.Send(0, Hello));
                Check.Equal(SendResult.Closed, client.SendDatagram(Hello));
                Check.That(!client.IsConnected && !client.IsDelivered(0) && !client.TryGetStats(out _), "not up");
                Check.That(client.PeerAddress == null && client.User() == null && client.TakeTicket().Length == 0, "nothing to tell");
                Check.Equal(SendResult.Sent, server.Broadcast(0, Hello, out int full));
                Disconnect end = null;
                client.Disconnected += how => end = how;
                client.Kick(7, "never mind"); // gives the attempt up
                Pair.Until("it has ended", () => end != null, client);
                Check.Equal(CloseReason.Local, end.Reason);
            }
        }

        [Test]
        public void What_was_disposed_of_says_so_whatever_is_called_and_disposing_twice_is_harmless()
        {
            var pair = new Pair();
            SessionId session = pair.Session;
            pair.Dispose();
            pair.Dispose();
            Check.That(pair.Server.IsDisposed && pair.Client.IsDisposed, "both say so");
            var calls = new List<Action>
            {
                () => pair.Client.Pump(), () => pair.Client.Pump(0), () => pair.Client.Flush(), () => pair.Client.Shutdown(),
                () => pair.Client.Send(0, Hello), () => pair.Client.SendDatagram(Hello), () => pair.Client.Close(), () => pair.Client.Kick(),
                () => pair.Client.IsDelivered(0), () => pair.Client.User(), () => pair.Client.TakeTicket(), () => pair.Client.PathChanged(),
                () => pair.Client.TryGetStats(out _), () => Check.That(pair.Client.IsConnected, ""),
                () => Check.That(pair.Client.PeerAddress == "", ""), () => Check.That(pair.Client.LocalAddress == "", ""),
                () => pair.Server.Pump(), () => pair.Server.Pump(0), () => pair.Server.Flush(), () => pair.Server.Shutdown(),
                () => pair.Server.Send(session, 0, Hello), () => pair.Server.SendDatagram(session, Hello), () => pair.Server.Close(session),
                () => pair.Server.Kick(session), () => pair.Server.IsDelivered(session, 0), () => pair.Server.User(session),
                () => pair.Server.Broadcast(0, Hello, out _), () => pair.Server.BroadcastExcept(session, 0, Hello, out _),
                () => pair.Server.Admit(session), () => pair.Server.Reject(session, 1), () => pair.Server.Redirect(session, Hello),
                () => pair.Server.TryGetStats(session, out _), () => pair.Server.IsConnected(session),
                () => Check.That(pair.Server.ClientCount == 0, ""), () => pair.Server.PeerAddress(session),
                () => Check.That(pair.Server.LocalAddress == "", ""),
            };
            foreach (Action call in calls)
            {
                Check.Throws<ObjectDisposedException>(call);
            }
        }

        [Test]
        public void A_handler_may_dispose_of_its_own_end_and_hears_nothing_more()
        {
            foreach (bool isServer in new[] { true, false })
            {
                using (var pair = new Pair())
                {
                    int messages = 0, ends = 0;
                    pair.Server.Message += (session, channel, message) => { messages++; pair.Server.Dispose(); Check.Equal(3, message.Length); };
                    pair.Client.Message += (channel, message) => { messages++; pair.Client.Dispose(); Check.Equal(3, message[2]); };
                    pair.Server.Disconnected += (session, end) => { ends++; pair.Server.Dispose(); };
                    pair.Client.Disconnected += end => { ends++; pair.Client.Dispose(); };
                    for (int i = 0; i < 10; i++)
                    {
                        Check.Equal(SendResult.Sent, isServer ? pair.Client.Send(0, Hello) : pair.Server.Send(pair.Session, 0, Hello));
                    }
                    pair.Until("both are gone", () => pair.Server.IsDisposed && pair.Client.IsDisposed);
                    Check.Equal(1, messages);
                    Check.Equal(1, ends);
                }
            }
        }

        [Test]
        public void A_handler_cannot_pump_but_may_call_everything_else()
        {
            using (var pair = new Pair())
            {
                int calls = 0;
                pair.Server.Message += (session, channel, message) =>
                {
                    Check.Throws<InvalidOperationException>(pair.Server.Pump);
                    Check.Throws<InvalidOperationException>(() => pair.Server.Pump(0));
                    pair.Server.Flush();
                    pair.Server.Broadcast(0, message, out _);
                    pair.Server.Send(session, 0, message);
                    Check.That(pair.Server.User(session) != null && pair.Server.PeerAddress(session) != null, "it is told");
                    Check.Equal(3, message[2]); // which is still there
                    calls++;
                };
                pair.Client.Send(0, Hello);
                pair.Until("it was called", () => calls == 1);
            }
        }

        [Test]
        public void What_a_handler_throws_comes_out_of_the_pump_and_no_other_message_is_lost()
        {
            using (var pair = new Pair())
            {
                var received = new List<byte>();
                int thrown = 0, ends = 0;
                pair.Server.Message += (session, channel, message) =>
                {
                    received.Add(message[0]);
                    if (message[0] % 3 == 0)
                    {
                        throw new FormatException();
                    }
                };
                pair.Server.Disconnected += (session, end) => { ends++; throw new FormatException(); };
                for (byte i = 0; i < 10; i++)
                {
                    pair.Client.Send(0, new[] { i });
                }
                pair.Client.Close();
                Pair.Until("all were raised", () =>
                {
                    try
                    {
                        pair.Server.Pump();
                    }
                    catch (FormatException)
                    {
                        thrown++;
                    }
                    return ends > 0;
                }, pair.Client);
                Check.Equal("0,1,2,3,4,5,6,7,8,9", string.Join(",", received));
                Check.Equal(5, thrown);
                Pair.CountPumps(10, pair.Server);
                Check.Equal(1, ends);
            }
        }

        [Test]
        public void A_second_thread_is_refused_and_may_dispose_of_an_end_that_waits()
        {
            using (var pair = new Pair())
            {
                int refused = 0;
                var waiting = new Thread(() =>
                {
                    try
                    {
                        while (true)
                        {
                            pair.Server.Pump(200);
                        }
                    }
                    catch (ObjectDisposedException)
                    {
                    }
                    catch (InvalidOperationException) // this thread may be the second one as well
                    {
                        Interlocked.Increment(ref refused);
                    }
                });
                waiting.Start();
                while (waiting.IsAlive && refused == 0)
                {
                    try
                    {
                        pair.Server.Broadcast(0, Hello, out _);
                    }
                    catch (InvalidOperationException)
                    {
                        refused++;
                    }
                }
                pair.Server.Dispose();
                waiting.Join();
                Check.That(refused > 0 && pair.Server.IsDisposed, "it was refused");
            }
        }

        [Test]
        public void What_nobody_disposed_of_is_freed_and_its_peer_is_told()
        {
            using (var server = new WhitewaterServer("127.0.0.1:0", Pair.ServerOptions()))
            {
                bool isGone = false;
                server.Disconnected += (session, end) => isGone = end.Reason == CloseReason.Peer;
                var thread = new Thread(() => // whose stack is gone afterwards
                {
                    var client = new WhitewaterClient(server.LocalAddress, Pair.ClientOptions());
                    Pair.Until("it is connected", () => client.IsConnected, server, client);
                });
                thread.Start();
                thread.Join();
                Pair.Until("it is gone", () => { GC.Collect(); return isGone; }, server);
            }
        }

        [Test]
        public void Garbage_from_strangers_changes_nothing()
        {
            using (var pair = new Pair())
            using (var socket = new UdpClient())
            {
                var random = new Random(5);
                int raised = 0;
                pair.Server.Connected += session => raised++;
                pair.Server.Disconnected += (session, end) => raised++;
                pair.Server.Datagram += (session, datagram) => raised++;
                int port = int.Parse(pair.Server.LocalAddress.Split(':')[1]);
                for (int i = 0; i < 2000; i++)
                {
                    var garbage = new byte[random.Next(1500)];
                    random.NextBytes(garbage);
                    socket.Send(garbage, garbage.Length, new IPEndPoint(IPAddress.Loopback, port));
                    if (i % 50 == 0)
                    {
                        pair.Server.Pump();
                    }
                }
                int received = 0;
                pair.Server.Message += (session, channel, message) => received++;
                pair.Client.Send(0, Hello);
                pair.Until("a message arrives", () => received == 1);
                Check.Equal(0, raised);
            }
        }
    }
}
