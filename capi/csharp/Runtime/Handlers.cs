using System;

namespace Whitewater
{
    /// <summary>Receives a message of a client's session. The bytes are there until it returns.</summary>
    /// <param name="channel">Which channel.</param>
    /// <param name="message">The message; on a stream, the next bytes, and none at the end.</param>
    public delegate void ClientMessageHandler(int channel, ReadOnlySpan<byte> message);

    /// <summary>Receives a datagram of a client's session. The bytes are there until it returns.</summary>
    /// <param name="datagram">The datagram.</param>
    public delegate void ClientDatagramHandler(ReadOnlySpan<byte> datagram);

    /// <summary>Receives a message of a session. The bytes are there until it returns.</summary>
    /// <param name="session">Whose it is.</param>
    /// <param name="channel">Which channel.</param>
    /// <param name="message">The message; on a stream, the next bytes, and none at the end.</param>
    public delegate void ServerMessageHandler(SessionId session, int channel, ReadOnlySpan<byte> message);

    /// <summary>Receives a datagram of a session. The bytes are there until it returns.</summary>
    /// <param name="session">Whose it is.</param>
    /// <param name="datagram">The datagram.</param>
    public delegate void ServerDatagramHandler(SessionId session, ReadOnlySpan<byte> datagram);

    /// <summary>Receives a client's request to join. The bytes are there until it returns.</summary>
    /// <param name="session">The session that the client would have.</param>
    /// <param name="user">What the client says: <see cref="ClientOptions.User"/>.</param>
    public delegate void ServerRequestedHandler(SessionId session, ReadOnlySpan<byte> user);
}
