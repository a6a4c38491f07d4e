-- Asks for the lease of a group.
-- KEYS: 1 lease, 2 state, 3 fence
-- ARGV: 1 holder, 2 TTL in ms, 3 highest term known, 4 '1' = first start
-- Gives: verdict, holder, remaining ms, term
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
local ttl = tonumber(ARGV[2])
local state = redis.call('HMGET', KEYS[2], 'born', 'quarantine', 'term', 'ttl', 'seen', 'drained')
local term = tonumber(state[3]) or 0

local function answer(verdict, holder, remaining)
  return { verdict, holder or '', string.format('%.0f', remaining), string.format('%.0f', term) }
end

local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
  -- A key of another type is nobody's of ours, and is never taken.
  return answer('held', '', -1)
end

-- A group without a birth mark has lost its data or never had any: an old leader may still believe.
local quarantine = math.max(tonumber(state[2]) or 0, ttl)
local born = tonumber(state[1])
if not born or born > now then
  local fresh = ARGV[4] == '1' and not state[1] and not held
  born = fresh and now - quarantine or now
  redis.call('HSET', KEYS[2], 'born', string.format('%.0f', born), 'quarantine', string.format('%.0f', quarantine))
elseif quarantine ~= tonumber(state[2]) then
  redis.call('HSET', KEYS[2], 'quarantine', string.format('%.0f', quarantine))
end

if held and held ~= ARGV[1] then
  return answer('held', held, redis.call('PTTL', KEYS[1]))
end

local wait = born + quarantine - now
local last_ttl = math.max(tonumber(state[4]) or 0, ttl)
local seen = math.min(tonumber(state[5]) or 0, now)
local young = seen + 2000 + last_ttl - now
if young > wait then
  -- A server that was just restarted may have rolled back to an earlier write. Its own age is in whole seconds.
  local info = redis.pcall('INFO', 'server')
  local uptime = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
  if not uptime or (uptime - 1) * 1000 < last_ttl + 2000 then
    wait = young
  end
end
if wait > 0 then
  return answer('quarantined', held, wait)
end

-- A late ghost of an earlier campaign only answers.
local known = tonumber(ARGV[3])
if term > known then
  return answer('stale', held, 0)
end

-- The counter rises even when the data was lost: with the server's clock and with the highest that the caller has seen.
local last = tonumber(redis.call('GET', KEYS[3])) or 0
term = math.max(last + 1, micros, known + 1)
local text = string.format('%.0f', term)
redis.call('SET', KEYS[3], text)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], 'holder', ARGV[1], 'term', text, 'ttl', ARGV[2], 'seen', string.format('%.0f', now))
if state[6] then
  redis.call('HSET', KEYS[2], 'late_from', state[6])
  redis.call('HDEL', KEYS[2], 'drained')
elseif not held then
  redis.call('HDEL', KEYS[2], 'late_from')
end
return answer('acquired', ARGV[1], ttl)
