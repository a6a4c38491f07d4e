-- Writes an instance into the roster, unless another service is alive in the namespace.
-- KEYS: 1 roster
-- ARGV: 1 holder, 2 service, 3 alive for (ms)
-- Gives: 'enrolled', or 'other_service' with service and holder
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lines = redis.call('HGETALL', KEYS[1])
for i = 1, #lines, 2 do
  local ends, service = string.match(lines[i + 1], '^(%d+) (.*)$')
  ends = tonumber(ends) or 0
  if ends < now then
    redis.call('HDEL', KEYS[1], lines[i])
  elseif lines[i] ~= ARGV[1] and service ~= ARGV[2] then
    return { 'other_service', service, lines[i] }
  end
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + tonumber(ARGV[3])) .. ' ' .. ARGV[2])
return { 'enrolled' }
