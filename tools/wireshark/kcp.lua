-- KCP for Wireshark: every segment of a datagram, and the repairs that this project adds. docs/WIRE.md describes the
-- bytes.
--
-- A datagram is dissected as KCP if a preference or "Decode As" says so, and otherwise only if it consists of segments
-- of a single conversation. whitewater.lua also calls this for the segments in a session.

local kcp = Proto("kcp", "KCP")

local PUSH, ACK, WASK, WINS = 81, 82, 83, 84
local COMMANDS = { [PUSH] = "PUSH", [ACK] = "ACK", [WASK] = "WASK", [WINS] = "WINS" }
local HEADER_LEN = 24
local SEGMENTS_IN_INFO = 4

local fields = {
  segment = ProtoField.none("kcp.segment", "Segment"),
  conv = ProtoField.uint32("kcp.conv", "Conversation (conv)", base.HEX),
  cmd = ProtoField.uint8("kcp.cmd", "Command (cmd)", base.DEC, COMMANDS),
  frg = ProtoField.uint8("kcp.frg", "Fragments that follow (frg)"),
  wnd = ProtoField.uint16("kcp.wnd", "Receive window (wnd), segments"),
  ts = ProtoField.uint32("kcp.ts", "Timestamp (ts)"),
  sn = ProtoField.uint32("kcp.sn", "Number (sn)"),
  una = ProtoField.uint32("kcp.una", "Next number expected (una)"),
  len = ProtoField.uint32("kcp.len", "Bytes of data (len)"),
  data = ProtoField.bytes("kcp.data", "Data"),
  trailer = ProtoField.bytes("kcp.trailer", "Ignored bytes behind the last segment"),
  first_sent = ProtoField.framenum("kcp.first_sent", "Sent first in", base.NONE, frametype.RETRANS_PREV),
  loss = ProtoField.string("kcp.ack.loss", "Loss that its sender sees"),
  span = ProtoField.uint8("kcp.repair.span", "Segments from the first to the last covered", base.DEC, nil, 0x7f),
  holes = ProtoField.bool("kcp.repair.holes", "Not all of them are covered", 8, nil, 0x80),
  index = ProtoField.uint8("kcp.repair.index", "Index of the repair"),
  set = ProtoField.bytes("kcp.repair.set", "Which are covered"),
  sum = ProtoField.bytes("kcp.repair.sum", "Sum of their symbols"),
}
kcp.fields = fields

local experts = {
  malformed = ProtoExpert.new("kcp.malformed", "Refused", expert.group.MALFORMED, expert.severity.ERROR),
  ignored = ProtoExpert.new("kcp.ignored", "Ignored", expert.group.PROTOCOL, expert.severity.NOTE),
  resent = ProtoExpert.new("kcp.resent", "Sent again", expert.group.SEQUENCE, expert.severity.NOTE),
  closed = ProtoExpert.new("kcp.window_closed", "No room to receive", expert.group.SEQUENCE, expert.severity.CHAT),
  cut = ProtoExpert.new("kcp.cut", "Not captured as a whole", expert.group.UNDECODED, expert.severity.WARN),
}
kcp.experts = experts

kcp.prefs.ports = Pref.range("UDP ports", "", "Ports on which every datagram is KCP, for example 4000-4010,5000", 65535)

-- For each direction of a conversation: the frame in which each segment was first sent.
local sent = {}
-- For each frame: which of its segments had been sent before, and where. Only the first pass sees frames in order.
local resends = {}

function kcp.init()
  sent, resends = {}, {}
end

-- Where the segment was first sent, if that was in another frame.
local function first_sent(pinfo, conv, sn)
  local key = conv .. "/" .. sn
  local known = resends[pinfo.number]
  if pinfo.visited then
    return known and known[key]
  end
  local direction = table.concat({ tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port, conv }, " ")
  local numbers = sent[direction] or {}
  sent[direction] = numbers
  local first = numbers[sn]
  if first == nil then
    numbers[sn] = pinfo.number
  elseif first ~= pinfo.number then
    resends[pinfo.number] = known or {}
    resends[pinfo.number][key] = first
    return first
  end
end

-- The content of a WINS with data. Stock peers skip it.
local function repair(range, tree)
  local sub = tree:add(fields.segment, range):set_text("Repair")
  local malformed = function(why)
    sub:add_proto_expert_info(experts.ignored, why)
  end
  if range:len() < 2 then
    return malformed("No repair: too short")
  end
  sub:add(fields.span, range(0, 1))
  sub:add(fields.holes, range(0, 1))
  sub:add(fields.index, range(1, 1))
  local span, at = range(0, 1):uint() % 128, 2
  if range(0, 1):uint() >= 128 then
    local set = math.ceil(span / 8)
    if range:len() < at + set then
      return malformed("No repair: cut off")
    end
    if set > 0 then
      sub:add(fields.set, range(at, set))
    end
    at = at + set
  end
  if span < 1 or span > 64 or range:len() < at + 3 then
    return malformed("No repair: of 1 to 64 segments, with 3 bytes at least")
  end
  sub:add(fields.sum, range(at))
  local sn = range:len() - at
  sub:append_text(string.format(" of up to %d segments, %d bytes", span, sn))
end

