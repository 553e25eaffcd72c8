using System;

namespace Whitewater.Tests
{
    /// <summary>A frame makes no work for the garbage collector.</summary>
    public sealed class AllocationTests
    {
        private const int Count = 10000;

        [Test]
        public void Ten_thousand_messages_each_way_allocate_nothing_and_cause_no_collection()
        {
            using (var pair = new Pair())
            {
                var message = new byte[100];
                int atServer = 0, atClient = 0, datagrams = 0, sent = 0;
                pair.Server.Message += (session, channel, bytes) =>
                {
                    atServer += channel == Pair.Ordered ? 1 : 0;
                    pair.Server.Send(session, channel, bytes);
                };
                pair.Client.Message += (channel, bytes) => atClient += channel == Pair.Ordered ? 1 : 0;
                pair.Server.Datagram += (session, bytes) => datagrams++;
                Action frame = () =>
                {
                    for (int i = 0; i < 20; i++)
                    {
                        sent += pair.Client.Send(Pair.Ordered, message) == SendResult.Sent ? 1 : 0;
                    }
                    pair.Client.Send(Pair.Unreliable, message);
                    pair.Client.SendDatagram(message);
                    pair.Server.Broadcast(Pair.Unreliable, message, out _);
                    pair.Server.BroadcastExcept(pair.Session, Pair.Unreliable, message, out _);
                    pair.Server.SendDatagram(pair.Session, message);
                    pair.Client.TryGetStats(out _);
                    pair.Server.TryGetStats(pair.Session, out _);
                    Check.That(pair.Client.IsConnected && pair.Server.IsConnected(pair.Session), "it is up");
                    pair.Client.IsDelivered(Pair.Ordered);
                    pair.Client.Flush();
                    pair.Server.Pump();
                    pair.Server.Flush();
                    pair.Client.Pump();
                };
                while (atClient < 1000) // until everything is compiled
                {
                    frame();
                }
                atServer = atClient = datagrams = sent = 0;
                int collections = GC.CollectionCount(0);
                long before = GC.GetAllocatedBytesForCurrentThread();
                while (atClient < Count)
                {
                    frame();
                }
                long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
                Check.That(atServer >= Count && datagrams > 100, "all that was measured happened: " + atServer + ", " + datagrams);
                Check.Equal(0L, allocated);
                Check.Equal(0, GC.CollectionCount(0) - collections);
            }
        }

        [Test]
        public void The_measure_sees_one_small_object_for_each_message()
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            var kept = new object[1];
            for (int i = 0; i < Count; i++)
            {
                kept[0] = new byte[1];
            }
            Check.That(GC.GetAllocatedBytesForCurrentThread() - before >= Count, "it would have been seen");
        }
    }
}
