-- Reads what a new leader must know of its jobs. A job without a cursor starts now, by the server's clock.
-- KEYS: 1 lease, 2 state, then one hash for each job
-- ARGV: 1 holder, 2 term, or 0 for jobs that need no leader, 3 version and 4 time zones of who writes a schedule, then for each job its schedule
-- Gives: 'yours', now, late_from or '', then for each job its cursor, the tick that waits or '', what is open: '0' or '-', and for
--        each run that pauses fence|tick|tries|again|outcome; the schedule in force and what is kept about it; then the number of the
--        newest act of control; or 'not_yours'
local held = redis.pcall('GET', KEYS[1])
local state = redis.call('HMGET', KEYS[2], 'term', 'late_from', 'control')
if ARGV[2] ~= '0' and (held ~= ARGV[1] or state[1] ~= ARGV[2]) then
  return { 'not_yours' }
end
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))

-- What the next leader finds open: '0' when a run is under way somewhere, and the runs that pause.
local function found(lines)
  local told = { '-' }
  for line in string.gmatch(lines, '%S+') do
    local tick, _, fence, _, number, _, _, tries, again, outcome = string.match(
      line, '^(%-?%d+)|([^|]*)|(%d+)|([^|]*)|(%d+)|([^|]*)|([^|]*)|(%d+)|(%d*)|([^|]*)$'
    )
    if tick and again ~= '' then
      told[#told + 1] = table.concat({ fence, tick, tries, again, outcome }, '|')
    elseif tick then
      told[1] = '0'
    end
  end
  return table.concat(told, ' ')
end

-- What is kept about a schedule that is written here: since when, time zones, instance, version.
local function about_now(since)
  return table.concat({ since, ARGV[4], string.match(ARGV[1], '^(.*)#') or ARGV[1], ARGV[3] }, '|')
end

local answer = { 'yours', now, state[2] or '' }
for i = 3, #KEYS do
  local stored = redis.call('HMGET', KEYS[i], 'cursor', 'waiting', 'schedule', 'schedule_about', 'open')
  -- One that is no instant stops its own job only: it starts anew.
  local cursor = stored[1] and string.match(stored[1], '^%d+$')
  if not cursor then
    cursor = now
    redis.call('HSET', KEYS[i], 'since', now, 'cursor', now)
  end
  answer[#answer + 1] = cursor
  -- What is no tick is dropped by the next claim.
  answer[#answer + 1] = string.match(stored[2] or '', '^%d+$') or ''
  answer[#answer + 1] = found(stored[5] or '')
  local schedule, about = stored[3], stored[4]
  if not schedule then
    -- As far as anybody knows, it has been in force since the last decided tick.
    schedule, about = ARGV[i + 2], about_now(cursor)
    redis.call('HSET', KEYS[i], 'schedule', schedule, 'schedule_about', about)
  end
  answer[#answer + 1] = schedule
  answer[#answer + 1] = about or ''
end
answer[#answer + 1] = string.match(state[3] or '', '^%d+$') or '0'
return answer