-- Interprets the header and data by the command.
local function meaning(cmd, header, data, item, pinfo)
  local sn, frg = header(12, 4):le_uint(), header(5, 1):uint()
  if cmd == PUSH then
    local first = first_sent(pinfo, header(0, 4):le_uint(), sn)
    if first then
      item:add(fields.first_sent, first):set_generated()
      item:add_proto_expert_info(experts.resent, "Sent again")
    end
  elseif cmd == ACK and frg > 0 then
    item:add(fields.loss, header(5, 1), string.format("%.1f %%", (frg - 1) / 2.54)):set_generated()
  elseif cmd == WINS and data then
    repair(data, item)
  end
  if data and (cmd == ACK or cmd == WASK) then
    item:add_proto_expert_info(experts.ignored, "Data that no receiver looks at")
  end
  if header(6, 2):le_uint() == 0 then
    item:add_proto_expert_info(experts.closed, "No room to receive")
  end
end

local function describe(cmd, header, len)
  local name = COMMANDS[cmd] or ("command " .. cmd)
  if cmd == PUSH then
    return string.format("%s sn=%d len=%d", name, header(12, 4):le_uint(), len)
  elseif cmd == ACK then
    return string.format("%s sn=%d", name, header(12, 4):le_uint())
  elseif cmd == WINS and len > 0 then
    return string.format("repair from sn=%d len=%d", header(12, 4):le_uint(), len)
  end
  return string.format("%s wnd=%d", name, header(6, 2):le_uint())
end

-- Adds the segment at `at`. Returns a description and where it ends, or nothing if it is incomplete.
local function segment(tvb, at, pinfo, tree)
  local header = tvb(at, HEADER_LEN)
  local cmd, len = header(4, 1):uint(), header(20, 4):le_uint()
  local left = tvb:len() - at - HEADER_LEN
  local item = tree:add(fields.segment, tvb(at, HEADER_LEN + math.min(len, left)))
  local words = describe(cmd, header, len)
  item:set_text("Segment: " .. words)
  for _, field in ipairs({ { "conv", 0, 4 }, { "cmd", 4, 1 }, { "frg", 5, 1 }, { "wnd", 6, 2 }, { "ts", 8, 4 },
    { "sn", 12, 4 }, { "una", 16, 4 }, { "len", 20, 4 } }) do
    item:add_le(fields[field[1]], header(field[2], field[3]))
  end
  if COMMANDS[cmd] == nil then
    item:add_proto_expert_info(experts.malformed, "No command: " .. cmd)
    return words
  end
  if header(0, 4):le_uint() ~= tvb(0, 4):le_uint() then
    item:add_proto_expert_info(experts.malformed, "Another conversation than the first segment")
  end
  if len > left then
    local is_cut = tvb:len() < tvb:reported_len()
    local why = string.format("%d bytes announced, %d there", len, left)
    item:add_proto_expert_info(is_cut and experts.cut or experts.malformed, why)
    return words
  end
  local data = len > 0 and tvb(at + HEADER_LEN, len) or nil
  if data then
    item:add(fields.data, data)
  end
  meaning(cmd, header, data, item, pinfo)
  return words, at + HEADER_LEN + len
end

function kcp.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "KCP"
  local top = tree:add(kcp, tvb())
  if tvb:len() < HEADER_LEN then
    local expert_info = tvb:len() < tvb:reported_len() and experts.cut or experts.malformed
    top:add_proto_expert_info(expert_info, string.format("Too short: %d bytes", tvb:len()))
    pinfo.cols.info = "KCP, too short"
    return tvb:len()
  end
  local at, info, count = 0, {}, 0
  while at and tvb:len() - at >= HEADER_LEN do
    local words
    words, at = segment(tvb, at, pinfo, top)
    count = count + 1
    if count <= SEGMENTS_IN_INFO then
      info[count] = words
    end
  end
  if at and at < tvb:len() then
    top:add(fields.trailer, tvb(at)):add_proto_expert_info(experts.ignored, "Fewer bytes than a header")
  end
  if count > SEGMENTS_IN_INFO then
    info[#info + 1] = string.format("%d more", count - SEGMENTS_IN_INFO)
  end
  top:append_text(string.format(", conv 0x%08x, %d segments", tvb(0, 4):le_uint(), count))
  pinfo.cols.info = string.format("conv=0x%08x una=%d: %s", tvb(0, 4):le_uint(), tvb(16, 4):le_uint(), table.concat(info, ", "))
  return tvb:len()
end

-- Whether all bytes are segments of one conversation. Random bytes pass about once in 2^38 datagrams.
local function is_kcp(tvb)
  local at = 0
  while at < tvb:len() do
    if tvb:len() - at < HEADER_LEN or tvb(at, 4):le_uint() ~= tvb(0, 4):le_uint() then
      return false
    end
    local cmd, len = tvb(at + 4, 1):uint(), tvb(at + 20, 4):le_uint()
    local may_have_data = cmd == PUSH or cmd == WINS
    if COMMANDS[cmd] == nil or (len > 0 and not may_have_data) or len > tvb:len() - at - HEADER_LEN then
      return false
    end
    at = at + HEADER_LEN + len
  end
  return at > 0
end

local function heuristic(tvb, pinfo, tree)
  if tvb:len() < tvb:reported_len() or not is_kcp(tvb) then
    return false
  end
  pinfo.conversation = kcp
  kcp.dissector(tvb, pinfo, tree)
  return true
end

local udp_ports = DissectorTable.get("udp.port")
local registered = ""

function kcp.prefs_changed()
  if registered ~= "" then
    udp_ports:remove(registered, kcp)
  end
  registered = kcp.prefs.ports
  if registered ~= "" then
    udp_ports:add(registered, kcp)
  end
end

udp_ports:add_for_decode_as(kcp)
kcp:register_heuristic("udp", heuristic)
