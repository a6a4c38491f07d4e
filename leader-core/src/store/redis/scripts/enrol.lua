-- Writes an instance into the roster, unless another service is alive in the namespace, and takes dead lines out.
-- KEYS: 1 roster (signs of life), 2 introductions, 3 revision
-- ARGV: 1 holder, 2 service, 3 alive for (ms), 4 digest of the introduction, 5 what changes, 6 introduction or ''
-- Gives: 'enrolled', the server's time (µs), revision, a living holder of the same id or '', when it was seen; 'introduce' when the introduction is missing;
-- or 'other_service' with service and holder
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)

local function instance(holder)
  return string.match(holder, '^(.*)#') or holder
end

-- Anything that is no number of ours is made anew.
local revision = string.match(redis.call('GET', KEYS[3]) or '', '^%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?$')
local function changed()
  revision = string.format('%.0f', math.max((tonumber(revision) or 0) + 1, micros))
  redis.call('SET', KEYS[3], revision)
end

local known, twin, twin_seen, other
local lines = redis.call('HGETALL', KEYS[1])
for i = 1, #lines, 2 do
  local holder = lines[i]
  local ends, seen, service, digest = string.match(lines[i + 1], '^(%d+) (%d+) (%S+) (%S+) ')
  if seen and tonumber(seen) > now then
    -- The server's clock was set back: the line lives as long as it was to live, from now.
    local left = math.max(tonumber(ends) - tonumber(seen), 0)
    lines[i + 1] = string.gsub(lines[i + 1], '^%d+ %d+', string.format('%.0f %.0f', now + left, now))
    redis.call('HSET', KEYS[1], holder, lines[i + 1])
    ends, seen = string.format('%.0f', now + left), string.format('%.0f', now)
  end
  -- A line in another form is another version's, and lives until its first number has passed.
  ends = ends or string.match(lines[i + 1], '^%d+')
  if holder == ARGV[1] then
    known = digest
  elseif not ends or tonumber(ends) < now then
    redis.call('HDEL', KEYS[1], holder)
    redis.call('HDEL', KEYS[2], holder)
    changed()
  elseif not service then
    -- Not ours to judge.
  elseif service ~= ARGV[2] then
    other = { 'other_service', service, holder }
  elseif instance(holder) == instance(ARGV[1]) and tonumber(seen) > (tonumber(twin_seen) or -1) then
    twin, twin_seen = holder, seen
  end
end
if other then
  return other
end
if known ~= ARGV[4] or redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then
  if ARGV[6] == '' then
    return { 'introduce' }
  end
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[6])
  changed()
end
if not revision then
  changed()
end
local line = string.format('%.0f %.0f ', now + tonumber(ARGV[3]), now) .. ARGV[2] .. ' ' .. ARGV[4] .. ' ' .. ARGV[5]
redis.call('HSET', KEYS[1], ARGV[1], line)
return { 'enrolled', string.format('%.0f', micros), revision, twin or '', twin_seen or '' }
