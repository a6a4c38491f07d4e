-- Reads what a new leader must know of its jobs. A job without a cursor starts now, by the server's clock.
-- KEYS: 1 lease, 2 state, then one hash for each job
-- ARGV: 1 holder, 2 term
-- Gives: 'yours', now, late_from or '', then for each job its cursor and the tick that waits, or ''; or 'not_yours'
local held = redis.pcall('GET', KEYS[1])
local state = redis.call('HMGET', KEYS[2], 'term', 'late_from')
if held ~= ARGV[1] or state[1] ~= ARGV[2] then
  return { 'not_yours' }
end
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local answer = { 'yours', now, state[2] or '' }
for i = 3, #KEYS do
  local stored = redis.call('HMGET', KEYS[i], 'cursor', 'waiting')
  -- One that is no instant stops its own job only: it starts anew.
  local cursor = stored[1] and string.match(stored[1], '^%d+$')
  if not cursor then
    cursor = now
    redis.call('HSET', KEYS[i], 'since', now, 'cursor', now)
  end
  answer[#answer + 1] = cursor
  -- What is no tick is dropped by the next claim.
  answer[#answer + 1] = string.match(stored[2] or '', '^%d+$') or ''
end
return answer
