-- The servers of a fleet in Redis, with the rules of fleet.rs. A script is atomic, so replicas of the matchmaker never give a place twice. The time is
-- that of Redis.
--
--   ww:fleet            zset  server -> when its lease lapses
--   ww:server:SERVER    hash  report, region, capacity, players, draining, drain; outlives the lease like the reservations
--   ww:reserved:SERVER  zset  client -> when the reservation ends
--   ww:held:CLIENT      zset  server -> the same
--   ww:ends             zset  "SERVER CLIENT" -> the same, for all servers
--   ww:free:REGION      zset  server with a lease that takes players -> its free places; "ww:free:" is for all regions
local verb, lease, kept, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Writes the free places of a server anew.
local function index(server)
  local region, capacity, players, draining, drain =
    unpack(redis.call('HMGET', 'ww:server:' .. server, 'region', 'capacity', 'players', 'draining', 'drain'))
  if not region then return end
  local lapses = redis.call('ZSCORE', 'ww:fleet', server)
  local free = capacity and capacity - players - redis.call('ZCARD', 'ww:reserved:' .. server)
  local is_open = lapses and tonumber(lapses) > now and draining == '0' and not drain
  for _, key in ipairs({ 'ww:free:', 'ww:free:' .. region }) do
    if is_open then redis.call('ZADD', key, free, server) else redis.call('ZREM', key, server) end
  end
end

local function free(server, client)
  redis.call('ZREM', 'ww:reserved:' .. server, client)
  redis.call('ZREM', 'ww:held:' .. client, server)
  redis.call('ZREM', 'ww:ends', server .. ' ' .. client)
end

-- Ends what is over. Each call does a part of it, so that none takes long: what is left over is only taken for full.
local function sweep()
  for _, server in ipairs(redis.call('ZRANGEBYSCORE', 'ww:fleet', '-inf', now)) do
    redis.call('ZREM', 'ww:fleet', server)
    index(server)
    redis.call('PEXPIRE', 'ww:server:' .. server, kept)
  end
  local changed = {}
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', 'ww:ends', '-inf', now, 'LIMIT', 0, 1000)) do
    local server, client = string.match(entry, '^(%d+) (%d+)$')
    free(server, client)
    changed[server] = true
  end
  for server in pairs(changed) do index(server) end
end

local verbs = {}

-- SERVER REPORT REGION CAPACITY PLAYERS DRAINING ARRIVED.. -> drain as 0 or 1; -1: there is no room for another server
function verbs.report(server, report, region, capacity, players, draining, ...)
  local is_known = redis.call('ZSCORE', 'ww:fleet', server)
  if not is_known and redis.call('ZCARD', 'ww:fleet') >= most then return -1 end
  local key = 'ww:server:' .. server
  local before = redis.call('HGET', key, 'region')
  if before and before ~= region then redis.call('ZREM', 'ww:free:' .. before, server) end
  redis.call('HSET', key, 'report', report, 'region', region, 'capacity', capacity, 'players', players, 'draining', draining)
  redis.call('PERSIST', key)
  redis.call('ZADD', 'ww:fleet', now + lease, server)
  for _, client in ipairs({ ... }) do free(server, client) end
  index(server)
  return redis.call('HEXISTS', key, 'drain')
end

-- SERVER
function verbs.remove(server)
  local key = 'ww:server:' .. server
  local region = redis.call('HGET', key, 'region')
  for _, client in ipairs(redis.call('ZRANGE', 'ww:reserved:' .. server, 0, -1)) do free(server, client) end
  redis.call('ZREM', 'ww:fleet', server)
  redis.call('ZREM', 'ww:free:', server)
  if region then redis.call('ZREM', 'ww:free:' .. region, server) end
  return redis.call('DEL', key)
end

-- SERVER -> 1, or 0: there is no such server
function verbs.drain(server)
  if not redis.call('ZSCORE', 'ww:fleet', server) then return 0 end
  redis.call('HSET', 'ww:server:' .. server, 'drain', 1)
  index(server)
  return 1
end

-- The server with an entry in a key of free places where all clients hold places, if there is one.
local function holding(key, from, clients)
  for _, server in ipairs(redis.call('ZRANGE', 'ww:held:' .. clients[1], 0, -1)) do
    local is_holding = server ~= from and redis.call('ZSCORE', key, server)
    for at = 2, #clients do is_holding = is_holding and redis.call('ZSCORE', 'ww:reserved:' .. server, clients[at]) end
    if is_holding then return server end
  end
end

-- The fullest server with an entry in a key of free places that has as many.
local function fullest(key, from, clients)
  for _, server in ipairs(redis.call('ZRANGEBYSCORE', key, #clients, '+inf', 'LIMIT', 0, 2)) do
    if server ~= from then return server end
  end
end

-- FROM REGIONS REGION.. CLIENT.. -> SERVER REPORT; one word: FROM has no lease; or nothing
function verbs.join(from, regions, ...)
  if from ~= '' and not redis.call('ZSCORE', 'ww:fleet', from) then return { 'no lease' } end
  local rest = { ... }
  regions = tonumber(regions)
  local clients = { unpack(rest, regions + 1) }
  for _, find in ipairs({ holding, fullest }) do
    for at = 1, math.max(regions, 1) do
      local server = find('ww:free:' .. (regions > 0 and rest[at] or ''), from, clients)
      if server then
        for _, client in ipairs(clients) do
          redis.call('ZADD', 'ww:reserved:' .. server, now + kept, client)
          redis.call('ZADD', 'ww:held:' .. client, now + kept, server)
          redis.call('ZADD', 'ww:ends', now + kept, server .. ' ' .. client)
        end
        index(server)
        return { server, redis.call('HGET', 'ww:server:' .. server, 'report') }
      end
    end
  end
  return {}
end

-- -> SERVER REPORT RESERVED DRAIN LEASE.., for each server
function verbs.list()
  local list = {}
  for _, server in ipairs(redis.call('ZRANGE', 'ww:fleet', 0, -1)) do
    local key = 'ww:server:' .. server
    local lapses = redis.call('ZSCORE', 'ww:fleet', server)
    local reserved = redis.call('ZCARD', 'ww:reserved:' .. server)
    table.insert(list, { server, redis.call('HGET', key, 'report'), tostring(reserved), tostring(redis.call('HEXISTS', key, 'drain')),
      string.format('%d', lapses - now) })
  end
  return list
end

sweep()
return verbs[verb](unpack(ARGV, 5))
