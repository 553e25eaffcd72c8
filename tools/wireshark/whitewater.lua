-- Sessions of whitewater, protocol WW/1, for Wireshark: the packets of the handshake, the header of every DATA, and the
-- frames of unencrypted sessions. docs/WIRE.md describes the bytes. kcp.lua, if installed, shows bare KCP on the same port.
--
-- A datagram is dissected as WW/1 in three cases: a preference or "Decode As" says so; it is a HELLO, CHALLENGE,
-- CONNECT or ACCEPT in which every checkable bit is right; or it goes to or comes from a server that was seen in one of
-- these.

local ww = Proto("ww", "Whitewater session")

local HELLO, CHALLENGE, CONNECT, ACCEPT, DENY, DATA, DATA_PHASE_1, RESET = 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8
local KEM_KEY, KEM_CIPHERTEXT = 0xa9, 0xaa
local KINDS = {
  [HELLO] = "HELLO", [CHALLENGE] = "CHALLENGE", [CONNECT] = "CONNECT", [ACCEPT] = "ACCEPT", [DENY] = "DENY",
  [DATA] = "DATA", [DATA_PHASE_1] = "DATA", [RESET] = "RESET", [KEM_KEY] = "KEM_KEY", [KEM_CIPHERTEXT] = "KEM_CIPHERTEXT",
}
local PAD, KCP, DGRAM, ACK, PING, PONG, PATH_CHALLENGE, PATH_RESPONSE, CLOSE, REDIRECT, PACKED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local KCP_PART, ECN, REPAIR, LOSS, REKEY = 11, 12, 13, 14, 15
local NEW_ID, COPY = 16, 17
local FRAMES = {
  [PAD] = "PAD", [KCP] = "KCP", [DGRAM] = "DGRAM", [ACK] = "ACK", [PING] = "PING", [PONG] = "PONG",
  [PATH_CHALLENGE] = "PATH_CHALLENGE", [PATH_RESPONSE] = "PATH_RESPONSE", [CLOSE] = "CLOSE", [REDIRECT] = "REDIRECT",
  [PACKED] = "PACKED", [KCP_PART] = "KCP_PART", [ECN] = "ECN", [REPAIR] = "REPAIR", [LOSS] = "LOSS",
  [REKEY] = "REKEY",
  [NEW_ID] = "NEW_ID", [COPY] = "COPY",
}
local KCP_KINDS = {
  [0] = "PUSH", [1] = "the next PUSH", [2] = "ACK of the last", [3] = "ACK", [4] = "ACK of a rebuilt one", [5] = "WASK", [6] = "WINS", [7] = "WINS with a repair",
}
local OF_ANY_LENGTH = { [KCP] = true, [DGRAM] = true, [REDIRECT] = true, [PACKED] = true, [KCP_PART] = true, [REPAIR] = true }
local SUITES = {
  [0x0000] = "none, a checksum", [0x0101] = "NN, ChaChaPoly", [0x0102] = "NN, AESGCM", [0x0201] = "NNpsk0, ChaChaPoly",
  [0x0202] = "NNpsk0, AESGCM", [0x0301] = "NK, ChaChaPoly", [0x0302] = "NK, AESGCM", [0x0401] = "NKpsk0, ChaChaPoly",
  [0x0402] = "NKpsk0, AESGCM",
}
local CHECKED, NN, HYBRID = 0x0000, 0x01, 0x8000
local NO_PROOF = 0xffffffff -- the epoch of a CONNECT that is the first datagram
for _, suite in ipairs({ 0x0101, 0x0102, 0x0201, 0x0202, 0x0301, 0x0302, 0x0401, 0x0402 }) do
  SUITES[HYBRID + suite] = SUITES[suite] .. ", with ML-KEM-768"
end
local DENIALS = { [1] = "version", [2] = "suite", [3] = "protocol", [4] = "busy", [5] = "secret", [6] = "token" }
local REASONS = {
  [0xff01] = "the peer broke the protocol", [0xff02] = "nothing was acknowledged", [0xff03] = "nothing was read",
  [0xff04] = "a message could not be put together", [0xff05] = "the same client has connected again",
  [0xff06] = "all packet numbers are used up", [0xff07] = "both ends do not have the same channels",
}
local STATUS = { [0] = "wrong", [1] = "right", [2] = "not known, for the handshake was not captured" }
local VERSION, HELLO_MIN, DATAGRAM_MAX, TOKEN_MAX, MESSAGE_MIN, MESSAGE_MAX, USER_MAX, SHAPE_MAX = 1, 512, 1200, 512, 28, 568, 256, 248
local CHALLENGE_LEN, DENY_LEN, DATA_HEADER_LEN, RESET_LEN, CHECKSUM_LEN, TAG_LEN, FRAMES_MAX, CLOSE_TEXT_MAX = 36, 16, 9, 21, 4, 16, 64, 128
local SEALED_TOKEN_LEN, FRAMES_JOINING_MAX, KEM_KEY_LEN, KEM_CIPHERTEXT_LEN = 384, 16, 1184, 1088
-- Offset of the session number in an unencrypted ACCEPT: after the salt.
local SERVER_SID_AT = 14 + 8

