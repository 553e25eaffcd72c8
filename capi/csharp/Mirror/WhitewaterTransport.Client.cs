using System;
using Mirror;

namespace Whitewater
{
    public sealed partial class WhitewaterTransport
    {
        private WhitewaterClient client;
        private Outgoing clientOutgoing;
        private byte[] clientRoom = new byte[4096];

        /// <summary>The client, for its statistics and its ticket. <c>null</c>: it is not connected, nor connecting.</summary>
        public WhitewaterClient Client => client;

        /// <inheritdoc/>
        public override bool ClientConnected()
        {
            return client != null && client.IsConnected;
        }

        /// <inheritdoc/>
        public override void ClientConnect(string address)
        {
            Connect(address, port);
        }

        /// <summary>Connects to "whitewater://host:port".</summary>
        /// <param name="uri">The address. Without a port, it is <see cref="Port"/>.</param>
        /// <exception cref="ArgumentException">It has another scheme.</exception>
        public override void ClientConnect(Uri uri)
        {
            if (uri.Scheme != Scheme)
            {
                throw new ArgumentException("not a " + Scheme + ":// address: " + uri, nameof(uri));
            }
            Connect(uri.Host, uri.IsDefaultPort || uri.Port < 0 ? port : (ushort)uri.Port);
        }

        /// <inheritdoc/>
        public override void ClientSend(ArraySegment<byte> segment, int channelId = Channels.Reliable)
        {
            if (client == null)
            {
                return;
            }
            switch (clientOutgoing.Send(segment, channelId, MaxMessage))
            {
                case Outgoing.Outcome.Sent:
                    OnClientDataSent?.Invoke(segment, channelId);
                    break;
                case Outgoing.Outcome.Invalid:
                    OnClientError?.Invoke(TransportError.InvalidSend, Invalid(segment, channelId));
                    break;
                case Outgoing.Outcome.Congested:
                    OnClientError?.Invoke(TransportError.Congestion, Congested);
                    ClientDisconnect();
                    break;
            }
        }

        /// <inheritdoc/>
        public override void ClientDisconnect()
        {
            if (client != null)
            {
                DropClient();
                OnClientDisconnected?.Invoke();
            }
        }

        /// <inheritdoc/>
        public override void ClientEarlyUpdate()
        {
            if (!enabled || client == null) // Mirror disables a transport while it changes scenes
            {
                return;
            }
            try
            {
                client.Pump();
            }
            catch (WhitewaterException failure)
            {
                Fail(failure);
            }
        }

        /// <inheritdoc/>
        public override void ClientLateUpdate()
        {
            if (client == null)
            {
                return;
            }
            try
            {
                client.Flush();
            }
            catch (WhitewaterException failure)
            {
                Fail(failure);
            }
        }

        private void Connect(string host, ushort at)
        {
            if (client != null)
            {
                return; // Mirror warns about that itself
            }
            try
            {
                var options = new ClientOptions();
                Fill(options);
                ClientConnecting?.Invoke(options);
                bool isBareIpv6 = host.Contains(":") && !host.StartsWith("[");
                client = new WhitewaterClient((isBareIpv6 ? "[" + host + "]" : host) + ":" + at, options);
            }
            catch (Exception failure) when (failure is WhitewaterException || failure is ArgumentException || failure is FormatException)
            {
                bool isName = failure is WhitewaterException whitewater && whitewater.Error == Error.Misuse;
                OnClientError?.Invoke(isName ? TransportError.DnsResolve : TransportError.Unexpected, failure.Message);
                OnClientDisconnected?.Invoke();
                return;
            }
            WhitewaterClient made = client;
            clientOutgoing = new Outgoing((channel, message) => made.Send(channel, message));
            made.Connected += () => OnClientConnected?.Invoke();
            made.Message += (channel, message) => OnClientDataReceived?.Invoke(Copy(message, ref clientRoom), channel);
            made.Writable += clientOutgoing.Resume;
            made.Disconnected += end =>
            {
                DropClient();
                if (IsError(end, out TransportError error, out string text))
                {
                    OnClientError?.Invoke(error, text);
                }
                OnClientDisconnected?.Invoke();
            };
        }

        // Says goodbye if there is somebody to say it to.
        private void DropClient()
        {
            WhitewaterClient dropped = client;
            client = null;
            dropped?.Dispose();
        }

        private void Fail(WhitewaterException failure)
        {
            OnClientError?.Invoke(TransportError.Unexpected, failure.Message);
            ClientDisconnect();
        }
    }
}
