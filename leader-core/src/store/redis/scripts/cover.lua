-- Marks which jobs of a group its leader lacks, after the fleet has changed.
-- KEYS: 1 lease, 2 state, 3 coverage
-- ARGV: 1 holder, 2 term, 3 jobs that other living instances have, or '*' = not known, 4 jobs that the leader has
-- Gives: 'yours' or 'not_yours'
local held = redis.pcall('GET', KEYS[1])
if held ~= ARGV[1] or redis.call('HGET', KEYS[2], 'term') ~= ARGV[2] then
  return 'not_yours'
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local known, own = read_coverage(KEYS[3]), {}
for name in string.gmatch(ARGV[4], '%S+') do
  own[goes_on_as(known, name)] = true
end
write_coverage(KEYS[3], mark_lacked(known, own, names_elsewhere(known, ARGV[3]), now))
return 'yours'