local fields = {
  kind = ProtoField.uint8("ww.kind", "Kind", base.HEX, KINDS),
  version = ProtoField.uint8("ww.version", "Version"),
  suite = ProtoField.uint16("ww.suite", "Suite", base.HEX, SUITES),
  protocol_id = ProtoField.uint64("ww.protocol_id", "Protocol id", base.HEX),
  cid = ProtoField.uint64("ww.cid", "Attempt (cid)", base.HEX),
  sid = ProtoField.uint32("ww.sid", "Session, as its receiver calls it (sid)", base.HEX),
  stamp = ProtoField.uint32("ww.stamp", "Stamp"),
  padding = ProtoField.bytes("ww.padding", "Padding"),
  epoch = ProtoField.uint32("ww.epoch", "Epoch of the cookie"),
  cookie = ProtoField.bytes("ww.cookie", "Cookie"),
  token = ProtoField.bytes("ww.token", "Connect token, sealed"),
  kem_key = ProtoField.bytes("ww.kem.key", "Encapsulation key"),
  kem_ciphertext = ProtoField.bytes("ww.kem.ciphertext", "Ciphertext, sealed"),
  token_key = ProtoField.uint8("ww.token.key_id", "Key"),
  token_server = ProtoField.uint64("ww.token.server_id", "Server"),
  token_expires = ProtoField.uint64("ww.token.expires", "End, seconds since 1970"),
  token_nonce = ProtoField.bytes("ww.token.nonce", "Nonce"),
  msg = ProtoField.bytes("ww.handshake", "Message of the handshake"),
  ephemeral = ProtoField.bytes("ww.handshake.ephemeral", "Ephemeral public key"),
  salt = ProtoField.bytes("ww.handshake.salt", "Salt"),
  encrypted = ProtoField.bytes("ww.encrypted", "Encrypted"),
  features = ProtoField.uint32("ww.handshake.features", "Features", base.HEX),
  counts_marks = ProtoField.bool("ww.handshake.features.ecn", "Counts the marks of ECN", 32, nil, 1),
  takes_repairs = ProtoField.bool("ww.handshake.features.repairs", "Takes repairs", 32, nil, 2),
  masks = ProtoField.bool("ww.handshake.features.masks", "Masks headers", 32, nil, 4),
  max_datagram = ProtoField.uint16("ww.handshake.max_datagram", "Longest datagram that it takes, bytes"),
  rcv_wnd = ProtoField.uint16("ww.handshake.rcv_wnd", "Receive window, segments"),
  keepalive = ProtoField.uint16("ww.handshake.keepalive", "Between keepalives, ms"),
  rejected = ProtoField.uint16("ww.handshake.rejected", "Rejected"),
  reset_token = ProtoField.bytes("ww.reset_token", "Reset token"),
  ticket = ProtoField.bytes("ww.handshake.ticket", "Ticket"),
  user = ProtoField.bytes("ww.handshake.user", "The application's own"),
  shape = ProtoField.bytes("ww.handshake.channels", "The channels, a hash and each in short"),
  lowest = ProtoField.uint8("ww.deny.lowest", "Lowest version", base.DEC, nil, 0xf0),
  highest = ProtoField.uint8("ww.deny.highest", "Highest version", base.DEC, nil, 0x0f),
  denial = ProtoField.uint16("ww.deny.reason", "Why", base.DEC, DENIALS),
  retry_after = ProtoField.uint32("ww.deny.retry_after", "Not to be tried again before, ms"),
  phase = ProtoField.uint8("ww.phase", "Key phase"),
  pn = ProtoField.uint32("ww.pn", "Packet number, its low half (pn)"),
  pn_masked = ProtoField.bytes("ww.pn_masked", "Packet number, masked unless an end chose otherwise"),
  tag = ProtoField.bytes("ww.tag", "Tag"),
  checksum = ProtoField.uint32("ww.checksum", "Checksum", base.HEX),
  checksum_status = ProtoField.uint8("ww.checksum.status", "The checksum is", base.DEC, STATUS),
  handshake = ProtoField.framenum("ww.handshake_in", "Handshake in"),
  frame = ProtoField.none("ww.frame", "Frame"),
  frame_type = ProtoField.uint8("ww.frame.type", "Type", base.DEC, FRAMES, 0x7f),
  frame_end = ProtoField.bool("ww.frame.to_end", "Extends to the end", 8, nil, 0x80),
  frame_len = ProtoField.uint16("ww.frame.len", "Bytes of the content"),
  unknown = ProtoField.bytes("ww.frame.unknown", "Content of no frame that is known"),
  pad = ProtoField.bytes("ww.pad", "Zeros"),
  segments = ProtoField.bytes("ww.kcp", "Segments of KCP"),
  kcp_kind = ProtoField.uint8("ww.kcp.kind", "Kind", base.DEC, KCP_KINDS, 0x07),
  kcp_channel = ProtoField.uint8("ww.kcp.channel", "Channel"),
  kcp_frg = ProtoField.uint8("ww.kcp.frg", "Fragments that follow, or the loss"),
  kcp_wnd = ProtoField.uint16("ww.kcp.wnd", "Window"),
  kcp_una = ProtoField.uint24("ww.kcp.una", "Next number expected, low 24 bits"),
  kcp_ts = ProtoField.uint16("ww.kcp.ts", "Time, low 16 bits"),
  kcp_sn = ProtoField.uint24("ww.kcp.sn", "Number, low 24 bits"),
  kcp_len = ProtoField.uint16("ww.kcp.len", "Bytes of data"),
  kcp_data = ProtoField.bytes("ww.kcp.data", "Data"),
  dgram = ProtoField.bytes("ww.dgram", "Message of the application"),
  redirect = ProtoField.bytes("ww.redirect", "Connect token for another server"),
  packed = ProtoField.bytes("ww.packed", "Messages of channels, as bits"),
  part_number = ProtoField.uint16("ww.part.number", "KCP frame that was cut up"),
  part_id = ProtoField.uint8("ww.part.id", "Part, from 0"),
  part_last = ProtoField.uint8("ww.part.last", "The last part"),
  part = ProtoField.bytes("ww.part", "Part of the segments of KCP"),
  part_in = ProtoField.framenum("ww.part.in", "Part in"),
  joined_in = ProtoField.framenum("ww.part.joined_in", "Complete in"),
  unmarked = ProtoField.uint32("ww.ecn.unmarked", "Packets received that were not marked"),
  capable = ProtoField.uint32("ww.ecn.capable", "Packets received with ECT(0)"),
  congested = ProtoField.uint32("ww.ecn.congested", "Packets received with CE"),
  repair_first = ProtoField.uint32("ww.repair.first", "First packet covered, low half of pn"),
  repair = ProtoField.bytes("ww.repair", "Repair"),
  loss_newest = ProtoField.uint16("ww.loss.newest", "A packet, low half of the low half of pn"),
  loss_rebuilt = ProtoField.uint32("ww.loss.rebuilt", "Rebuilt of it and the 31 before it", base.HEX),
  loss_share = ProtoField.uint8("ww.loss.share", "Packets that get lost, of 255"),
  rekey_phase = ProtoField.uint16("ww.rekey.phase", "Phase of the new keys"),
  rekey = ProtoField.bytes("ww.rekey", "Half of new keys"),
  new_sid = ProtoField.uint32("ww.new_id.sid", "Another number of the session", base.HEX),
  new_token = ProtoField.bytes("ww.new_id.token", "Its reset token"),
  ack = ProtoField.uint16("ww.ack", "Newest packet received, low half of pn"),
  ack_bits = ProtoField.uint32("ww.ack.bits", "Received of the 32 before it", base.HEX),
  ack_delay = ProtoField.uint16("ww.ack.delay", "Since it came, 0.1 ms"),
  ping = ProtoField.uint64("ww.ping", "Stamp", base.HEX),
  path = ProtoField.bytes("ww.path", "Random bytes"),
  close_reason = ProtoField.uint16("ww.close.reason", "Why", base.HEX),
  routing_token = ProtoField.bytes("ww.routing_token", "Routing token"),
  close_text = ProtoField.string("ww.close.text", "In words", base.UNICODE),
}
ww.fields = fields

