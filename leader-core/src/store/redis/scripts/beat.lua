-- Tells that runs are alive. A run that was settled meanwhile stays settled.
-- KEYS: 1 beats
-- ARGV: fences
-- Gives: the fences of those that are to end, because a later tick takes their place, and with '-' before it of each that is no longer
--        its runner's: it was settled, or another has it
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local told = {}
for i = 1, #ARGV do
  local known = ask_anew(KEYS[1], 'HMGET', KEYS[1], ARGV[i], 'x' .. ARGV[i])
  if known[1] then
    -- Changes nothing, and needs no memory: a server that has none lets a script finish what it has begun. Its leases are renewed
    -- too, and whoever looks at this run must not take a server's silence for the runner's.
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], ARGV[i], now)
  else
    told[#told + 1] = '-' .. ARGV[i]
  end
  if known[2] then
    told[#told + 1] = ARGV[i]
  end
end
return told
