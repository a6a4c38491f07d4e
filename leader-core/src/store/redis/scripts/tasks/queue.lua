-- Which generations of a queue are open.
-- KEYS: 1 the queue
-- ARGV: 1 'open' and 2 how many shards or ''; or 'close' and the number of an earlier one
-- Gives: the newest and then the earlier ones, each as 'number shards'
local stored = redis.call('HMGET', KEYS[1], 'newest', 'earlier')
-- A line that is none is nobody's, and passed over.
local function number_of(line)
  local number, shards = string.match(line, '^(%d+) (%d+)$')
  return number and #number < 10 and #shards < 10 and tonumber(shards) > 0 and tonumber(number)
end
local before = 0
local earlier = string.gsub(stored[2] or '', '([^\n]*)\n?', function(one)
  local number = number_of(one)
  before = math.max(before, number or 0)
  return number and one .. '\n' or ''
end)
-- A queue of which nothing is known has one shard, as its first generation.
local newest = stored[1] or ''
if not number_of(newest) then
  newest = string.format('%.0f 1', before + 1)
end
if ARGV[1] == 'open' and ARGV[2] ~= '' then
  local number, shards = string.match(newest, '^(%d+) (%d+)$')
  if shards ~= ARGV[2] then
    earlier = newest .. '\n' .. earlier
    newest = string.format('%.0f %s', number + 1, ARGV[2])
    redis.call('HSET', KEYS[1], 'newest', newest, 'earlier', earlier)
  end
elseif ARGV[1] == 'close' then
  local left = string.gsub(earlier, '([^\n]+)\n', function(one)
    return string.match(one, '^%d+') == ARGV[2] and '' or one .. '\n'
  end)
  if left ~= earlier then
    -- Changes nothing, and needs no memory: a server that has none lets a script finish what it has begun.
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], 'earlier', left)
  end
  earlier = left
end
local answer = { newest }
for one in string.gmatch(earlier, '[^\n]+') do
  answer[#answer + 1] = one
end
return answer