local experts = {
  malformed = ProtoExpert.new("ww.malformed", "Refused", expert.group.MALFORMED, expert.severity.ERROR),
  checksum = ProtoExpert.new("ww.checksum.wrong", "Wrong checksum", expert.group.CHECKSUM, expert.severity.ERROR),
  unknown = ProtoExpert.new("ww.unknown", "Not known here", expert.group.UNDECODED, expert.severity.WARN),
  segments = ProtoExpert.new("ww.kcp.malformed", "No segments", expert.group.MALFORMED, expert.severity.ERROR),
  misfit = ProtoExpert.new("ww.part.misfit", "Not of this frame", expert.group.MALFORMED, expert.severity.ERROR),
  over = ProtoExpert.new("ww.over", "The session or the attempt ends", expert.group.SEQUENCE, expert.severity.NOTE),
}
ww.experts = experts

ww.prefs.ports = Pref.range("UDP ports", "", "Ports of servers, for example 4000-4010,5000", 65535)
ww.prefs.assume_checked = Pref.bool(
  "Unknown sessions are not encrypted",
  false,
  "Whether sessions whose handshake was not captured have a checksum (suite 0x0000) instead of being encrypted"
)
ww.prefs.routing_token = Pref.uint(
  "Bytes of routing tokens",
  0,
  "How many bytes of a routing token follow each datagram to a server; 0: there are none here"
)

-- What is known from handshakes -----------------------------------------------------------------------------------------------------

-- Servers, by address and port.
local servers = {}
-- The attempts to connect to a server, by its address and port and the cid.
local attempts = {}
-- Sessions, by the address and port of the server, the direction and the sid.
local sessions = {}
-- The last session of a client whose sid at the server is not known yet, by both addresses and ports.
local nameless = {}
-- The session that the first pass found for a frame. Only that pass sees frames in order.
local session_of_frame = {}

-- The KCP frames being put together, by number, for each direction of a session.
local joining = {}
-- What the first pass found for a part, by the frame and its position there: its whole, or that it does not fit.
local joined_of_part = {}

function ww.init()
  servers, attempts, sessions, nameless, session_of_frame = {}, {}, {}, {}, {}
  joining, joined_of_part = {}, {}
end

local function source(pinfo)
  return tostring(pinfo.src) .. " " .. pinfo.src_port
end

local function destination(pinfo)
  return tostring(pinfo.dst) .. " " .. pinfo.dst_port
end

local function learn_connect(pinfo, attempt)
  local server = destination(pinfo)
  local key = server .. " " .. attempt.cid
  servers[server] = true
  if not pinfo.visited and not attempts[key] then
    attempt.number = pinfo.number
    attempts[key] = attempt
    sessions[server .. " to client " .. attempt.client_sid] = attempt
    nameless[source(pinfo) .. " " .. server] = attempt
  end
end

-- The attempt that an ACCEPT answers. `server_sid`: where it is in the clear.
local function learn_accept(pinfo, cid, server_sid, salt)
  local server = source(pinfo)
  local attempt = attempts[server .. " " .. cid]
  servers[server] = true
  if attempt and server_sid and not pinfo.visited then
    attempt.server_salt = salt
    sessions[server .. " to server " .. server_sid] = attempt
    nameless[destination(pinfo) .. " " .. server] = nil
  end
  return attempt
end

-- The session of a DATA, and whether it goes to the server, if that is known.
local function find_session(pinfo, sid)
  local known = session_of_frame[pinfo.number]
  if pinfo.visited then
    return known
  end
  known = sessions[source(pinfo) .. " to client " .. sid] or sessions[destination(pinfo) .. " to server " .. sid]
  if not known then
    -- The client's first DATA with a number that only its encrypted ACCEPT contained.
    local pair = source(pinfo) .. " " .. destination(pinfo)
    known = nameless[pair]
    if known then
      nameless[pair] = nil
      sessions[destination(pinfo) .. " to server " .. sid] = known
    end
  end
  session_of_frame[pinfo.number] = known
  return known
end

-- CRC-32 ---------------------------------------------------------------------------------------------------------------------------

