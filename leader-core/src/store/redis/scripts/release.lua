-- Gives a lease back and wakes the standbys.
-- KEYS: 1 lease, 2 state
-- ARGV: 1 holder, 2 term, 3 draining since (ms) or '', 4 channel, 5 group
local held = redis.pcall('GET', KEYS[1])
if held ~= ARGV[1] or redis.call('HGET', KEYS[2], 'term') ~= ARGV[2] then
  return 'not_yours'
end
redis.call('DEL', KEYS[1])
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
redis.call('HSET', KEYS[2], 'released', ARGV[2], 'vacant', now)
redis.call('HDEL', KEYS[2], 'asked')
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], 'drained', ARGV[3])
end
-- Only a hint: a user who may not publish leads all the same.
redis.pcall('PUBLISH', ARGV[4], 'released ' .. ARGV[5] .. ' ' .. ARGV[2])
return 'released'
