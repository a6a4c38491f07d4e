-- Prolongs a lease. Never mints and never acquires.
-- KEYS: 1 lease, 2 state
-- ARGV: 1 holder, 2 term, 3 TTL in ms
-- Gives: 'renewed' with the server's time (µs) what the leader is asked and the number of the newest act of control, or 'not_yours' with holder and term
local held = redis.pcall('GET', KEYS[1])
local state = redis.call('HMGET', KEYS[2], 'term', 'asked', 'control')
if held ~= ARGV[1] or state[1] ~= ARGV[2] then
  return { 'not_yours', type(held) == 'string' and held or '', state[1] or '0' }
end
-- First, because a server that is out of memory lets a script finish what it has begun.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
redis.call('HSET', KEYS[2], 'seen', string.format('%.0f', now), 'ttl', ARGV[3])
local asked = ''
if state[2] then
  local term, ends, text = string.match(state[2], '^(%d+) (%d+) (.*)$')
  if term == ARGV[2] and tonumber(ends) > now then
    asked = text
  end
end
return { 'renewed', string.format('%.0f', micros), asked, read_number(state[3]) and state[3] or '0' }