-- Lua 5.2 has a library for it. Later versions have operators, which 5.2 cannot even parse.
local xor = bit32 and bit32.bxor or load("return function(a, b) return a ~ b end")()

local crc_table = {}
for byte = 0, 255 do
  local value = byte
  for _ = 1, 8 do
    value = value % 2 == 1 and xor(math.floor(value / 2), 0xedb88320) or math.floor(value / 2)
  end
  crc_table[byte] = value
end

local function crc32(...)
  local crc = 0xffffffff
  for _, bytes in ipairs({ ... }) do
    for at = 1, #bytes do
      crc = xor(math.floor(crc / 256), crc_table[xor(crc % 256, bytes:byte(at))])
    end
  end
  return xor(crc, 0xffffffff)
end

local function xor_bytes(a, b)
  local bytes = {}
  for at = 1, #a do
    bytes[at] = string.char(xor(a:byte(at), b:byte(at)))
  end
  return table.concat(bytes)
end

-- Reading --------------------------------------------------------------------------------------------------------------------------

-- Thrown for bytes that are not WW/1. Any other error is a bug in this file.
local Refused = {}

local function refuse(why)
  error(setmetatable({ why = why }, Refused), 0)
end

-- Reads fields from the front of the bytes `from` to `to`.
local Reader = {}
Reader.__index = Reader

local function reader(tvb, from, to)
  return setmetatable({ tvb = tvb, at = from, to = to }, Reader)
end

function Reader:left()
  return self.to - self.at
end

function Reader:take(count)
  if count > self:left() then
    refuse(string.format("Cut off: %d bytes of %d are there", self:left(), count))
  end
  self.at = self.at + count
  return count > 0 and self.tvb(self.at - count, count) or nil
end

-- Adds a field of `count` bytes. Returns its bytes and the item.
function Reader:add(tree, field, count)
  local range = self:take(count)
  return range, range and tree:add_le(field, range)
end

function Reader:raw(count)
  local range = self:take(count)
  return range and range:raw() or ""
end

function Reader:finish()
  if self:left() > 0 then
    refuse(string.format("%d bytes too many", self:left()))
  end
end

local function is_zero(bytes)
  return not bytes:find("[^\0]")
end

local function reserved(from, count)
  if not is_zero(from:raw(count)) then
    refuse("A reserved byte is set")
  end
end

-- The handshake --------------------------------------------------------------------------------------------------------------------

local function bounded(what, count, least, most)
  if count < least or count > most then
    refuse(string.format("%s of %d bytes", what, count))
  end
end

local function version(from, tree)
  local found = from:add(tree, fields.version, 1)
  if found:uint() ~= VERSION then
    refuse("Version " .. found:uint())
  end
end

local function version_and_suite(from, tree)
  version(from, tree)
  return from:add(tree, fields.suite, 2):le_uint()
end

local function hello(from, tree, pinfo)
  bounded("HELLO", from.to, HELLO_MIN, DATAGRAM_MAX)
  if from.tvb(1, 1):uint() ~= VERSION then
    tree:add_le(fields.cid, from.tvb(12, 8)) -- it is in the same place in every version
  end
  version_and_suite(from, tree)
  from:add(tree, fields.protocol_id, 8)
  from:add(tree, fields.cid, 8)
  from:add(tree, fields.stamp, 4)
  local padding = from:add(tree, fields.padding, from:left())
  if not is_zero(padding:raw()) then
    refuse("Padding that is not zero")
  end
  servers[destination(pinfo)] = true
end

local function challenge(from, tree, pinfo)
  version_and_suite(from, tree)
  from:add(tree, fields.cid, 8)
  from:add(tree, fields.stamp, 4)
  from:add(tree, fields.epoch, 4)
  from:add(tree, fields.cookie, 16)
  from:finish()
  servers[source(pinfo)] = true
end

local function token(range, tree)
  local item = tree:add(fields.token, range)
  if range:len() == SEALED_TOKEN_LEN and range(0, 1):uint() == 1 then
    item:add(fields.token_key, range(1, 1))
    item:add_le(fields.suite, range(2, 2))
    item:add_le(fields.token_server, range(4, 8))
    item:add_le(fields.token_expires, range(12, 8))
    item:add(fields.token_nonce, range(20, 24))
  end
end

-- The common start of both handshake payloads.
local function limits(from, tree)
  local features, item = from:add(tree, fields.features, 4)
  item:add_le(fields.counts_marks, features)
  item:add_le(fields.takes_repairs, features)
  item:add_le(fields.masks, features)
  from:add(tree, fields.max_datagram, 2)
  from:add(tree, fields.rcv_wnd, 2)
  from:add(tree, fields.keepalive, 2)
end

local function payload_of_client(from, tree)
  limits(from, tree)
  local channels, count = from:take(2):le_uint(), from:take(2):le_uint()
  reserved(from, 2)
  bounded("The application's own", count, 0, USER_MAX)
  from:add(tree, fields.user, count)
  if channels > 0 then
    bounded("The channels", channels, 8, SHAPE_MAX)
    if (channels - 8) % 3 ~= 0 then
      refuse("Part of a channel")
    end
    from:add(tree, fields.shape, channels)
  end
  from:finish()
end

local function payload_of_server(from, tree)
  local sid = from:add(tree, fields.sid, 4)
  limits(from, tree)
  local flags = from:take(2):le_uint()
  if flags > 2 then
    refuse("A reserved bit is set")
  elseif (flags == 1) ~= (sid:le_uint() == 0) then
    refuse("A number of a session, and a rejection")
  end
  if flags == 1 then
    local _, item = from:add(tree, fields.rejected, 2)
    item:add_proto_expert_info(experts.over, "The client is rejected")
  end
  from:add(tree, fields.reset_token, 16)
  if flags == 2 then
    from:add(tree, fields.ticket, 20)
  end
  bounded("The application's own", from:left(), 0, USER_MAX)
  from:add(tree, fields.user, from:left())
