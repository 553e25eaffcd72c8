/* Prints what C says of the structs and constants that the package restates. */
#include <stddef.h>
#include <stdio.h>
#include "whitewater.h"

#define FIELD(type, field, name) printf(#name " %d\n", (int)offsetof(type, field))
#define VALUE(value, name) printf(#name " %d\n", (int)(value))

int main(void) {
  VALUE(sizeof(ww_options), Options.size);
  FIELD(ww_options, protocol_id, Options.ProtocolId);
  FIELD(ww_options, suite, Options.Suite);
  FIELD(ww_options, max_sessions, Options.MaxSessions);
  FIELD(ww_options, timeout_ms, Options.TimeoutMs);
  FIELD(ww_options, keepalive_ms, Options.KeepaliveMs);
  FIELD(ww_options, channels, Options.Channels);
  FIELD(ww_options, channel_count, Options.ChannelCount);
  FIELD(ww_options, psk, Options.Psk);
  FIELD(ww_options, server_key, Options.ServerKey);
  FIELD(ww_options, user, Options.User);
  FIELD(ww_options, user_len, Options.UserLen);
  FIELD(ww_options, ticket, Options.Ticket);
  FIELD(ww_options, ticket_len, Options.TicketLen);
  FIELD(ww_options, ask, Options.Ask);
  FIELD(ww_options, repairs, Options.Repairs);
  FIELD(ww_options, repairs_within_ms, Options.RepairsWithinMs);
  FIELD(ww_options, token, Options.Token);
  FIELD(ww_options, token_len, Options.TokenLen);
  FIELD(ww_options, token_key, Options.TokenKey);
  FIELD(ww_options, server_id, Options.ServerId);
  FIELD(ww_options, key_id, Options.KeyId);
  FIELD(ww_options, routing_token_len, Options.RoutingTokenLen);
  FIELD(ww_options, sessions_per_address, Options.SessionsPerAddress);
  VALUE(sizeof(ww_channel), Channel.size);
  FIELD(ww_channel, kind, Channel.Kind);
  FIELD(ww_channel, carrier, Channel.Carrier);
  FIELD(ww_channel, max_message, Channel.MaxMessage);
  VALUE(sizeof(ww_stats), Stats.size);
  FIELD(ww_stats, rtt_us, Stats.RttUs);
  FIELD(ww_stats, rttvar_us, Stats.RttvarUs);
  FIELD(ww_stats, loss, Stats.Loss);
  FIELD(ww_stats, sent, Stats.Sent);
  FIELD(ww_stats, bytes_sent, Stats.BytesSent);
  FIELD(ww_stats, received, Stats.Received);
  FIELD(ww_stats, bytes_received, Stats.BytesReceived);
  VALUE(sizeof(ww_pass), Pass.size);
  FIELD(ww_pass, client_id, Pass.ClientId);
  FIELD(ww_pass, created, Pass.Created);
  FIELD(ww_pass, match_id, Pass.MatchId);
  FIELD(ww_pass, user, Pass.User);
  FIELD(ww_pass, user_len, Pass.UserLen);
  VALUE(sizeof(ww_order), Order.size);
  FIELD(ww_order, protocol_id, Order.ProtocolId);
  FIELD(ww_order, server_id, Order.ServerId);
  FIELD(ww_order, client_id, Order.ClientId);
  FIELD(ww_order, match_id, Order.MatchId);
  FIELD(ww_order, token_key, Order.TokenKey);
  FIELD(ww_order, addresses, Order.Addresses);
  FIELD(ww_order, user, Order.User);
  FIELD(ww_order, user_len, Order.UserLen);
  FIELD(ww_order, routing_token, Order.RoutingToken);
  FIELD(ww_order, routing_token_len, Order.RoutingTokenLen);
  FIELD(ww_order, life_s, Order.LifeS);
  FIELD(ww_order, suite, Order.Suite);
  FIELD(ww_order, key_id, Order.KeyId);
  VALUE(sizeof(ww_event), Event.size);
  FIELD(ww_event, kind, Event.Kind);
  FIELD(ww_event, session, Event.Session);
  FIELD(ww_event, reason, Event.Reason);
  FIELD(ww_event, code, Event.Code);
  FIELD(ww_event, is_undelivered, Event.IsUndelivered);
  VALUE(WW_AGAIN, SendResult.Full);
  VALUE(WW_TOO_LONG, SendResult.TooLong);
  VALUE(WW_CLOSED, SendResult.Closed);
  VALUE(WW_MISUSE, Error.Misuse);
  VALUE(WW_IO, Error.Io);
  VALUE(WW_CONFIG, Error.Config);
  VALUE(WW_PANIC, Error.Panic);
  VALUE(WW_EVENT_REQUESTED, EventKind.Requested);
  VALUE(WW_EVENT_CONNECTED, EventKind.Connected);
  VALUE(WW_EVENT_READABLE, EventKind.Readable);
  VALUE(WW_EVENT_WRITABLE, EventKind.Writable);
  VALUE(WW_EVENT_REDIRECTED, EventKind.Redirected);
  VALUE(WW_EVENT_MOVED, EventKind.Moved);
  VALUE(WW_EVENT_CLOSED, EventKind.Closed);
  VALUE(WW_CLOSED_LOCAL, CloseReason.Local);
  VALUE(WW_CLOSED_PEER, CloseReason.Peer);
  VALUE(WW_CLOSED_REJECTED, CloseReason.Rejected);
  VALUE(WW_CLOSED_DENIED, CloseReason.Denied);
  VALUE(WW_CLOSED_TIMEOUT, CloseReason.Timeout);
  VALUE(WW_CLOSED_OTHER, CloseReason.Other);
  VALUE(WW_SUITE_CHECKED, Suite.Checked);
  VALUE(WW_SUITE_PSK, Suite.Psk);
  VALUE(WW_SUITE_KEY, Suite.Key);
  VALUE(WW_SUITE_HYBRID_PSK, Suite.HybridPsk);
  VALUE(WW_SUITE_HYBRID_KEY, Suite.HybridKey);
  VALUE(WW_CHANNEL_ORDERED, ChannelKind.Ordered);
  VALUE(WW_CHANNEL_UNORDERED, ChannelKind.Unordered);
  VALUE(WW_CHANNEL_SEQUENCED, ChannelKind.Sequenced);
  VALUE(WW_CHANNEL_UNRELIABLE, ChannelKind.Unreliable);
  VALUE(WW_CHANNEL_STREAM, ChannelKind.Stream);
  VALUE(WW_CARRIER_DEFAULT, Carrier.Default);
  VALUE(WW_CARRIER_KCP, Carrier.Kcp);
  VALUE(WW_CARRIER_PACKETS, Carrier.Packets);
  VALUE(WW_UNRELIABLE_MAX, UnreliableMax);
  VALUE(WW_REPAIRS_OFF, Repairs.Off);
  VALUE(WW_REPAIRS_AUTO, Repairs.Auto);
  return 0;
}
