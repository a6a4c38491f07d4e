-- Tells that runs are alive. A run that was settled meanwhile stays settled.
-- KEYS: 1 beats
-- ARGV: fences
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
for i = 1, #ARGV do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    redis.call('HSET', KEYS[1], ARGV[i], now)
  end
end
return #ARGV