end

-- Returns whether the checksum is right, or cannot be checked.
local function check(tree, range, expected)
  local item = tree:add_le(fields.checksum, range)
  local status = expected == nil and 2 or (expected == range:le_uint() and 1 or 0)
  item:add(fields.checksum_status, range, status):set_generated()
  if status == 0 then
    item:add_proto_expert_info(experts.checksum, string.format("Wrong checksum, 0x%08x would be right", expected))
  end
  return status ~= 0
end

-- A handshake message. `payload` reads its part in the clear. `covered`: what its checksum covers before it, if known.
local function message(from, tree, count, suite, is_first, payload, covered)
  bounded("A message of the handshake", count, MESSAGE_MIN, MESSAGE_MAX)
  local start = from.at
  local inner = reader(from.tvb, start, start + count)
  local item = tree:add(fields.msg, from:take(count))
  if suite == CHECKED then
    local bytes = from.tvb(start, count - CHECKSUM_LEN):raw()
    inner:add(item, fields.salt, 8)
    inner.to = inner.to - CHECKSUM_LEN
    payload(inner, item)
    check(item, from.tvb(start + count - CHECKSUM_LEN, CHECKSUM_LEN), covered and crc32(covered, bytes))
    return bytes
  end
  inner:add(item, fields.ephemeral, 32)
  if is_first and math.floor(suite % HYBRID / 256) == NN then
    payload(inner, item)
  else
    inner:add(item, fields.encrypted, inner:left())
  end
end

-- How long a CONNECT is at least: padded with a hybrid suite, without a proof, and with a ticket in place of a cookie.
local function connect_least(suite, epoch)
  if suite >= HYBRID or epoch == NO_PROOF then
    return DATAGRAM_MAX
  end
  return epoch >= 0x80000000 and HELLO_MIN or 0
end

local function connect(from, tree, pinfo)
  local suite = version_and_suite(from, tree)
  local protocol_id = from:add(tree, fields.protocol_id, 8)
  local cid = from:add(tree, fields.cid, 8)
  local epoch = from:add(tree, fields.epoch, 4):le_uint()
  local cookie = from:add(tree, fields.cookie, 16)
  if epoch == NO_PROOF and cookie and not is_zero(cookie:raw()) then
    refuse("A cookie without a period")
  end
  local client_sid = from:add(tree, fields.sid, 4)
  local count = from:take(2):le_uint()
  bounded("A token", count, 0, TOKEN_MAX)
  local sealed = from:take(count)
  if sealed then
    token(sealed, tree)
  end
  local prologue = table.concat({
    "whitewater/1\0", from.tvb(1, 3):raw(), protocol_id:raw(), cid:raw(), client_sid:raw(), sealed and sealed:raw() or "",
  })
  local msg1 = message(from, tree, from:take(2):le_uint(), suite, true, payload_of_client, prologue)
  local least = connect_least(suite, epoch)
  if least > 0 then
    local len = math.max(from.to - from:left(), least)
    bounded("A padded CONNECT", from.to, len, len)
    local padding = from:left() > 0 and from:add(tree, fields.padding, from:left())
    if padding and not is_zero(padding:raw()) then
      refuse("Padding that is not zero")
    end
  end
  from:finish()
  learn_connect(pinfo, {
    suite = suite, cid = tostring(cid:le_uint64()), client_sid = client_sid:le_uint(), protocol_id = protocol_id:raw(),
    client_salt = msg1 and msg1:sub(1, 8), covered = msg1 and prologue .. msg1,
  })
end

local function accept(from, tree, pinfo)
  local suite = version_and_suite(from, tree)
  local cid = tostring(from:add(tree, fields.cid, 8):le_uint64())
  local count = from:take(2):le_uint()
  local known = attempts[source(pinfo) .. " " .. cid]
  local msg2 = message(from, tree, count, suite, false, payload_of_server, known and known.covered)
  from:finish()
  local attempt
  if msg2 then
    attempt = learn_accept(pinfo, cid, from.tvb(SERVER_SID_AT, 4):le_uint(), msg2:sub(1, 8))
  else
    attempt = learn_accept(pinfo, cid)
  end
  if attempt then
    tree:add(fields.handshake, attempt.number):set_generated()
  end
end

local function deny(from, tree)
  local versions = from:take(1)
  tree:add(fields.lowest, versions)
  tree:add(fields.highest, versions)
  local low, high = math.floor(versions:uint() / 16), versions:uint() % 16
  local why, item = from:add(tree, fields.denial, 2)
  from:add(tree, fields.cid, 8)
  from:add(tree, fields.retry_after, 4)
  from:finish()
  if low < 1 or low > high or not DENIALS[why:le_uint()] then
    refuse("Not what a DENY may say")
  end
  item:add_proto_expert_info(experts.over, "The server refuses, says somebody: " .. DENIALS[why:le_uint()])
end

local function reset(from, tree)
  local _, item = from:add(tree, fields.sid, 4)
  from:add(tree, fields.reset_token, 16)
  from:finish()
  item:add_proto_expert_info(experts.over, "The server knows no such session")
end

local function kem_key(from, tree)
  version(from, tree)
  from:add(tree, fields.cid, 8)
  from:add(tree, fields.kem_key, KEM_KEY_LEN)
  from:finish()
end

local function kem_ciphertext(from, tree)
  from:add(tree, fields.sid, 4)
  from:add(tree, fields.kem_ciphertext, KEM_CIPHERTEXT_LEN)
  from:add(tree, fields.tag, TAG_LEN)
  from:finish()
end

-- Frames ---------------------------------------------------------------------------------------------------------------------------

