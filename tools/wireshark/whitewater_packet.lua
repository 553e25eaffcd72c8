-- Packets of whitewater's packet::Endpoint for Wireshark: acknowledged and never resent. docs/WIRE.md describes the
-- bytes.
--
-- Nothing identifies them but the application's protocol id. A preference names it; then only datagrams that begin with
-- it, and in which every bit is right, are dissected. Or a preference names ports, on which everything is dissected.

local packet = Proto("wwp", "Whitewater packet")

local fields = {
  protocol_id = ProtoField.uint32("wwp.protocol_id", "Protocol id", base.HEX),
  prefix = ProtoField.uint8("wwp.prefix", "Prefix", base.HEX),
  is_fragment = ProtoField.bool("wwp.prefix.fragment", "Is a fragment", 8, nil, 0x01),
  has_acks = ProtoField.bool("wwp.prefix.acks", "Tells what has been received", 8, nil, 0x02),
  is_far = ProtoField.bool("wwp.prefix.far", "Tells the newest itself, not its distance", 8, nil, 0x04),
  told = ProtoField.uint8("wwp.prefix.told", "Bytes of ack_bits that have a 0", base.HEX, nil, 0x78),
  sequence = ProtoField.uint16("wwp.sequence", "Packet"),
  id = ProtoField.uint8("wwp.fragment.id", "Fragment"),
  last = ProtoField.uint8("wwp.fragment.last", "Last fragment"),
  ack = ProtoField.uint16("wwp.ack", "Newest packet received"),
  bits = ProtoField.uint32("wwp.ack_bits", "Received of the 32 before it", base.HEX),
  payload = ProtoField.bytes("wwp.payload", "Payload"),
}
packet.fields = fields

local malformed = ProtoExpert.new("wwp.malformed", "Refused", expert.group.MALFORMED, expert.severity.ERROR)
packet.experts = { malformed }

packet.prefs.protocol_id = Pref.string("Protocol id", "", "Of the application, in hex, for example 7061636b; empty: none is looked for")
packet.prefs.ports = Pref.range("UDP ports", "", "Ports on which every datagram is a packet", 65535)

-- Parses the header into values with their bytes, or returns why it is invalid.
local function parse(tvb)
  local at = 0
  local function take(count)
    if tvb:len() - at < count then
      return nil
    end
    at = at + count
    return tvb(at - count, count)
  end
  local found = { protocol_id = take(4), prefix = take(1), sequence = take(2) }
  if not found.sequence then
    return nil, "Truncated"
  end
  local flags = found.prefix:uint()
  local function has(bit)
    return flags % (2 * bit) >= bit
  end
  if has(0x01) then
    found.id, found.last = take(1), take(1)
    if not found.last then
      return nil, "Truncated"
    end
    if found.last:uint() == 0 or found.id:uint() > found.last:uint() then
      return nil, "No such fragment"
    end
  end
  local may_have_acks = not found.id or found.id:uint() == 0
  if flags >= 0x80 or (flags > 1 and not (has(0x02) and may_have_acks)) then
    return nil, "No such prefix"
  end
  if has(0x02) then
    local from = at
    local newest = take(has(0x04) and 2 or 1)
    if not newest then
      return nil, "Truncated"
    end
    local sequence = found.sequence:le_uint()
    found.ack_range = newest
    found.ack = has(0x04) and newest:le_uint() or (sequence - newest:uint()) % 65536
    if has(0x04) and (sequence - found.ack) % 65536 <= 255 then
      return nil, "A distance that fits a byte, told in two"
    end
    found.bits = 0
    for byte = 0, 3 do
      local value = 255
      if has(0x08 * 2 ^ byte) then
        local range = take(1)
        if not range then
          return nil, "Truncated"
        end
        value = range:uint()
        if value == 255 then
          return nil, "A byte of ack_bits that is all ones, told"
        end
      end
      found.bits = found.bits + math.floor(value * 256 ^ byte)
    end
    found.bits_range = tvb(from, at - from)
  end
  if found.id and at == tvb:len() then
    return nil, "A fragment without data"
  end
  found.at = at
  return found
end

function packet.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "WWP"
  local top = tree:add(packet, tvb())
  local found, why = parse(tvb)
  if not found then
    top:add_proto_expert_info(malformed, why)
    pinfo.cols.info = "No packet: " .. why
    return tvb:len()
  end
  top:add_le(fields.protocol_id, found.protocol_id)
  local prefix = top:add(fields.prefix, found.prefix)
  for _, name in ipairs({ "is_fragment", "has_acks", "is_far", "told" }) do
    prefix:add(fields[name], found.prefix)
  end
  top:add_le(fields.sequence, found.sequence)
  local info = string.format("packet %d", found.sequence:le_uint())
  if found.id then
    top:add(fields.id, found.id)
    top:add(fields.last, found.last)
    info = info .. string.format(" fragment %d of 0 to %d", found.id:uint(), found.last:uint())
  end
  if found.ack then
    top:add(fields.ack, found.ack_range, found.ack)
    top:add(fields.bits, found.bits_range, found.bits)
    info = info .. string.format(" ack=%d bits=0x%08x", found.ack, found.bits)
  end
  if found.at < tvb:len() then
    top:add(fields.payload, tvb(found.at))
  end
  pinfo.cols.info = string.format("%s len=%d", info, tvb:len() - found.at)
  return tvb:len()
end

local function heuristic(tvb, pinfo, tree)
  local wanted = tonumber(packet.prefs.protocol_id, 16)
  if not wanted or tvb:len() < 7 or tvb(0, 4):le_uint() ~= wanted or not parse(tvb) then
    return false
  end
  packet.dissector(tvb, pinfo, tree)
  return true
end

local udp_ports = DissectorTable.get("udp.port")
local registered = ""

function packet.prefs_changed()
  if registered ~= "" then
    udp_ports:remove(registered, packet)
  end
  registered = packet.prefs.ports
  if registered ~= "" then
    udp_ports:add(registered, packet)
  end
end

udp_ports:add_for_decode_as(packet)
packet:register_heuristic("udp", heuristic)
