using System;
using System.Collections.Generic;
using System.Net;
using Mirror;
using UnityEngine;

namespace Whitewater
{
    public sealed partial class WhitewaterTransport
    {
        private sealed class Connection
        {
            internal readonly SessionId Session;
            internal readonly Outgoing Outgoing;

            internal Connection(WhitewaterServer server, SessionId session)
            {
                Session = session;
                Outgoing = new Outgoing((channel, message) => server.Send(session, channel, message));
            }
        }

        private readonly Dictionary<int, Connection> connections = new Dictionary<int, Connection>();
        private readonly Dictionary<SessionId, int> ids = new Dictionary<SessionId, int>();
        private WhitewaterServer server;
        private int lastId; // Mirror's own is 0
        private byte[] serverRoom = new byte[4096];

        /// <summary>The server, for statistics. <c>null</c>: it is not running.</summary>
        public WhitewaterServer Server => server;

        /// <summary>The session of a connection.</summary>
        /// <param name="connectionId">Mirror's number of it.</param>
        /// <param name="session">The session.</param>
        /// <returns>Whether there is such a connection.</returns>
        public bool TryGetSession(int connectionId, out SessionId session)
        {
            bool isThere = connections.TryGetValue(connectionId, out Connection connection);
            session = isThere ? connection.Session : default(SessionId);
            return isThere;
        }

        /// <inheritdoc/>
        public override Uri ServerUri()
        {
            try
            {
                return new UriBuilder(Scheme, Dns.GetHostName(), port).Uri;
            }
            catch (UriFormatException) // a name of a machine may have what a host's cannot
            {
                return new UriBuilder(Scheme, "localhost", port).Uri;
            }
        }

        /// <inheritdoc/>
        public override bool ServerActive()
        {
            return server != null;
        }

        /// <summary>Starts to listen.</summary>
        /// <exception cref="WhitewaterException">An option is wrong, or the port is taken.</exception>
        /// <exception cref="FormatException">The secret is none.</exception>
        public override void ServerStart()
        {
            if (server != null)
            {
                return; // Mirror warns about that itself
            }
            var options = new ServerOptions();
            Fill(options);
            ServerStarting?.Invoke(options);
            WhitewaterServer made = server = new WhitewaterServer((DualMode ? "[::]:" : "0.0.0.0:") + port, options);
            made.Connected += OnSession;
            made.Message += OnMessage;
            made.Writable += OnWritable;
            made.Disconnected += OnSessionEnd;
        }

        /// <inheritdoc/>
        public override void ServerSend(int connectionId, ArraySegment<byte> segment, int channelId = Channels.Reliable)
        {
            if (server == null || !connections.TryGetValue(connectionId, out Connection connection))
            {
                return;
            }
            switch (connection.Outgoing.Send(segment, channelId, MaxMessage))
            {
                case Outgoing.Outcome.Sent:
                    OnServerDataSent?.Invoke(connectionId, segment, channelId);
                    break;
                case Outgoing.Outcome.Invalid:
                    OnServerError?.Invoke(connectionId, TransportError.InvalidSend, Invalid(segment, channelId));
                    break;
                case Outgoing.Outcome.Congested:
                    OnServerError?.Invoke(connectionId, TransportError.Congestion, Congested);
                    ServerDisconnect(connectionId);
                    break;
            }
        }

        /// <inheritdoc/>
        public override void ServerDisconnect(int connectionId)
        {
            if (server != null && connections.TryGetValue(connectionId, out Connection connection))
            {
                server.Kick(connection.Session);
                ServerLateUpdate(); // the client hears of it even if nobody updates this transport any more
            }
        }

        /// <inheritdoc/>
        public override string ServerGetClientAddress(int connectionId)
        {
            bool isThere = TryGetSession(connectionId, out SessionId session) && server != null;
            return isThere ? Host(server.PeerAddress(session) ?? "") : "";
        }

        /// <inheritdoc/>
        public override void ServerStop()
        {
            WhitewaterServer stopped = server;
            server = null;
            stopped?.Dispose();
            connections.Clear();
            ids.Clear();
        }

        /// <inheritdoc/>
        public override void ServerEarlyUpdate()
        {
            if (!enabled || server == null)
            {
                return;
            }
            try
            {
                server.Pump();
            }
            catch (WhitewaterException failure)
            {
                Log(failure);
            }
        }

        /// <inheritdoc/>
        public override void ServerLateUpdate()
        {
            if (server == null)
            {
                return;
            }
            try
            {
                server.Flush();
            }
            catch (WhitewaterException failure)
            {
                Log(failure);
            }
        }

        private void OnSession(SessionId session)
        {
            int id = ++lastId;
            connections.Add(id, new Connection(server, session));
            ids.Add(session, id);
            OnServerConnectedWithAddress?.Invoke(id, ServerGetClientAddress(id));
        }

        private void OnMessage(SessionId session, int channel, ReadOnlySpan<byte> message)
        {
            if (ids.TryGetValue(session, out int id))
            {
                OnServerDataReceived?.Invoke(id, Copy(message, ref serverRoom), channel);
            }
        }

        private void OnWritable(SessionId session)
        {
            if (ids.TryGetValue(session, out int id))
            {
                connections[id].Outgoing.Resume();
            }
        }

        private void OnSessionEnd(SessionId session, Disconnect end)
        {
            if (!ids.TryGetValue(session, out int id))
            {
                return; // it was never up
            }
            if (IsError(end, out TransportError error, out string text))
            {
                OnServerError?.Invoke(id, error, text);
            }
            ids.Remove(session);
            connections.Remove(id);
            OnServerDisconnected?.Invoke(id);
        }

        // A socket that fails once may work the next time; a server does not end all games for it.
        private static void Log(WhitewaterException failure)
        {
            Debug.LogError("whitewater: " + failure.Message);
        }
    }
}