-- One segment with a compact header. `told` has what those before it in the frame say: `una`, and of a PUSH its `sn`.
local function segment(from, tree, told, is_first)
  local flags = from:take(1)
  local bits, kind = flags:uint(), flags:uint() % 8
  local function has(flag)
    return math.floor(bits / flag) % 2 == 1
  end
  tree:add(fields.kcp_kind, flags)
  if has(128) and (not is_first or from:add(tree, fields.kcp_channel, 1):uint() == 0) then
    refuse("A channel that may not be there")
  end
  if has(8) and from:add(tree, fields.kcp_frg, 1):uint() == 0 then
    refuse("A number of fragments that may not be there")
  end
  if has(16) then
    from:add(tree, fields.kcp_wnd, 2)
  end
  if has(32) then
    told.una = from:add(tree, fields.kcp_una, 3):le_uint()
  end
  local before = kind == 1 and told.sn and told.sn + 1 or kind == 2 and told.una and told.una - 1
  if (kind == 1 or kind == 2) and not before then
    refuse("A segment that refers to none")
  end
  local sn = before and before % 0x1000000
  if kind == 0 or kind == 2 or kind == 3 or kind == 7 then
    from:add(tree, fields.kcp_ts, 2)
  end
  if kind == 0 or kind == 3 or kind == 4 or kind == 7 then
    sn = from:add(tree, fields.kcp_sn, 3):le_uint()
  elseif sn then
    tree:add(fields.kcp_sn, sn):set_generated()
  end
  local has_data = kind == 0 or kind == 1 or kind == 7
  if has(64) and not has_data then
    refuse("A length that may not be there")
  end
  local len = has(64) and from:add(tree, fields.kcp_len, 2):le_uint() or has_data and from:left() or 0
  if len > 0 then
    from:add(tree, fields.kcp_data, len)
  end
  if kind == 7 and len == 0 then
    refuse("A repair of nothing")
  elseif has(64) and from:left() == 0 then
    refuse("A length of the last segment")
  end
  told.sn = (kind == 0 or kind == 1) and sn or nil
end

-- The packet was accepted, and its receiver ends the session if these are refused.
local function segments(tvb, tree)
  local item = tree:add(fields.segments, tvb())
  local from, told = reader(tvb, 0, tvb:len()), {}
  local is_right, why = pcall(function()
    while from:left() > 0 do
      segment(from, item, told, from.at == 0)
    end
  end)
  if not is_right and getmetatable(why) ~= Refused then
    error(why, 0)
  elseif not is_right then
    item:add_proto_expert_info(experts.segments, why.why)
  end
end

-- A part of a KCP frame. Once the body is known to be valid, `join` looks for the whole.
local function part(range, item)
  if not range then
    refuse("No part of a frame")
  end
  local from = reader(range, 0, range:len())
  local number = from:add(item, fields.part_number, 2):le_uint()
  local id = from:add(item, fields.part_id, 1):uint()
  local last = from:add(item, fields.part_last, 1):uint()
  if last == 0 or id > last or from:left() == 0 then
    refuse("No part of a frame")
  end
  local bytes = from:add(item, fields.part, from:left()):raw()
  item:append_text(string.format(", frame %d, part %d of 0 to %d", number, id, last))
  return { number = number, id = id, last = last, bytes = bytes, at = range:offset(), item = item }
end

-- Whether a part has the length of the others of its frame. Only the last may be shorter.
local function fits(whole, found)
  local len = #found.bytes
  if found.last ~= whole.last then
    return false
  elseif found.id == found.last then
    return len <= (whole.len or len)
  end
  return len == (whole.len or len) and len >= #(whole[whole.last] or "")
end

-- Adds a part to its frame. Returns that frame, or false if the part does not fit.
local function put(found, pinfo, flow, key)
  local numbers = joining[flow] or {}
  joining[flow] = numbers
  local whole = numbers[found.number]
  if not whole or (whole.complete and whole[found.id] ~= found.bytes) then
    whole = { last = found.last, frames = {}, count = 0 }
    numbers[found.number] = whole
    numbers[(found.number - FRAMES_JOINING_MAX) % 65536] = nil -- as its receiver does; the number is reused
  end
  if not fits(whole, found) then
    return false
  elseif not whole[found.id] then
    whole[found.id], whole.frames[found.id], whole.count = found.bytes, pinfo.number, whole.count + 1
    whole.len = found.id < found.last and #found.bytes or whole.len
    if whole.count > whole.last then
      whole.complete = table.concat(whole, "", 0, whole.last)
      whole.joined_in, whole.joined_at = pinfo.number, key
    end
  end
  return whole
end

-- Shows the frame of a part: where it is complete, all parts and the segments; elsewhere, a reference to that.
local function join(found, pinfo, flow)
  local key = pinfo.number .. " " .. found.at
  if not pinfo.visited then
    joined_of_part[key] = put(found, pinfo, flow, key)
  end
  local whole, item = joined_of_part[key], found.item
  if whole == false then
    item:add_proto_expert_info(experts.misfit, "It does not go together with the other parts")
  elseif whole and whole.joined_at == key then
    for id = 0, whole.last do
      item:add(fields.part_in, whole.frames[id]):set_generated()
    end
    segments(ByteArray.new(whole.complete, true):tvb("KCP frame of " .. whole.count .. " parts"), item)
  elseif whole and whole.joined_in then
    item:add(fields.joined_in, whole.joined_in):set_generated()
  end
end

local function close(from, item)
  local reason, reason_item = from:add(item, fields.close_reason, 2)
  local words = REASONS[reason:le_uint()]
  if words then
    reason_item:append_text(" (" .. words .. ")")
  end
  local count = from:take(1):uint()
  bounded("A text", count, 0, CLOSE_TEXT_MAX)
  local text = from:take(count)
  if text then
    item:add_packet_field(fields.close_text, text, ENC_UTF_8)
  end
  item:add_proto_expert_info(experts.over, "The session is over")
end

