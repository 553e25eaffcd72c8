// As much of Mirror and of Unity as a transport for Mirror needs, to compile one without them. Restated from Mirror's Assets/Mirror/Core/Transport.cs,
// TransportError.cs, PortTransport.cs and Tools/Utils.cs at commit c885a6a4d50dbe8e95438c98a4ff68dd72dd7e7a of github.com/MirrorNetworking/Mirror, which has
// the MIT licence: the same members with the same signatures, without what they do.
using System;

#pragma warning disable 1591 // it is documented there

namespace UnityEngine
{
    public class MonoBehaviour
    {
        public bool enabled = true;
    }

    public sealed class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip)
        {
        }
    }

    public sealed class SerializeField : Attribute
    {
    }

    public sealed class DisallowMultipleComponent : Attribute
    {
    }

    public static class Debug
    {
        public static void LogError(object message)
        {
            Console.Error.WriteLine(message);
        }
    }
}

namespace Mirror
{
    public static class Channels
    {
        public const int Reliable = 0;
        public const int Unreliable = 1;
    }

    public enum TransportError : byte
    {
        DnsResolve,
        Refused,
        Timeout,
        Congestion,
        InvalidReceive,
        InvalidSend,
        ConnectionClosed,
        Unexpected,
    }

    public interface PortTransport
    {
        ushort Port { get; set; }
    }

    public abstract class Transport : UnityEngine.MonoBehaviour
    {
        public Action OnClientConnected;
        public Action<ArraySegment<byte>, int> OnClientDataReceived;
        public Action<ArraySegment<byte>, int> OnClientDataSent;
        public Action<TransportError, string> OnClientError;
        public Action<Exception> OnClientTransportException;
        public Action OnClientDisconnected;
        public Action<int, string> OnServerConnectedWithAddress;
        public Action<int, ArraySegment<byte>, int> OnServerDataReceived;
        public Action<int, ArraySegment<byte>, int> OnServerDataSent;
        public Action<int, TransportError, string> OnServerError;
        public Action<int, Exception> OnServerTransportException;
        public Action<int> OnServerDisconnected;

        public virtual bool IsEncrypted => false;
        public virtual string EncryptionCipher => "";
        public abstract bool Available();

        public abstract bool ClientConnected();
        public abstract void ClientConnect(string address);

        public virtual void ClientConnect(Uri uri)
        {
            ClientConnect(uri.Host);
        }

        public abstract void ClientSend(ArraySegment<byte> segment, int channelId = Channels.Reliable);
        public abstract void ClientDisconnect();

        public abstract Uri ServerUri();
        public abstract bool ServerActive();
        public abstract void ServerStart();
        public abstract void ServerSend(int connectionId, ArraySegment<byte> segment, int channelId = Channels.Reliable);
        public abstract void ServerDisconnect(int connectionId);
        public abstract string ServerGetClientAddress(int connectionId);
        public abstract void ServerStop();

        public abstract int GetMaxPacketSize(int channelId = Channels.Reliable);

        public virtual int GetBatchThreshold(int channelId = Channels.Reliable)
        {
            return GetMaxPacketSize(channelId);
        }

        public virtual void ClientEarlyUpdate()
        {
        }

        public virtual void ServerEarlyUpdate()
        {
        }

        public virtual void ClientLateUpdate()
        {
        }

        public virtual void ServerLateUpdate()
        {
        }

        public abstract void Shutdown();

        public virtual void OnApplicationQuit()
        {
            Shutdown();
        }
    }
}
