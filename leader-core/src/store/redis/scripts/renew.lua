-- Prolongs a lease. Never mints and never acquires.
-- KEYS: 1 lease, 2 state
-- ARGV: 1 holder, 2 term, 3 TTL in ms
-- Gives: 'renewed' with the server's time (µs), or 'not_yours' with holder and term
local held = redis.pcall('GET', KEYS[1])
local term = redis.call('HGET', KEYS[2], 'term')
if held ~= ARGV[1] or term ~= ARGV[2] then
  return { 'not_yours', type(held) == 'string' and held or '', term or '0' }
end
-- First, because a server that is out of memory lets a script finish what it has begun.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
redis.call('HSET', KEYS[2], 'seen', string.format('%.0f', math.floor(micros / 1000)), 'ttl', ARGV[3])
return { 'renewed', string.format('%.0f', micros) }