-- The content of a frame of a known type.
local FRAME_READERS = {
  [PAD] = function(from, item)
    local zeros = from:add(item, fields.pad, from:left())
    if zeros and not is_zero(zeros:raw()) then
      refuse("Padding that is not zero")
    end
  end,
  [ACK] = function(from, item)
    from:add(item, fields.ack, 2)
    from:add(item, fields.ack_bits, 4)
    from:add(item, fields.ack_delay, 2)
  end,
  [PING] = function(from, item) from:add(item, fields.ping, 8) end,
  [PONG] = function(from, item) from:add(item, fields.ping, 8) end,
  [PATH_CHALLENGE] = function(from, item) from:add(item, fields.path, 8) end,
  [PATH_RESPONSE] = function(from, item) from:add(item, fields.path, 8) end,
  [CLOSE] = close,
  [ECN] = function(from, item)
    from:add(item, fields.unmarked, 4)
    from:add(item, fields.capable, 4)
    from:add(item, fields.congested, 4)
  end,
  [LOSS] = function(from, item)
    from:add(item, fields.loss_newest, 2)
    from:add(item, fields.loss_rebuilt, 4)
    from:add(item, fields.loss_share, 1)
  end,
  [REKEY] = function(from, item)
    from:add(item, fields.rekey_phase, 2)
    from:add(item, fields.rekey, 32)
  end,
  [NEW_ID] = function(from, item)
    from:add(item, fields.new_sid, 4)
    from:add(item, fields.new_token, 16)
  end,
  [COPY] = function() end,
}
local CONTENTS = { [DGRAM] = fields.dgram, [REDIRECT] = fields.redirect, [PACKED] = fields.packed }

-- The bytes of a frame of any length.
local function content(from, item, extends)
  if extends then
    return from:take(from:left())
  end
  local count = from:add(item, fields.frame_len, 2):le_uint()
  local range = from:take(count)
  if from:left() == 0 then
    refuse("The last frame has a length")
  end
  return range
end

-- A REPAIR: the first packet that it covers, and the rest as in repairs of KCP.
local function repair(range, item)
  if not range or range:len() < 4 then
    refuse("A repair of no packet")
  end
  item:add_le(fields.repair_first, range(0, 4))
  if range:len() > 4 then
    item:add(fields.repair, range(4))
  end
end

-- Adds the next frame. Returns its name, and the part if it is one.
local function frame(from, tree, pinfo)
  local start = from.at
  local item = tree:add(fields.frame, from.tvb(start, from:left()))
  local first = from:take(1)
  local found, extends = first:uint() % 128, first:uint() >= 128
  item:add(fields.frame_type, first)
  item:add(fields.frame_end, first)
  local name = FRAMES[found] or ("frame " .. found)
  item:set_text("Frame: " .. name)
  local found_part
  if OF_ANY_LENGTH[found] then
    local range = content(from, item, extends)
    if found == KCP_PART then
      found_part = part(range, item)
    elseif found == REPAIR then
      repair(range, item)
    elseif range and found == KCP then
      segments(range:tvb(), item)
    elseif found == KCP then
      item:add_proto_expert_info(experts.segments, "No segment")
    elseif range then
      item:add(CONTENTS[found], range)
    end
  elseif FRAME_READERS[found] and not extends then
    FRAME_READERS[found](from, item)
  else
    local rest = from:take(from:left())
    if rest then
      item:add(fields.unknown, rest)
    end
    item:add_proto_expert_info(experts.unknown, "No frame that is known here, so where it ends is not known either")
  end
  item:set_len(from.at - start)
  return name, found_part
end

