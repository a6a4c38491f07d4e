-- Takes an instance out of the roster.
-- KEYS: 1 roster, 2 introductions, 3 revision
-- ARGV: 1 holder
if redis.call('HDEL', KEYS[1], ARGV[1]) + redis.call('HDEL', KEYS[2], ARGV[1]) > 0 then
  local time = redis.call('TIME')
  local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local last = tonumber(redis.call('GET', KEYS[3])) or 0
  redis.call('SET', KEYS[3], string.format('%.0f', math.max(last + 1, micros)))
end
return 'left'
