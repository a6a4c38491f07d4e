-- Reads the living lines of the roster.
-- KEYS: 1 roster, 2 introductions, 3 revision
-- Gives: revision, then for each instance: holder, when it was seen (ms), service, what changes, introduction
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local answer = { redis.call('GET', KEYS[3]) or '0' }
local lines = redis.call('HGETALL', KEYS[1])
for i = 1, #lines, 2 do
  local ends, seen, service, beat = string.match(lines[i + 1], '^(%d+) (%d+) (%S+) %S+ (.*)$')
  if ends and tonumber(ends) >= now then
    answer[#answer + 1] = lines[i]
    answer[#answer + 1] = seen
    answer[#answer + 1] = service
    answer[#answer + 1] = beat
    answer[#answer + 1] = redis.call('HGET', KEYS[2], lines[i]) or ''
  end
end
return answer
