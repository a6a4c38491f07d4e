-- Reads what is in force and open in a group.
-- KEYS: 1 state, 2 control, 3 acts
-- Gives: the number of the newest act, the server's time (ms), fields and lines of control, acts, the number of the
--        newest change of a schedule made at run time
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local state = redis.call('HMGET', KEYS[1], 'control', 'made')
local number, made = string.match(state[1] or '', '^%d+$') or '0', string.match(state[2] or '', '^%d+$') or '0'
return { number, now, redis.call('HGETALL', KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1), made }
