-- Records how runs ended. What counts is the run's own fence, not the lease: a finishing body's result is taken unless
-- the run was settled by somebody else.
-- KEYS: 1 beats, then for each end: job, ran
-- ARGV: 1 records kept; then for each end: fence, outcome, error
-- Gives: for each end 'settled' or 'fenced'
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local last_record = tonumber(ARGV[1]) - 1
local answer = {}
for i = 1, (#KEYS - 1) / 2 do
  local job, ran = KEYS[2 * i], KEYS[2 * i + 1]
  local fence, outcome, error = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  local open, found = {}, nil
  for line in string.gmatch(redis.call('HGET', job, 'open') or '', '%S+') do
    local run = { string.match(line, '^(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.*)$') }
    if run[3] == fence then
      found = run
    else
      open[#open + 1] = line
    end
  end
  if found then
    redis.call('HSET', job, 'open', table.concat(open, ' '))
    redis.call('HDEL', KEYS[1], fence)
    redis.call('LPUSH', ran, table.concat({ found[1], found[1], '1', outcome, found[2], fence, found[4], found[7], now, found[6], error }, '|'))
    redis.call('LTRIM', ran, 0, last_record)
    redis.call('HINCRBY', job, (found[2] == 'schedule' and 'n:' or 'x:') .. outcome, 1)
    answer[i] = 'settled'
  else
    answer[i] = 'fenced'
  end
end
return answer
