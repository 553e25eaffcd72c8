-- The servers of a fleet in Redis, with the rules of fleet.rs. A script is atomic, so replicas of the matchmaker never give a place twice. The time is
-- that of Redis. Each key begins with "whitewater:" and the name of the fleet and ":".
--
--   fleet            zset  server -> when its lease lapses
--   server:SERVER    hash  report, region, capacity, players, draining, drain; outlives the lease like the reservations
--   reserved:SERVER  zset  client -> when the reservation ends
--   held:CLIENT      zset  server -> the same
--   ends             zset  "SERVER CLIENT" -> the same, for all servers
--   free:REGION      zset  server with a lease that takes players -> its free places; "free:" is for all regions
local verb, name = ARGV[1], 'whitewater:' .. ARGV[2] .. ':'
local lease, kept, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Writes the free places of a server anew.
local function index(server)
  local region, capacity, players, draining, drain =
    unpack(redis.call('HMGET', name .. 'server:' .. server, 'region', 'capacity', 'players', 'draining', 'drain'))
  if not region then return end
  local lapses = redis.call('ZSCORE', name .. 'fleet', server)
  local free = capacity and capacity - players - redis.call('ZCARD', name .. 'reserved:' .. server)
  local is_open = lapses and tonumber(lapses) > now and draining == '0' and not drain
  for _, key in ipairs({ name .. 'free:', name .. 'free:' .. region }) do
    if is_open then redis.call('ZADD', key, free, server) else redis.call('ZREM', key, server) end
  end
end

local function free(server, client)
  redis.call('ZREM', name .. 'reserved:' .. server, client)
  redis.call('ZREM', name .. 'held:' .. client, server)
  redis.call('ZREM', name .. 'ends', server .. ' ' .. client)
end

-- Ends what is over. Each call does a part of it, so that none takes long: what is left over is only taken for full.
local function sweep()
  for _, server in ipairs(redis.call('ZRANGEBYSCORE', name .. 'fleet', '-inf', now)) do
    redis.call('ZREM', name .. 'fleet', server)
    index(server)
    redis.call('PEXPIRE', name .. 'server:' .. server, kept)
  end
  local changed = {}
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', name .. 'ends', '-inf', now, 'LIMIT', 0, 1000)) do
    local server, client = string.match(entry, '^(%d+) (%d+)$')
    free(server, client)
    changed[server] = true
  end
  for server in pairs(changed) do index(server) end
end

local verbs = {}

-- SERVER REPORT REGION CAPACITY PLAYERS DRAINING ARRIVED.. -> drain as 0 or 1; -1: there is no room for another server
function verbs.report(server, report, region, capacity, players, draining, ...)
  local is_known = redis.call('ZSCORE', name .. 'fleet', server)
  if not is_known and redis.call('ZCARD', name .. 'fleet') >= most then return -1 end
  local key = name .. 'server:' .. server
  local before = redis.call('HGET', key, 'region')
  if before and before ~= region then redis.call('ZREM', name .. 'free:' .. before, server) end
  redis.call('HSET', key, 'report', report, 'region', region, 'capacity', capacity, 'players', players, 'draining', draining)
  redis.call('PERSIST', key)
  redis.call('ZADD', name .. 'fleet', now + lease, server)
  for _, client in ipairs({ ... }) do free(server, client) end
  index(server)
  return redis.call('HEXISTS', key, 'drain')
end

-- SERVER
function verbs.remove(server)
  local key = name .. 'server:' .. server
  local region = redis.call('HGET', key, 'region')
  for _, client in ipairs(redis.call('ZRANGE', name .. 'reserved:' .. server, 0, -1)) do free(server, client) end
  redis.call('ZREM', name .. 'fleet', server)
  redis.call('ZREM', name .. 'free:', server)
  if region then redis.call('ZREM', name .. 'free:' .. region, server) end
  return redis.call('DEL', key)
end

-- SERVER -> 1, or 0: there is no such server
function verbs.drain(server)
  if not redis.call('ZSCORE', name .. 'fleet', server) then return 0 end
  redis.call('HSET', name .. 'server:' .. server, 'drain', 1)
  index(server)
  return 1
end

-- The server with an entry in a key of free places where all clients hold places, if there is one.
local function holding(key, from, clients)
  for _, server in ipairs(redis.call('ZRANGE', name .. 'held:' .. clients[1], 0, -1)) do
    local is_holding = server ~= from and redis.call('ZSCORE', key, server)
    for at = 2, #clients do is_holding = is_holding and redis.call('ZSCORE', name .. 'reserved:' .. server, clients[at]) end
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
  if from ~= '' and not redis.call('ZSCORE', name .. 'fleet', from) then return { 'no lease' } end
  local rest = { ... }
  regions = tonumber(regions)
  local clients = { unpack(rest, regions + 1) }
  for _, find in ipairs({ holding, fullest }) do
    for at = 1, math.max(regions, 1) do
      local server = find(name .. 'free:' .. (regions > 0 and rest[at] or ''), from, clients)
      if server then
        for _, client in ipairs(clients) do
          redis.call('ZADD', name .. 'reserved:' .. server, now + kept, client)
          redis.call('ZADD', name .. 'held:' .. client, now + kept, server)
          redis.call('ZADD', name .. 'ends', now + kept, server .. ' ' .. client)
        end
        index(server)
        return { server, redis.call('HGET', name .. 'server:' .. server, 'report') }
      end
    end
  end
  return {}
end

-- -> SERVER REPORT RESERVED DRAIN LEASE.., for each server
function verbs.list()
  local list = {}
  for _, server in ipairs(redis.call('ZRANGE', name .. 'fleet', 0, -1)) do
    local key = name .. 'server:' .. server
    local lapses = redis.call('ZSCORE', name .. 'fleet', server)
    local reserved = redis.call('ZCARD', name .. 'reserved:' .. server)
    table.insert(list, { server, redis.call('HGET', key, 'report'), tostring(reserved), tostring(redis.call('HEXISTS', key, 'drain')),
      string.format('%d', lapses - now) })
  end
  return list
end

sweep()
return verbs[verb](unpack(ARGV, 6))
