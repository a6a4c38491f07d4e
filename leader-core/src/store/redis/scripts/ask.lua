-- Asks the leader of a group to step down. The request names the leader's term and ends by itself; the leader hears of it with its
-- next renewal, and of the hint at once.
-- KEYS: 1 lease, 2 state
-- ARGV: 1 term that is meant or '0' = the present one, 2 ends after (ms), 3 who asks and why, 4 channel, 5 group
-- Gives: 'asked' with holder and term, 'over' when the term that is meant has ended, 'vacant', or 'foreign' with the holder
local held = redis.pcall('GET', KEYS[1])
local state = redis.call('HMGET', KEYS[2], 'term', 'holder')
local term = state[1] or '0'
if ARGV[1] ~= '0' and (ARGV[1] ~= term or held ~= state[2]) then
  return { 'over', '', term }
end
if type(held) == 'table' then
  return { 'foreign', '', term }
end
if not held then
  return { 'vacant', '', term }
end
if held ~= state[2] then
  return { 'foreign', held, term }
end
local time = redis.call('TIME')
local ends = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[2])
redis.call('HSET', KEYS[2], 'asked', term .. ' ' .. string.format('%.0f', ends) .. ' ' .. ARGV[3])
redis.pcall('PUBLISH', ARGV[4], 'asked ' .. ARGV[5] .. ' ' .. term)
return { 'asked', held, term }
