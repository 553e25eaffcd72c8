using System;
using System.Net;
using System.Net.Sockets;
using System.Threading;

namespace Whitewater.Tests
{
    /// <summary>Carries datagrams between one client and a server, and changes a bit in each that the client sends, if it is told to.</summary>
    internal sealed class Relay : IDisposable
    {
        private readonly UdpClient front = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0));
        private readonly UdpClient back = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0));
        private IPEndPoint client;

        internal volatile bool Changes;
        internal int Changed;

        internal Relay(ushort server)
        {
            back.Connect(IPAddress.Loopback, server);
            Run(() =>
            {
                IPEndPoint from = null;
                byte[] datagram = front.Receive(ref from);
                client = from;
                if (Changes)
                {
                    datagram[datagram.Length / 2] ^= 4;
                    Interlocked.Increment(ref Changed);
                }
                back.Send(datagram, datagram.Length);
            });
            Run(() =>
            {
                IPEndPoint from = null;
                byte[] datagram = back.Receive(ref from);
                front.Send(datagram, datagram.Length, client);
            });
        }

        internal ushort Port => (ushort)((IPEndPoint)front.Client.LocalEndPoint).Port;

        private static void Run(Action carry)
        {
            new Thread(() =>
            {
                try
                {
                    while (true)
                    {
                        carry();
                    }
                }
                catch (Exception failure) when (failure is SocketException || failure is ObjectDisposedException)
                {
                    // It was disposed of.
                }
            }) { IsBackground = true }.Start();
        }

        public void Dispose()
        {
            front.Close();
            back.Close();
        }
    }
}
