-- Tells that runs are alive. A run that was settled meanwhile stays settled.
-- KEYS: 1 beats
-- ARGV: fences
-- Gives: the fences of those that are to end, because a later tick takes their place
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local replaced = {}
for i = 1, #ARGV do
  local known = redis.call('HMGET', KEYS[1], ARGV[i], 'x' .. ARGV[i])
  if known[1] then
    redis.call('HSET', KEYS[1], ARGV[i], now)
  end
  if known[2] then
    replaced[#replaced + 1] = ARGV[i]
  end
end
return replaced