-- The frames from `from` to `to`. Returns their names, and the parts among them.
local function frames(from, tree, pinfo)
  local names, parts = {}, {}
  while from:left() > 0 do
    if #names == FRAMES_MAX then
      refuse("More than 64 frames")
    end
    names[#names + 1], parts[#parts + 1] = frame(from, tree, pinfo)
    if names[#names] == "REPAIR" and #names > 1 then
      refuse("A repair behind another frame")
    end
    if names[#names] == "COPY" and #names > 1 then
      refuse("A copy behind another frame")
    end
  end
  return #names > 0 and table.concat(names, ", ") or "empty", parts
end

local function data(from, tree, pinfo, kind)
  local sid = from:add(tree, fields.sid, 4):le_uint()
  if from:left() < 4 + CHECKSUM_LEN then
    refuse("DATA of " .. from.to .. " bytes")
  end
  local session = find_session(pinfo, sid)
  if session then
    tree:add(fields.handshake, session.number):set_generated()
  end
  local is_checked = ww.prefs.assume_checked or from:left() < 4 + TAG_LEN -- too short to be encrypted
  if session then
    is_checked = session.suite == CHECKED
  end
  if not is_checked then
    local words = string.format("DATA sid=0x%08x", sid)
    pinfo.cols.info = words
    from:add(tree, fields.pn_masked, 4)
    if from:left() < TAG_LEN then
      refuse("DATA of " .. from.to .. " bytes, which has no tag")
    end
    from:add(tree, fields.encrypted, from:left() - TAG_LEN)
    from:add(tree, fields.tag, TAG_LEN)
    return words .. (session and ", encrypted" or ", of a session whose handshake was not captured")
  end
  tree:add(fields.phase, from.tvb(0, 1), kind - DATA):set_generated()
  local words = string.format("DATA sid=0x%08x pn=%d", sid, from:add(tree, fields.pn, 4):le_uint())
  pinfo.cols.info = words
  local expected
  if session and session.server_salt then
    local salt = xor_bytes(session.client_salt, session.server_salt)
    expected = crc32(salt, session.protocol_id, from.tvb(0, from.to - CHECKSUM_LEN):raw())
  end
  local may_be_right = check(tree, from.tvb(from.to - CHECKSUM_LEN, CHECKSUM_LEN), expected)
  if kind ~= DATA then
    refuse("Another key phase than 0 without a key")
  end
  local names, parts = frames(reader(from.tvb, from.at, from.to - CHECKSUM_LEN), tree, pinfo)
  for _, found in ipairs(may_be_right and parts or {}) do
    join(found, pinfo, table.concat({ source(pinfo), destination(pinfo), sid }, " "))
  end
  return words .. ": " .. names
end

-- The datagram -----------------------------------------------------------------------------------------------------------------------

local READERS = {
  [HELLO] = hello, [CHALLENGE] = challenge, [CONNECT] = connect, [ACCEPT] = accept, [DENY] = deny, [DATA] = data,
  [DATA_PHASE_1] = data, [RESET] = reset, [KEM_KEY] = kem_key, [KEM_CIPHERTEXT] = kem_ciphertext,
}

-- A datagram without its routing token, and that.
local function split(tvb, pinfo, kind)
  local is_data = kind == DATA or kind == DATA_PHASE_1
  local is_to_server = kind == HELLO or kind == CONNECT or kind == KEM_CIPHERTEXT or is_data and servers[destination(pinfo)]
  local len = tvb:len() - ww.prefs.routing_token
  if ww.prefs.routing_token == 0 or not is_to_server or len <= 0 or tvb:len() < tvb:reported_len() then
    return tvb
  end
  return tvb(0, len):tvb(), tvb(len)
end

local function read(tvb, tree, pinfo, kind)
  local from = reader(tvb, 1, tvb:len())
  if READERS[kind] ~= data then
    bounded(KINDS[kind], tvb:reported_len(), 0, DATAGRAM_MAX)
  end
  return READERS[kind](from, tree, pinfo, kind) or KINDS[kind]
end

function ww.dissector(tvb, pinfo, tree)
  local kind = tvb:len() > 0 and tvb(0, 1):uint() or 0
  local found, kcp = pcall(Dissector.get, "kcp")
  if not KINDS[kind] and found and kcp then
    return kcp:call(tvb, pinfo, tree) -- bare KCP may share the port
  end
  pinfo.cols.protocol = "WW"
  local top = tree:add(ww, tvb())
  if not KINDS[kind] then
    top:add_proto_expert_info(experts.malformed, "No packet of WW/1")
    pinfo.cols.info = "No packet of WW/1"
    return tvb:len()
  end
  pinfo.cols.info = KINDS[kind]
  top:add(fields.kind, tvb(0, 1))
  top:append_text(", " .. KINDS[kind])
  local datagram, routing_token = split(tvb, pinfo, kind)
  if routing_token then
    top:add(fields.routing_token, routing_token)
  end
  local is_right, result = pcall(read, datagram, top, pinfo, kind)
  -- What KCP writes about the segments should not replace the columns of the packet list.
  pinfo.cols.protocol = "WW"
  if is_right then
    pinfo.cols.info = result
  elseif getmetatable(result) == Refused then
    local is_cut = tvb:len() < tvb:reported_len()
    local why = is_cut and "Not captured as a whole" or result.why
    top:add_proto_expert_info(is_cut and experts.unknown or experts.malformed, why)
    pinfo.cols.info = string.format("%s, refused: %s", KINDS[kind], why)
  else
    error(result, 0)
  end
  return tvb:len()
end

-- Whether a handshake packet is valid, as far as can be checked without reading all of it.
local LOOKS = {
  [HELLO] = function(tvb)
    return tvb:len() >= HELLO_MIN and tvb:len() <= DATAGRAM_MAX and is_zero(tvb(24):raw())
  end,
  [CHALLENGE] = function(tvb)
    return tvb:len() == CHALLENGE_LEN
  end,
  [CONNECT] = function(tvb)
    local token_len = tvb:len() >= 48 and tvb(44, 2):le_uint() or TOKEN_MAX + 1
    local len = token_len <= TOKEN_MAX and tvb:len() >= 48 + token_len and 48 + token_len + tvb(46 + token_len, 2):le_uint()
    local whole = len and math.max(len, connect_least(tvb(2, 2):le_uint(), tvb(20, 4):le_uint()))
    return tvb:len() == whole and (whole == len or is_zero(tvb(len):raw()))
  end,
  [ACCEPT] = function(tvb)
    return tvb:len() >= 14 and tvb:len() == 14 + tvb(12, 2):le_uint()
  end,
}

local function is_of_known_server(tvb, pinfo, kind)
  if kind == DENY then
    return tvb:len() == DENY_LEN and servers[source(pinfo)]
  elseif kind == RESET then
    return tvb:len() == RESET_LEN and servers[source(pinfo)]
  end
  local is_long_enough = tvb:len() >= DATA_HEADER_LEN + CHECKSUM_LEN
  return is_long_enough and (servers[source(pinfo)] or servers[destination(pinfo)])
end

local function heuristic(tvb, pinfo, tree)
  if tvb:len() < tvb:reported_len() or tvb:len() < DATA_HEADER_LEN + CHECKSUM_LEN then
    return false
  end
  local kind = tvb(0, 1):uint()
  if LOOKS[kind] then
    local datagram = split(tvb, pinfo, kind)
    if tvb(1, 1):uint() ~= VERSION or not SUITES[tvb(2, 2):le_uint()] or not LOOKS[kind](datagram) then
      return false
    end
    pinfo.conversation = ww
  elseif not KINDS[kind] or not is_of_known_server(tvb, pinfo, kind) then
    return false
  end
  ww.dissector(tvb, pinfo, tree)
  return true
end

local udp_ports = DissectorTable.get("udp.port")
local registered = ""

function ww.prefs_changed()
  if registered ~= "" then
    udp_ports:remove(registered, ww)
  end
  registered = ww.prefs.ports
  if registered ~= "" then
    udp_ports:add(registered, ww)
  end
end

udp_ports:add_for_decode_as(ww)
ww:register_heuristic("udp", heuristic)
