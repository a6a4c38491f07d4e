-- Records how runs ended. What counts is the run's own fence, not the lease: a finishing body's result is taken unless
-- the run was settled by somebody else.
-- KEYS: 1 beats, then for each end: job, ran
-- ARGV: 1 runs and other records kept and for how many ms; then for each end: fence, outcome, error, ms until the next try or ''
-- Gives: for each end 'settled', 'fenced', 'moved' and the name under which the job goes on, or 'again' and when the next try may begin
local call, format, concat, match = redis.call, string.format, table.concat, string.match
local time = call('TIME')
local millis = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now = format('%.0f', millis)
local kept, kept_for = match(ARGV[1], '^(%d+) %d+ (%d+)$')
kept, kept_for = tonumber(kept), tonumber(kept_for)
local answer, silent = {}, {}
for i = 1, (#KEYS - 1) / 2 do
  local job, ran = KEYS[2 * i], KEYS[2 * i + 1]
  local fence, outcome, error = ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i]
  local again_in = ARGV[4 * i + 1]
  local counter = 'n:' .. outcome
  local stored = ask_anew(job, 'HMGET', job, 'open', counter, 'kept:ran', 'moved')
  local open, found, place = {}, nil, nil
  for line in string.gmatch(stored[1] or '', '%S+') do
    local run = { match(line, '^([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.*)$') }
    if run[3] == fence then
      found, place = run, #open + 1
    else
      open[#open + 1] = line
    end
  end
  if found and again_in ~= '' then
    -- Told before, its answer was lost; or somebody has found it silent.
    if found[9] == '' then
      found[9], found[10] = format('%.0f', tonumber(now) + tonumber(again_in)), outcome
      table.insert(open, place, concat(found, '|'))
      call('HSET', job, 'open', concat(open, ' '), 'e:' .. fence, error)
      silent[#silent + 1] = fence
      silent[#silent + 1] = 'x' .. fence
    end
    answer[i] = 'again ' .. found[9]
  elseif found then
    local line = concat({ found[1], found[1], '1', outcome, found[2], fence, found[4], found[7], now, found[6], error, found[8] }, '|')
    local said = keep_record(ran, line, kept, kept_for, millis, stored[3]) or stored[3]
    -- As few calls out of the script as will do: they are what it costs.
    if found[2] == 'schedule' then
      local counted = (read_number(stored[2]) or 0) + 1
      call('HSET', job, 'open', concat(open, ' '), counter, format('%.0f', counted), 'kept:ran', said)
    else
      call('HSET', job, 'open', concat(open, ' '), 'kept:ran', said)
      count_up(job, 'x:' .. outcome, 1)
    end
    if found[9] ~= '' then
      call('HDEL', job, 'e:' .. fence)
    end
    silent[#silent + 1] = fence
    silent[#silent + 1] = 'x' .. fence
    answer[i] = 'settled'
  else
    -- What has another name is settled under that.
    answer[i] = stored[4] and is_name(stored[4]) and 'moved ' .. stored[4] or 'fenced'
  end
end
if #silent > 0 then
  ask_anew(KEYS[1], 'HDEL', KEYS[1], unpack(silent))
end
return answer
