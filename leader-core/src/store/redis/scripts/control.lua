-- Reads what is in force and open in a group.
-- KEYS: 1 state, 2 control, 3 acts
-- Gives: the number of the newest act, the server's time (ms), fields and lines of control, acts, the number of the
--        newest change of a schedule made at run time
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local state = redis.call('HMGET', KEYS[1], 'control', 'made')
local number, made = read_number(state[1]) and state[1] or '0', read_number(state[2]) and state[2] or '0'
local acts = redis.pcall('LRANGE', KEYS[3], 0, -1)
return { number, now, redis.call('HGETALL', KEYS[2]), acts.err and {} or acts, made }
